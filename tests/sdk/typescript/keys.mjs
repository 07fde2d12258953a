// SPDX-License-Identifier: Apache-2.0
// A key of the daemon, and one that is wrong.
import { Client } from 'millibox';

const admin = new Client();
const { key } = await admin.request('POST', '/api/v1/keys', { tenant: 'default', scopes: ['execute'] });
await admin.close();
const client = new Client({ apiKey: key });
process.stdout.write((await client.runCode('print(1)')).stdout);
await client.close();
process.env.MILLIBOX_API_KEY = key.slice(0, -1) + (key.endsWith('a') ? 'b' : 'a');
const wrong = new Client();
console.log(await wrong.runCode('1').catch((error) => error.name));
await wrong.close();
