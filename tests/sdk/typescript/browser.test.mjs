// SPDX-License-Identifier: Apache-2.0
// The browser's entry point, with the fetch of Node.js: connections, streams, files, cancellation.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, test } from 'node:test';
import { Client, ConnectionLost, Sandbox, errors } from 'millibox/browser';

const client = new Client({ url: process.env.MILLIBOX_TEST_URL });
after(() => client.close());

test('programs and values', async () => {
  const result = await client.runCode('print(6 * 7)');
  assert.deepEqual([result.ok, result.text], [true, '42\n']);
  await assert.rejects(client.runCode('1', { memory: 'lots' }), errors.InvalidParameterError);
});

test('a sandbox with files and streams', async () => {
  const box = await Sandbox.create({ client });
  await box.runCode('x = 41');
  assert.equal((await box.runCode('x + 1')).json, 42);
  const kinds = [];
  for await (const event of box.stream("print('a')")) kinds.push(event.kind);
  assert.deepEqual(kinds, ['pending', 'start', 'stdout', 'end']);
  await box.files.write('whole', new Uint8Array([1, 2, 3]));
  await box.files.write('blob', new Blob(['blob']));
  await box.files.write('pieces', (async function* () { yield new Uint8Array([1]); yield new Uint8Array([2]); })());
  assert.deepEqual([...await box.files.read('whole')], [1, 2, 3]);
  assert.deepEqual((await box.files.list()).map((found) => [found.name, found.size]), [['blob', 4], ['pieces', 2], ['whole', 3]]);
  let size = 0;
  for await (const piece of box.files.stream('blob')) size += piece.length;
  assert.equal(size, 4);
  await assert.rejects(box.upload('/etc/hostname'), /no local files/);
  assert.throws(() => box.forward(80), /no local ports/);
  const abort = new AbortController();
  const code = 'print(1, flush=True)\nimport time; time.sleep(600)';
  await assert.rejects(box.runCode(code, { timeout: 600, signal: abort.signal, onStdout: () => abort.abort() }), { name: 'AbortError' });
  await box.close();
});

test('settings', () => {
  assert.throws(() => new Client(), /give url/);
  assert.throws(() => new Client({ socket: '/a' }), /only url/);
  assert.throws(() => new Client({ url: 'http://a', apiKey: 'a b' }), /valid key/);
});

test('a server that does not answer, and one that is not there', async () => {
  const server = createServer(() => undefined);
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${server.address().port}`;
  const slow = new Client({ url, timeout: 0.2, retries: 0 });
  await assert.rejects(slow.health(), { name: 'ConnectionLost', message: /in time/ });
  await assert.rejects(slow.runCode('1', { signal: AbortSignal.timeout(50) }), { name: 'TimeoutError' });
  server.closeAllConnections();
  server.close();
  const none = new Client({ url: 'http://127.0.0.1:1', retries: 0 });
  await assert.rejects(none.health(), ConnectionLost);
});
