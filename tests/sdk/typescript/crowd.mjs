// SPDX-License-Identifier: Apache-2.0
// More calls at once than the daemon takes: crowd.mjs COUNT. Prints how many gave the right answer, of calls and of streams.
import { Client } from 'millibox';

const numbers = Array.from({ length: Number(process.argv[2]) }, (_, number) => number);
const client = new Client();

async function right(options) {
  const results = await Promise.all(numbers.map((number) => client.runCode(`print(${number} * 3)`, options)));
  return results.filter((result, number) => result.stdout === `${number * 3}\n`).length;
}

console.log(await right({}), await right({ onStdout: () => undefined }));
await client.close();
