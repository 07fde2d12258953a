// SPDX-License-Identifier: Apache-2.0
// Single executions, results and errors.
import assert from 'node:assert/strict';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import * as millibox from 'millibox';

const { Client, errors } = millibox;
const client = new Client();
after(() => client.close());

test('one execution', async () => {
  const result = await client.runCode('print(6 * 7)');
  assert.deepEqual([result.ok, result.status, result.exitCode, result.text], [true, 'success', 0, '42\n']);
  assert.match(result.executionId, /^exec_/);
  assert.ok(result.metrics.duration_ms > 0 && !result.truncated && result.language === 'python');
  assert.equal(result.raiseForStatus(), result);
});

test('everything that a program is given', async () => {
  const code = "import os, sys; print(sys.argv[1:], os.environ['WORD'], open('a/b').read(), sys.stdin.buffer.read())";
  const result = await client.runCode(code, { args: ['x'], env: { WORD: 'w' }, files: { 'a/b': 'text' }, stdin: new Uint8Array([0, 255]) });
  assert.equal(result.stdout, "['x'] w text b'\\x00\\xff'\n");
  assert.ok((await client.runCode('echo $0', { language: 'shell' })).ok);
});

test('a value of another type is refused', async () => {
  await assert.rejects(async () => client.runCode('1', { stdin: 5 }), { name: 'TypeError', message: 'stdin: must be text or a Uint8Array' });
  await assert.rejects(async () => client.runCode('1', { files: ['a'] }), { name: 'TypeError', message: /^files: must be an object of path: content/ });
  await assert.rejects(async () => client.runCode('1', { files: { a: 5 } }), { name: 'TypeError', message: 'files.a: must be text or a Uint8Array' });
  assert.throws(() => new millibox.Sandbox(), { name: 'TypeError', message: /await Sandbox\.create\(\)/ });
});

test('a guessed language', async () => {
  const guessed = { 'import sys; from os import path; print(path.sep)': 'python', 'console.log(6 * 7)': 'javascript', '6 * 7': 'python' };
  for (const [code, language] of Object.entries(guessed)) assert.equal((await client.runCode(code)).language, language);
});

test('limits', async () => {
  const result = await client.runCode('x = bytearray(200 << 20)', { memory: '64Mi' });
  assert.deepEqual([result.status, result.limit], ['failed', 'memory']);
  assert.throws(() => result.raiseForStatus(), (error) => error instanceof millibox.ProgramFailed && /memory limit/.test(error.message));
});

test('a program that takes too long', async () => {
  const result = await client.runCode("print('so far', flush=True)\nwhile True: pass", { timeout: 6 });
  assert.deepEqual([result.status, result.limit, result.stdout], ['timeout', 'time', 'so far\n']);
  assert.deepEqual(result.denials.map((denial) => denial.rule), ['deadline']);
  assert.equal(result.why.length, 3);
  assert.throws(() => result.raiseForStatus(), (error) => error instanceof millibox.ProgramTimeout && error.result === result);
});

test('an exception is data', async () => {
  const { error, ...rest } = await client.runCode('def f(): return 1 / 0\nf()').then((result) => ({ error: result.error, result }));
  assert.deepEqual([error.name, error.value, String(error)], ['ZeroDivisionError', 'division by zero', 'ZeroDivisionError: division by zero']);
  assert.match(error.traceback.join('\n'), /line 1, in f/);
  assert.throws(() => rest.result.raiseForStatus(), { name: 'ProgramFailed', message: /ZeroDivisionError: division by zero/ });
});

test('values, figures and tables', async () => {
  const value = await client.runCode("{'a': [1, None]}");
  assert.deepEqual([value.json, value.value, value.text], [{ a: [1, null] }, { a: [1, null] }, "{'a': [1, None]}"]);
  const figure = await client.runCode("import matplotlib.pyplot as plt; print('drawn'); plt.plot([1]); plt.show()", { timeout: 60 });
  assert.deepEqual([...figure.png.subarray(0, 4)], [0x89, 0x50, 0x4e, 0x47]);
  const table = await client.runCode("import pandas; pandas.DataFrame({'a': [1]})", { timeout: 60 });
  assert.match(table.html, /<table/);
  const none = await client.runCode('pass');
  assert.deepEqual([none.png, none.html, none.json, none.error, none.text], [null, null, null, null, '']);
});

test('callbacks while it runs', async () => {
  const seen = [];
  const result = await client.runCode("import sys; print('a', flush=True); print('b', file=sys.stderr, flush=True); 7", {
    onStdout: (text) => seen.push(`out ${text}`),
    onStderr: async (text) => seen.push(`err ${text}`),
    onResult: (bundle) => seen.push(`result ${bundle['text/plain']}`),
  });
  assert.deepEqual(seen.sort(), ['err b\n', 'out a\n', 'result 7']);
  assert.deepEqual([result.stdout, result.stderr, result.json], ['a\n', 'b\n', 7]);
});

test('a stream', async () => {
  const events = [];
  for await (const event of client.stream("import sys; sys.stdout.buffer.write(b'\\xff'); sys.stdout.flush(); 7")) events.push(event);
  assert.deepEqual(events.map((event) => event.kind), ['start', 'stdout', 'result', 'end']);
  assert.deepEqual([[...events[1].data], events[1].text], [[255], '\ufffd']);
  assert.deepEqual([events[2].bundle, events[3].result.json], [{ 'text/plain': '7' }, 7]);
});

// The daemon fixture waits until no box is left.
test('leaving a stream ends the program', async () => {
  for await (const event of client.stream('print(1, flush=True)\nimport time; time.sleep(600)', { timeout: 600 })) {
    if (event.kind === 'stdout') break;
  }
});

