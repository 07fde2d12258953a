// SPDX-License-Identifier: Apache-2.0
// Sandboxes: every method, cancellation.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import * as millibox from 'millibox';

const { Client, Sandbox, errors } = millibox;
const client = new Client();
after(() => client.close());

// A test with a sandbox of its own.
function boxed(name, work, options) {
  test(name, options ?? {}, async () => {
    const box = await Sandbox.create({ client });
    try {
      await work(box);
    } finally {
      await box.close();
    }
  });
}

async function until(condition, what) {
  for (let tries = 0; tries < 2000; tries++) {
    if (await condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  assert.fail(`waited for ${what}`);
}

boxed('variables stay in every language', async (box) => {
  assert.ok((await box.runCode('x = 41')).ok);
  assert.ok((await box.run('y=5; cd /tmp')).ok);
  assert.equal((await box.run('echo $y $PWD')).stdout, '5 /tmp\n');
  assert.equal((await box.runCode('x + 1')).json, 42);
});

test('a sandbox ends with its block', async () => {
  const made = await Sandbox.create({ client, id: 'mine', language: 'shell', memory: '64Mi', env: { A: 'b' }, idleTimeout: 60, lifetime: 120 });
  assert.ok(made.id === 'mine' && ['creating', 'ready'].includes((await made.info()).state));
  assert.equal((await made.runCode('echo $A')).text, 'b\n');
  assert.equal((await made.info()).raw.resources.memory, '64Mi');
  assert.deepEqual((await client.sandboxes()).map((found) => found.id), ['mine']);
  assert.deepEqual(await client.sandboxes({ state: 'paused' }), []);
  await made[Symbol.asyncDispose]();
  assert.equal(await made.kill(), false);
  await assert.rejects(made.info(), errors.SessionNotFoundError);
});

boxed('a second handle leaves it alive', async (box) => {
  await box.runCode('x = 7');
  const other = await Sandbox.connect(box.id, { client });
  assert.equal((await other.runCode('x')).json, 7);
  await other.close();
  assert.equal((await box.runCode('x')).json, 7);
  await assert.rejects(Sandbox.connect('nothing', { client }), errors.SessionNotFoundError);
});

test('its own client', async () => {
  const made = await Sandbox.create();
  assert.equal((await made.runCode('3')).json, 3);
  await made.close();
});

test('a refused sandbox', async () => {
  await assert.rejects(Sandbox.create({ client, template: 'none' }), { name: 'InvalidParameterError', message: /no template has/ });
  await assert.rejects(Sandbox.create({ template: 'none' }), errors.InvalidParameterError);
  const made = await Sandbox.create({ client, memory: '64Ti' });
  assert.ok(made.warnings.some((text) => text.includes('memory')));
  await made.close();
});

boxed('events and handles', async (box) => {
  const events = [];
  for await (const event of box.stream("print('a')\n7")) events.push(event);
  assert.deepEqual(events.map((event) => event.kind), ['pending', 'start', 'stdout', 'result', 'end']);
  const execution = client.execution(events[0].executionId);
  const later = [];
  for await (const event of execution.events({ after: 2 })) later.push(event.kind);
  assert.deepEqual(later, ['result', 'end']);
  assert.deepEqual([(await execution.result()).json, (await execution.wait()).json], [7, 7]);
  assert.ok((await execution.status()) === 'success' && (await execution.info()).code === "print('a')\n7");
  assert.equal((await box.executions())[0].execution_id, execution.id);
});

boxed('input of a running program', async (box) => {
  const execution = await box.startCode("import sys\nfor line in sys.stdin: print('got', line.strip(), flush=True)", { stdinOpen: true });
  for await (const event of execution.events()) {
    if (event.kind === 'start') await execution.sendStdin('one\n');
    if (event.kind === 'stdout' && event.text.includes('one')) {
      await assert.rejects(execution.result(), errors.StateConflictError);
      await execution.sendStdin(new TextEncoder().encode('two\n'));
      await execution.closeStdin();
    }
  }
  assert.equal((await execution.wait()).stdout, 'got one\ngot two\n');
  assert.equal(await execution.kill(), false);
});

boxed('commands', async (box) => {
  const failed = await box.commands.run('cat; exit 3', { stdin: 'in', env: { A: 'b' }, onStdout: () => undefined });
  assert.deepEqual([failed.exitCode, failed.stdout, failed.ok], [3, 'in', false]);
  assert.equal((await box.commands.run(['printf', '%s|', 'a b', '$A', "it's"])).stdout, "a b|$A|it's|");
  const execution = await box.commands.start('read line; echo got $line', { stdinOpen: true, timeout: 60 });
  await execution.sendStdin('x\n');
  const seen = [];
  assert.equal((await execution.wait({ onStdout: (text) => seen.push(text) })).stdout, 'got x\n');
  assert.equal(seen.join(''), 'got x\n');
});

boxed('killing a command', async (box) => {
  const execution = await box.commands.start('echo started; exec sleep 600', { timeout: 600 });
  for await (const event of execution.events()) {
    if (event.kind === 'stdout') assert.equal(await execution.kill(), true);
  }
  const result = await execution.wait();
  assert.equal(result.status, 'cancelled');
  assert.throws(() => result.raiseForStatus(), millibox.ProgramCancelled);
});

boxed('a command beside others', async (box) => {
  const code = "import socket; s = socket.create_server(('', 8081)); open('/workspace/up', 'w')\nwhile True: s.accept()[0].sendall(b'hello')";
  const group = await box.commands.detach(['python3', '-c', code], { log: '/workspace/server.log' });
  await until(() => box.files.exists('up'), 'the server');
  assert.equal((await box.runCode("import socket; socket.create_connection(('127.0.0.1', 8081)).recv(9)")).text, "b'hello'");
  assert.equal(await box.commands.kill(group), true);
  await until(async () => !(await box.commands.kill(group)), 'its end');
});

boxed('an aborted caller cancels the program', async (box) => {
  const abort = new AbortController();
  const code = "x = 1; print('running', flush=True); import time; time.sleep(600)";
  const run = box.runCode(code, { timeout: 600, signal: abort.signal, onStdout: () => abort.abort() });
  await assert.rejects(run, { name: 'AbortError' });
  const [execution] = await box.executions();
  assert.equal((await client.execution(execution.execution_id).wait()).status, 'cancelled');
});

boxed('an aborted wait does not', async (box) => {
  const execution = await box.startCode("import sys; print(1, flush=True); sys.stdin.readline(); 5", { stdinOpen: true, timeout: 60 });
  const abort = new AbortController();
  await assert.rejects(execution.wait({ signal: abort.signal, onStdout: () => abort.abort(new Error('enough')) }), /enough/);
  await execution.sendStdin('\n', { end: true });
  assert.equal((await execution.wait()).json, 5);
});

boxed('a failing callback does not cancel', async (box) => {
  const fail = () => { throw new RangeError('mine'); };
  await assert.rejects(box.runCode('print(1, flush=True); 5', { onStdout: fail }), RangeError);
  assert.equal((await client.execution((await box.executions())[0].execution_id).wait()).json, 5);
});

boxed('a program that takes too long keeps variables', async (box) => {
  await box.runCode('x = 1');
  assert.equal((await box.runCode('import time; time.sleep(600)', { timeout: 1 })).status, 'timeout');
  assert.equal((await box.runCode('x')).json, 1);
});

boxed('pause and resume', async (box) => {
  await box.runCode('x = 1');
  assert.equal((await box.pause()).state, 'paused');
  const execution = await box.startCode('x');
  assert.ok(['ready', 'running'].includes((await box.resume()).state));
  assert.equal((await execution.wait()).json, 1);
}, { skip: process.env.MILLIBOX_TEST_ROOT ? false : 'an ordinary user has no freezer' });

boxed('the rest of a sandbox', async (box) => {
  assert.equal((await box.stats()).executions, 0);
  assert.equal((await box.keepalive()).id, box.id);
  const execution = await box.startCode('print(1, flush=True)\nimport time\nwhile True: time.sleep(0.05)', { timeout: 600 });
  for await (const event of execution.events()) {
    if (event.kind === 'stdout') await box.interrupt();
  }
  assert.equal((await execution.wait()).error.name, 'KeyboardInterrupt');
  assert.equal(await box.call("def handler(event): return event['a']", { a: 4 }), 4);
});
