// SPDX-License-Identifier: Apache-2.0
// The daemon is killed and started again while a program runs. "restart" on standard output asks for it; a line on
// standard input says that it is done.
import assert from 'node:assert/strict';
import { createInterface } from 'node:readline';
import { Client, Sandbox } from 'millibox';

const input = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

async function restart() {
  console.log('restart');
  assert.equal((await input.next()).value, 'restarted');
}

const client = new Client();
const box = await Sandbox.create({ client });
await box.runCode('x = 41');
const seen = [];
let done = null;
const execution = await box.startCode('import time\nfor i in range(40): print(i, flush=True); time.sleep(0.02)\nx + 1');
const result = await execution.wait({
  onStdout: (text) => {
    seen.push(text);
    done ??= restart();
  },
});
await done;
assert.equal(seen.join(''), result.stdout);
assert.equal(result.stdout, Array.from({ length: 40 }, (_, number) => `${number}\n`).join(''));
assert.equal(result.json, 42);
assert.equal((await box.runCode('x')).json, 41);
await restart();
assert.equal((await box.runCode('x + 2')).json, 43);
assert.ok((await client.runCode('print(1)')).ok);
await box.close();
await client.close();
console.log('done');
process.exit();