test('an aborted caller ends the program', async () => {
  const abort = new AbortController();
  const code = 'print(1, flush=True)\nimport time; time.sleep(600)';
  const run = client.runCode(code, { timeout: 600, signal: abort.signal, onStdout: () => abort.abort() });
  await assert.rejects(run, { name: 'AbortError' });
  const late = client.runCode('import time; time.sleep(600)', { timeout: 600, signal: AbortSignal.timeout(100) });
  await assert.rejects(late, { name: 'TimeoutError' });
  const gone = new Error('not any more');
  await assert.rejects(client.health({ signal: AbortSignal.abort(gone) }), gone);
});

test('handlers', async () => {
  const code = "def handler(event, context): return {'sum': sum(event['of']), 'name': context.function_name}";
  assert.deepEqual(await client.call(code, { of: [1, 2] }, { context: { function_name: 'adder' } }), { sum: 3, name: 'adder' });
  await assert.rejects(client.call(code, {}), { name: 'ProgramFailed', message: /KeyError/ });
});

test('the rest of the daemon', async () => {
  assert.equal((await client.health()).status, 'healthy');
  assert.ok((await client.templates()).some((template) => template.id === 'python-basic'));
  assert.ok((await client.languages()).some((language) => language.name === 'python' && language.available));
  assert.ok((await client.policies()).length && 'tenant' in (await client.identity()));
  assert.equal((await client.explain({ code: '1', resources: { memory: '64Mi' } })).allowed, true);
  assert.ok(Array.isArray(await client.pools()));
  assert.ok((await client.request('GET', '/api/v1/runtimes')).runtimes.length);
  assert.equal(client.address, process.env.MILLIBOX_SOCKET);
});

test('secrets', async () => {
  const made = await client.setSecret('token', 'a-secret-value', ['api.example.com'], { header: 'X-Key', format: '{value}' });
  assert.deepEqual(made.hosts, ['https://api.example.com:443']);
  assert.ok(!JSON.stringify(made).includes('a-secret-value'));
  assert.deepEqual((await client.secrets()).map((found) => found.name), ['token']);
  // No policy allows it.
  await assert.rejects(client.runCode('1', { secrets: ['token'] }), (error) => error instanceof millibox.ApiError && /secret/.test(error.message));
  await client.deleteSecret('token');
  assert.deepEqual(await client.secrets(), []);
});

test('refusals have types', async () => {
  await assert.rejects(client.runCode('1', { memory: 'lots' }), (error) => {
    assert.ok(error instanceof errors.InvalidParameterError && error instanceof millibox.MilliboxError);
    assert.deepEqual([error.name, error.status, error.field, error.code],
      ['InvalidParameterError', 400, 'resources.memory', 'Sandbox.InvalidParameter']);
    return error.requestId && error.solution && error.message.includes('resources.memory');
  });
  await assert.rejects(client.runCode('1', { template: 'none' }), { name: 'InvalidParameterError', message: /no template has/ });
  await assert.rejects(client.execution('exec_0').info(), (error) => error instanceof errors.NotFoundError);
  await assert.rejects(client.request('POST', '/api/v1/execute', { codes: '1' }), { name: 'UnknownFieldError', message: /codes/ });
});

test('over TCP', async () => {
  const other = new Client({ url: process.env.MILLIBOX_TEST_URL });
  assert.equal((await other.runCode('print(1)')).text, '1\n');
  await other.close();
});

test('no daemon', async () => {
  for (const options of [{ socket: '/nonexistent/sock' }, { url: 'http://127.0.0.1:1' }]) {
    const other = new Client({ ...options, retries: 1 });
    await assert.rejects(other.health(), { name: 'ConnectError', message: /could not reach the daemon/ });
    await other.close();
  }
});

test('wrong settings', () => {
  const cases = [
    [{ url: 'localhost:8000' }, /not a URL/],
    [{ url: 'http://a', socket: '/b' }, /not both/],
    [{ apiKey: 'a\r\nb: c' }, /valid key/],
    [{ socket: `/${'x'.repeat(120)}` }, /longer than/],
    [{ url: 'https://a', caFile: '/nonexistent' }, /certificates/],
  ];
  for (const [options, message] of cases) assert.throws(() => new Client(options), { name: 'MilliboxError', message });
});

test('settings of the environment', async () => {
  const { findEndpoint } = await import(new URL('node_modules/millibox/dist/node/endpoint.js', import.meta.url));
  const file = join(mkdtempSync(join(tmpdir(), 'millibox-key-')), 'key');
  writeFileSync(file, 'mb_key\n');
  assert.deepEqual(findEndpoint({}, { MILLIBOX_API_KEY_FILE: file, MILLIBOX_SOCKET: '/a' }),
    { url: 'http://localhost', socket: '/a', apiKey: 'mb_key', caFile: null });
  assert.deepEqual(findEndpoint({}, { MILLIBOX_URL: 'https://b/', MILLIBOX_API_KEY: 'k', MILLIBOX_CA_FILE: '/ca' }),
    { url: 'https://b', socket: null, apiKey: 'k', caFile: '/ca' });
  assert.equal(findEndpoint({ socket: '/mine' }, { MILLIBOX_SOCKET: '/a' }).socket, '/mine');
  assert.throws(() => findEndpoint({}, { MILLIBOX_API_KEY_FILE: '/nonexistent' }), /could not read the key/);
});

test('every error code has a class', () => {
  for (const [code, made] of Object.entries(errors.CLASSES)) {
    const error = errors.fromAnswer(errors.STATUS[code], { error_code: code, error_detail: 'why' });
    assert.ok(error.constructor === made && error.code === code && error.name === made.name && error.message.includes('why'));
  }
});

test('clients end with their block', async () => {
  const other = new Client();
  await other.health();
  await other[Symbol.asyncDispose]();
});
