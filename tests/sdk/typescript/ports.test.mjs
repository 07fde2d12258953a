// SPDX-License-Identifier: Apache-2.0
// Ports of sandboxes, and the WebSockets that carry them.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { Client, ConnectionLost, Sandbox, errors } from 'millibox';

const client = new Client();
let box;
before(async () => { box = await Sandbox.create({ client }); });
after(async () => {
  await box.close();
  await client.close();
});

// A server in the sandbox that serves one connection after the other. @body handles the socket c.
async function serve(port, body) {
  const code = `import socket\ns = socket.create_server(('127.0.0.1', ${port}))\nwhile True:\n    c, _ = s.accept()\n    ${body}\n    c.close()`;
  await box.commands.detach(['python3', '-c', code], { log: '/workspace/server.log' });
  for (let tries = 0; tries < 2000; tries++) {
    if ((await box.ports()).some((found) => found.port === port && found.isReachable)) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  assert.fail(`waited for port ${port}: ${await box.files.readText('server.log')}`);
}

test('bytes in both directions', async () => {
  await serve(8101, 'for data in iter(lambda: c.recv(65536), b""): c.sendall(data)');
  const content = randomBytes(3 << 20);
  const connection = await box.openPort(8101);
  const received = connection.readAll();
  await connection.write(content);
  await connection.write('the end');
  await connection.finish();
  assert.deepEqual(Buffer.from(await received), Buffer.concat([content, Buffer.from('the end')]));
  await connection.close();
  const again = await box.openPort(8101);
  await again.write('x');
  for await (const piece of again) {
    assert.equal(piece.toString(), 'x');
    break;
  }
  await again[Symbol.asyncDispose]();
  await assert.rejects(again.write('y'), ConnectionLost);
});

// The daemon's windows bound what is sent; the bytes are not lost.
test('a reader that is slower than the program', async () => {
  await serve(8102, 'c.sendall(bytes(8 << 20))');
  const connection = await box.openPort(8102);
  let size = 0;
  for await (const piece of connection) {
    size += piece.length;
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.equal(size, 8 << 20);
  await connection.close();
});

test('a connection that the program resets', async () => {
  await serve(8103, 'c.recv(1)');
  const connection = await box.openPort(8103);
  await connection.write('bytes that it does not read');
  await assert.rejects(connection.readAll(), { name: 'ConnectionLost', message: /reset/ });
});

test('a local port that leads there', async () => {
  const body = "c.recv(4096); c.sendall(b'HTTP/1.0 200 OK\\r\\nContent-Length: 5\\r\\n\\r\\nhello')";
  await serve(8104, body);
  const there = await box.forward(8104);
  const answers = await Promise.all([1, 2, 3].map(async () => (await fetch(there.url)).text()));
  assert.deepEqual(answers, ['hello', 'hello', 'hello']);
  assert.equal(there.lastError, null);
  await there.close();
  await assert.rejects(fetch(there.url));
  const nowhere = await box.forward(8199);
  await assert.rejects(fetch(nowhere.url));
  assert.ok(nowhere.lastError instanceof errors.NotFoundError);
  await nowhere[Symbol.asyncDispose]();
});

test('what is refused', async () => {
  await assert.rejects(box.openPort(8199), errors.NotFoundError);
  await assert.rejects(box.openPort(0), errors.ApiError);
  await assert.rejects(box.openPort(8101, { signal: AbortSignal.abort() }), { name: 'AbortError' });
  const lost = new Client({ socket: '/nonexistent/sock' });
  await assert.rejects(lost.transport.socket('/x'), { name: 'ConnectError' });
});

// A server that upgrades, and then sends these bytes.
async function hostile(accept, ...frames) {
  const server = createServer();
  server.on('upgrade', ({ headers }, socket) => {
    const right = createHash('sha1').update(`${headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
    const answer = `HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${accept ?? right}\r\n\r\n`;
    socket.on('error', () => undefined).on('end', () => socket.end()).resume();
    socket.write(Buffer.concat([Buffer.from(answer), ...frames.map((frame) => Buffer.from(frame))]));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, client: new Client({ url: `http://127.0.0.1:${server.address().port}`, retries: 0 }) };
}

const text = (...bytes) => bytes.map((byte) => (typeof byte === 'string' ? byte.charCodeAt(0) : byte));

const FRAMES = [
  ['whole messages', [text(0x81, 2, 'h', 'i'), [0x82, 1, 7]], ['hi', 7], null],
  ['parts', [text(0x01, 1, 'h'), [0x89, 0], text(0x80, 1, 'i')], ['hi'], null],
  ['a close message', [[0x88, 2, 1011 >> 8, 1011 & 255]], [], 1011],
  ['a reserved bit', [[0xc1, 0]], [], 1002],
  ['a masked frame', [[0x81, 0x80, 0, 0, 0, 0]], [], 1002],
  ['a long control frame', [[0x89, 126, 0, 126]], [], 1002],
  ['a part of nothing', [[0x80, 0]], [], 1002],
  ['a new message within another', [[0x01, 0], [0x81, 0]], [], 1002],
  ['an unknown kind', [[0x83, 0]], [], 1002],
  ['a message that is too long', [[0x82, 127, 0, 0, 1, 0, 0, 0, 0, 0]], [], 1009],
];

for (const [name, frames, expected, code] of FRAMES) {
  test(`frames of a server: ${name}`, async () => {
    const { server, client: other } = await hostile(null, ...frames);
    const socket = await other.transport.socket('/x');
    const seen = [];
    while (seen.length < expected.length) {
      const message = await socket.next();
      seen.push(typeof message === 'string' ? message : message[0]);
    }
    assert.deepEqual(seen, expected);
    if (code !== null) assert.deepEqual([await socket.next(), socket.code], [null, code]);
    socket.close();
    server.closeAllConnections();
    server.close();
    await other.close();
  });
}

test('a server that does not speak WebSocket', async () => {
  const { server, client: other } = await hostile('wrong');
  await assert.rejects(other.transport.socket('/x'), { name: 'ConnectionLost', message: /does not speak/ });
  server.closeAllConnections();
  server.close();
});
