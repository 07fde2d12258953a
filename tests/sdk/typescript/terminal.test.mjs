// SPDX-License-Identifier: Apache-2.0
// Programs beside others, and on terminals.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Client, ConnectionLost, Sandbox, errors } from 'millibox';

const client = new Client();
let box;
before(async () => { box = await Sandbox.create({ client }); });
after(async () => {
  await box.close();
  await client.close();
});

// Reads a terminal up to some text, as often as needed.
class Screen {
  shown = '';

  constructor(terminal) {
    this.pieces = terminal[Symbol.asyncIterator]();
  }

  async until(text) {
    while (!this.shown.includes(text)) {
      const next = await this.pieces.next();
      assert.ok(!next.done, `it ended before '${text}': ${JSON.stringify(this.shown)}`);
      this.shown += next.value.toString();
    }
    this.shown = this.shown.slice(this.shown.indexOf(text) + text.length);
  }

  async rest() {
    for (let next = await this.pieces.next(); !next.done; next = await this.pieces.next()) this.shown += next.value.toString();
    return this.shown;
  }
}

test('a program beside others', async () => {
  const beside = await box.commands.start('read line; echo got $line; exit 3', { stdinOpen: true });
  assert.equal((await box.runCode('6 * 7')).json, 42);
  assert.equal(await beside.status(), 'running');
  await beside.sendStdin('x\n');
  const texts = [];
  for await (const text of beside) texts.push(text);
  assert.deepEqual([texts.join(''), await beside.output()], ['got x\n', 'got x\n']);
  const result = await beside.wait();
  assert.deepEqual([result.stdout, result.exitCode], ['got x\n', 3]);
  const endless = await box.startCode('import time; time.sleep(600)', { background: true, language: 'python' });
  assert.equal(await endless.kill(), true);
  assert.equal((await endless.wait()).status, 'cancelled');
});

test('a shell on a terminal', async () => {
  const terminal = await box.pty(undefined, { rows: 20, cols: 70, env: { TERM: 'dumb' } });
  const screen = new Screen(terminal);
  await terminal.send("PS1='> '; stty size\n");
  await screen.until('\n20 70\r\n> ');
  await terminal.resize(30, 100);
  await terminal.send('stty size; cat\n');
  await screen.until('\n30 100\r\n');
  // A shell may miss the signal while it starts a program; this one has answered.
  await terminal.send('going\n');
  await screen.until('going\r\ngoing\r\n');
  await terminal.sendSignal('INT');
  await screen.until('> '); // until it has ended, the program reads what is typed
  await terminal.send('echo $((6 * 7))\n');
  await screen.until('\n42\r\n');
  // It blocks nothing.
  assert.equal((await box.runCode('1 + 1')).json, 2);
  await terminal.send('exit 5\n');
  await screen.rest();
  assert.equal((await terminal.wait()).exitCode, 5);
  assert.equal(await terminal.kill(), false);
  await assert.rejects(terminal.send('x'), ConnectionLost);
});

test('leaving a terminal, and attaching to it again', async () => {
  const first = await box.pty(['sh', '-c', 'echo begin; read line; echo got $line']);
  await new Screen(first).until('begin\r\n');
  await first.close();
  const second = await box.attach(first.id);
  const screen = new Screen(second);
  await screen.until('begin\r\n');
  await second.send('x\n');
  await screen.until('got x\r\n');
  assert.equal(await screen.rest(), '');
  assert.ok((await second.wait()).ok);
});

test('what is refused', async () => {
  await assert.rejects(box.pty('true', { rows: 0 }), { name: 'InvalidParameterError', field: 'tty.rows' });
  await assert.rejects(box.attach('exec_0'), errors.ExecutionNotFoundError);
  const terminal = await box.pty('echo begin; sleep 600');
  await new Screen(terminal).until('begin');
  await terminal.sendSignal('NONE');
  await assert.rejects(new Screen(terminal).until('never'), errors.InvalidParameterError);
  assert.equal(await terminal.kill(), true);
  await new Screen(terminal).rest();
  assert.equal((await terminal.wait()).status, 'cancelled');
});

test('a sandbox that ends takes its terminals along', async () => {
  const other = await Sandbox.create({ client });
  const terminal = await other.pty('echo begin; sleep 600');
  const screen = new Screen(terminal);
  await screen.until('begin');
  await other.close();
  // Whether the end of the program or that of the sandbox is reported first is open.
  await screen.rest().catch((error) => assert.ok(error instanceof ConnectionLost, error));
});
