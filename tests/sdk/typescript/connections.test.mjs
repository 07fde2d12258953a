// SPDX-License-Identifier: Apache-2.0
// What happens when connections break.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer as createTlsServer } from 'node:https';
import { createConnection, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { ApiError, Client, ConnectionLost, Sandbox, errors } from 'millibox';

const top = mkdtempSync(join(tmpdir(), 'millibox-cut-'));
const straight = new Client();
let count = 0;
after(async () => {
  await straight.close();
  rmSync(top, { recursive: true });
});

const LINES = 600; // some come together from a busy host, and all cuts must come before the end
const CODE = `import time\nfor i in range(${LINES}): print('line', i, '.' * 60, flush=True); time.sleep(0.002)\n'the end'`;

async function listen(serve) {
  const path = join(top, `sock${count++}`);
  const server = createServer(serve);
  await new Promise((resolve) => server.listen(path, resolve));
  return { path, server };
}

// A proxy for the daemon's socket that cuts connections after some bytes of the daemon; afterwards it cuts none.
async function cutter(...limits) {
  const proxy = { cuts: 0 };
  const { path, server } = await listen((near) => {
    const far = createConnection(process.env.MILLIBOX_SOCKET);
    let limit = limits.shift();
    near.on('data', (piece) => far.write(piece));
    far.on('data', (piece) => {
      if (limit !== undefined && piece.length >= limit) {
        proxy.cuts++;
        near.end(piece.subarray(0, limit));
        far.destroy();
        return;
      }
      if (limit !== undefined) limit -= piece.length;
      near.write(piece);
    });
    near.on('close', () => far.destroy()).on('error', () => far.destroy());
    far.on('close', () => near.end()).on('error', () => near.destroy());
  });
  return Object.assign(proxy, { path, close: () => server.close() });
}

// A sandbox, and a handle of it behind a proxy. @work gets the handle.
async function cut(limits, work) {
  const box = await Sandbox.create({ client: straight });
  // The first connection is that of connect.
  const proxy = await cutter(undefined, ...limits);
  const client = new Client({ socket: proxy.path });
  try {
    const held = await Sandbox.connect(box.id, { client });
    // Its kept connection would not be cut.
    client.transport.http.close();
    await work(held);
    assert.equal(proxy.cuts, limits.length);
  } finally {
    await client.close();
    proxy.close();
    await box.close();
  }
}

for (const limits of [[2500], [2500, 700, 4000, 1500], [13000]]) {
  test(`a broken stream loses and repeats nothing: ${limits}`, async () => {
    await cut(limits, async (box) => {
      const seen = [];
      const rich = [];
      const result = await box.runCode(CODE, { onStdout: (text) => seen.push(text), onResult: (bundle) => rich.push(bundle) });
      assert.equal(seen.join(''), result.stdout);
      assert.equal(result.stdout, Array.from({ length: LINES }, (_, number) => `line ${number} ${'.'.repeat(60)}\n`).join(''));
      assert.deepEqual([rich, result.text], [result.results, "'the end'"]);
    });
  });
}

// Rich results have no numbers: the daemon sends them again with the end.
for (let limit = 1200; limit < 2400; limit += 200) {
  test(`the end of a stream is not repeated: ${limit}`, async () => {
    await cut([limit], async (box) => {
      const rich = [];
      const code = "import sys; sys.stdout.buffer.write(b'a\\xe2\\x82'); 'x' * 300";
      await box.runCode(code, { onResult: (bundle) => rich.push(Object.keys(bundle).join()) });
      assert.deepEqual(rich, ['text/plain']);
    });
  });
}

test('an answer that breaks is requested again where that is safe', async () => {
  const proxy = await cutter(120, 120);
  const client = new Client({ socket: proxy.path });
  assert.equal((await client.health()).status, 'healthy');
  assert.equal(proxy.cuts, 2);
  await client.close();
  proxy.close();
});

// The daemon may run the program: the caller must decide.
test('a broken request without an id is not repeated', async () => {
  const proxy = await cutter(1);
  const client = new Client({ socket: proxy.path });
  await assert.rejects(client.runCode('print(1)'), ConnectionLost);
  assert.equal(proxy.cuts, 1);
  await client.close();
  proxy.close();
});

function answerOf(status, body, more = '') {
  return `HTTP/1.1 ${status} X\r\nContent-Length: ${body.length}\r\nConnection: close\r\n${more}\r\n${body}`;
}

const FINE = answerOf(200, '{"a": 1}');
// The daemon has begun nothing, and says when to come again.
const BUSY = answerOf(429, '{"error_code": "Sandbox.TooManyRequests", "retry_after": 0}', 'Retry-After: 0\r\n');
const FULL = answerOf(503, '{"error_code": "Sandbox.Unavailable", "retry_after": 0}', 'Retry-After: 0\r\n');
// Time alone changes nothing, or something has begun.
const NEVER = answerOf(429, '{"error_code": "Sandbox.QuotaExceeded", "retry_after": null}');
const LOST = answerOf(503, '{"error_code": "Sandbox.AgentLost", "retry_after": null}');
const LATE = answerOf(429, '{"error_code": "Sandbox.TooManyRequests", "retry_after": 3600}', 'Retry-After: 3600\r\n');
const FAILED = answerOf(500, '{"error_code": "Sandbox.InternalError"}');

// A server that gives each connection the next answer of a list. null: close without an answer.
async function scripted(answers) {
  const requests = [];
  const { path, server } = await listen((socket) => {
    let data = '';
    socket.on('error', () => undefined);
    socket.on('data', (piece) => {
      data += piece;
      if (!data.includes('\r\n\r\n') || (data.startsWith('POST') && !data.endsWith('{}'))) return;
      requests.push(data.split(' ')[0]);
      data = '';
      const answer = answers.shift();
      if (answer !== 'wait') socket.end(answer ?? undefined);
    });
  });
  return { path, server, requests };
}

const AGAIN = [
  ['GET', [null, FINE], null],
  ['DELETE', [null, null, FINE], null],
  ['POST', [null], ConnectionLost], // the daemon may have served it
  ['POST', [...Array(9).fill(BUSY), FULL, FINE], null], // as often as the time allows
  ['GET', [FULL, null, BUSY, FINE], null],
  ['POST', [NEVER], errors.QuotaExceededError],
  ['GET', [LOST], errors.AgentLostError],
  ['POST', [LATE], errors.TooManyRequestsError], // after the time that the caller gives it
  ['GET', [FAILED], errors.InternalError],
  ['GET', [null, null, null, null], ConnectionLost],
  ['GET', [answerOf(502, "<html>a proxy's page</html>")], ApiError],
  ['GET', [answerOf(418, '{"error_code": "Sandbox.Newer", "error_detail": "d"}')], ApiError],
];

AGAIN.forEach(([method, answers, failure], number) => {
  test(`what is sent again: ${number}`, async () => {
    const expected = answers.map(() => method);
    const served = await scripted([...answers]);
    const client = new Client({ socket: served.path });
    const request = client.request(method, '/x', method === 'POST' ? {} : undefined);
    if (failure) await assert.rejects(request, failure);
    else assert.deepEqual(await request, { a: 1 });
    assert.deepEqual(served.requests, expected);
    await client.close();
    served.server.close();
  });
});

// As the daemon does with a connection that gives way to another.
test('a kept connection that is answered meanwhile is not used again', async () => {
  let sockets = 0;
  let given;
  const gone = new Promise((resolve) => (given = resolve));
  const { path, server } = await listen((socket) => {
    const isFirst = sockets++ === 0;
    socket.on('error', () => undefined);
    socket.once('data', () => {
      socket.write(FINE.replace('Connection: close\r\n', ''));
      if (!isFirst) return;
      socket.on('close', given);
      setImmediate(() => socket.write(BUSY));
    });
  });
  const client = new Client({ socket: path });
  assert.deepEqual(await client.request('POST', '/x', {}), { a: 1 });
  await gone;
  assert.deepEqual(await client.request('POST', '/x', {}), { a: 1 });
  assert.equal(sockets, 2);
  await client.close();
  server.close();
});

test('a daemon that does not answer', async () => {
  const served = await scripted(['wait']);
  const client = new Client({ socket: served.path, timeout: 0.2, retries: 0 });
  await assert.rejects(client.health(), { name: 'ConnectionLost', message: /in time/ });
  await client.close();
  served.server.close();
});

test('a server is verified by its certificate', async () => {
  const [key, cert] = ['key.pem', 'cert.pem'].map((name) => join(top, name));
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'];
  execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2',
    '-keyout', key, '-out', cert, ...subject], { stdio: 'ignore' });
  const seen = [];
  const server = createTlsServer({ key: readFileSync(key), cert: readFileSync(cert) }, (request, answer) => {
    seen.push(`${request.url} ${request.headers.authorization}`);
    answer.end('{"status": "healthy"}');
  });
  server.on('upgrade', (request, socket) => socket.end('HTTP/1.1 409 X\r\nContent-Length: 0\r\n\r\n'));
  await new Promise((resolve) => server.listen(0, 'localhost', resolve));
  const { port } = server.address();
  const url = `https://localhost:${port}/below/`;
  const trusting = new Client({ url, caFile: cert, apiKey: 'mb_key', retries: 0 });
  assert.equal((await trusting.health()).status, 'healthy');
  assert.deepEqual(seen, ['/below/api/v1/health Bearer mb_key']);
  await assert.rejects(trusting.transport.socket('/x'), { name: 'ApiError', status: 409 });
  const doubting = new Client({ url, apiKey: 'mb_key', retries: 0 });
  await assert.rejects(doubting.health(), { name: 'ConnectError', message: /self-signed/ });
  await assert.rejects(doubting.transport.socket('/x'), { name: 'ConnectError' });
  // Another name than that of the certificate.
  const other = new Client({ url: url.replace('localhost', '127.0.0.1'), caFile: cert, retries: 0 });
  await assert.rejects(other.health(), { name: 'ConnectError' });
  assert.equal(seen.length, 1);
  for (const client of [trusting, doubting, other]) await client.close();
  server.closeAllConnections();
  server.close();
});

