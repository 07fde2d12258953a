// SPDX-License-Identifier: Apache-2.0
// Daemons of a process. Usage: local.mjs settings|shared|wait|wrong
import assert from 'node:assert/strict';
import { Sandbox, local } from 'millibox';

const MODES = {
  // A daemon with settings ends with its client.
  async settings() {
    const client = await local({ settings: { 'limits.timeout': '200ms' } });
    assert.equal((await client.runCode('print(1)', { timeout: 20 })).text, '1\n');
    assert.equal((await client.runCode('while True: pass')).status, 'timeout');
    const box = await Sandbox.create({ client });
    assert.equal((await box.runCode('2', { timeout: 20 })).json, 2);
    await box.close();
    await client.close();
    console.log('done');
  },
  // One for the whole process, which it does not keep alive.
  async shared() {
    const clients = await Promise.all([local(), local()]);
    assert.equal(clients[0].address, clients[1].address);
    for (const client of clients) process.stdout.write((await client.runCode('print(42)')).text);
    for (const client of clients) await client.close();
  },
  async wait() {
    await (await local()).health();
    console.log('up');
    setInterval(() => undefined, 1000);
  },
  async wrong() {
    await assert.rejects(local({ settings: { 'limits.memory': 'lots' } }), /did not start[^]*limits.memory/);
    await assert.rejects(local({ program: '/bin/false' }), /did not start/);
    await assert.rejects(local({ program: '/nonexistent/milliboxd' }), /did not start:\n\/nonexistent\/milliboxd: No such file/);
    console.log('done');
  },
};

await MODES[process.argv[2]]();