// A server that answers when @together requests are there; it counts them.
async function counting(together) {
  const held = [];
  const server = { most: 0 };
  const listening = await listen((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => {
      held.push(socket);
      server.most = Math.max(server.most, held.length);
      // One answer for each request that comes, once so many wait; the last ones wait for no other.
      if (held.length >= together) setImmediate(() => held.splice(0).forEach((waiting) => waiting.end(FINE)));
    });
  });
  return Object.assign(server, listening);
}

for (const [connections, most] of [[1, 1], [12, 3], [80, 20]]) {
  test(`calls wait for their turn: ${connections}`, async () => {
    const served = await counting(most);
    const client = new Client({ socket: served.path, connections });
    const calls = Array.from({ length: most * 3 }, () => client.request('GET', '/x'));
    assert.deepEqual(await Promise.all(calls), calls.map(() => ({ a: 1 })));
    assert.equal(served.most, most);
    await client.close();
    served.server.close();
  });
}

test('an aborted call leaves the queue', async () => {
  const served = await scripted(['wait', FINE]);
  const client = new Client({ socket: served.path, connections: 1 });
  const [first, second] = [new AbortController(), new AbortController()];
  const calls = [first, second].map(({ signal }) => assert.rejects(client.request('GET', '/x', undefined, { signal }), { message: 'over' }));
  second.abort(new Error('over'));
  await calls[1];
  first.abort(new Error('over'));
  await calls[0];
  assert.deepEqual(await client.request('GET', '/x'), { a: 1 });
  await client.close();
  served.server.close();
  assert.throws(() => new Client({ socket: '/x', connections: 0 }), /connections/);
});
