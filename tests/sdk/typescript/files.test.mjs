// SPDX-License-Identifier: Apache-2.0
// Files of sandboxes, both ways; archives that are hostile.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { after, before, test } from 'node:test';
import { Client, Sandbox, UnsafeArchive, errors } from 'millibox';

const { nodeFiles } = await import(new URL('node_modules/millibox/dist/node/local_files.js', import.meta.url));
const { makeHeader, padding } = await import(new URL('node_modules/millibox/dist/node/tar.js', import.meta.url));
const top = fs.mkdtempSync(join(tmpdir(), 'millibox-files-'));
const client = new Client();
let box;
let count = 0;

before(async () => { box = await Sandbox.create({ client }); });
after(async () => {
  await box.close();
  await client.close();
  fs.rmSync(top, { recursive: true });
});

function directory() {
  const path = join(top, String(count++));
  fs.mkdirSync(path);
  return path;
}

const text = (bytes) => new TextDecoder().decode(bytes);

test('files', async () => {
  const { files } = box;
  assert.equal((await files.write('a/ü b.txt', 'text')).size, 4);
  assert.equal((await files.write('/workspace/a/bytes', new Uint8Array([0, 1, 2, 3]), { mode: 0o755 })).mode, 0o755);
  assert.equal((await files.write('a/pieces', [Buffer.from('12'), Buffer.from('34')])).size, 4);
  assert.equal((await files.write('a/file', Readable.from([Buffer.from('fi'), Buffer.from('le')]))).size, 4);
  assert.equal((await files.write('a/blob', new Blob(['blob']))).size, 4);
  assert.equal(await files.readText('a/ü b.txt'), 'text');
  assert.deepEqual([...await files.read('a/bytes', { offset: 1, length: 2 })], [1, 2]);
  assert.deepEqual([...await files.read('a/bytes', { offset: 2 })], [2, 3]);
  assert.equal((await files.read('a/bytes', { offset: 9 })).length + (await files.read('a/bytes', { length: 0 })).length, 0);
  assert.deepEqual((await files.list('a')).map((found) => found.name), ['blob', 'bytes', 'file', 'pieces', 'ü b.txt']);
  const below = (await files.list('', { recursive: true })).map((found) => found.path);
  assert.ok(below.includes('a') && below.includes('a/file'));
  const pieces = [];
  for await (const piece of files.stream('a/pieces')) pieces.push(piece);
  assert.equal(text(Buffer.concat(pieces)), '1234');
  assert.ok((await files.mkdir('b/c')).isDir && (await files.mkdir('./b/c')).isDir);
  await assert.rejects(files.mkdir('b', { parents: false }), errors.ApiError);
  assert.equal((await files.move('a/file', 'b/moved')).path, 'b/moved');
  await assert.rejects(files.move('a/bytes', 'b/moved'), errors.StateConflictError);
  assert.equal((await files.move('a/bytes', 'b/moved', { replace: true })).size, 4);
  assert.deepEqual([await files.exists('b/moved'), await files.exists('a/file'), (await files.stat('b')).type], [true, false, 'directory']);
  await files.remove('b/moved');
  await assert.rejects(files.remove('b'), errors.ApiError);
  await files.remove('b', { recursive: true });
  await assert.rejects(files.remove('b'), errors.FileNotFoundError);
  await assert.rejects(files.read('../etc/passwd'), { name: 'MilliboxError', message: /must not contain/ });
});

test('a source that fails is the error, and changes nothing', async () => {
  await box.files.write('kept', 'as before');
  async function* source() {
    yield Buffer.from('new');
    throw new RangeError('mine');
  }
  await assert.rejects(box.files.write('kept', source()), { name: 'RangeError', message: 'mine' });
  assert.equal(await box.files.readText('kept'), 'as before');
});

test('an aborted transfer', async () => {
  const abort = new AbortController();
  async function* endless() {
    for (let number = 0; ; number++) {
      if (number === 20) abort.abort();
      yield Buffer.alloc(65536);
    }
  }
  await assert.rejects(box.files.write('endless', endless(), { signal: abort.signal }), { name: 'AbortError' });
  assert.equal(await box.files.exists('endless'), false);
  await box.files.write('large', new Uint8Array(4 << 20));
  for await (const piece of box.files.stream('large')) {
    assert.ok(piece.length);
    break; // the connection is given up, and the next request works
  }
  assert.equal((await box.files.stat('large')).size, 4 << 20);
});

test('a full disk ends an upload', async () => {
  const small = await Sandbox.create({ client, memory: '64Mi', disk: '4Mi' });
  async function* pieces() {
    for (let number = 0; number < 512; number++) yield Buffer.alloc(65536);
  }
  await assert.rejects(small.files.write('big', pieces()), errors.InsufficientStorageError);
  assert.ok((await small.runCode('1')).ok);
  await small.close();
});

test('many files are listed in pages', async () => {
  (await box.run('mkdir many; cd many; seq -f f%04g 1500 | xargs touch; cd ..')).raiseForStatus();
  const expected = Array.from({ length: 1500 }, (_, number) => `f${String(number + 1).padStart(4, '0')}`);
  assert.deepEqual((await box.files.list('many')).map((found) => found.name), expected);
});

test('directories both ways', async () => {
  const here = directory();
  const source = join(here, 'source');
  const deep = join(source, 'deep', 'd'.repeat(120));
  fs.mkdirSync(join(source, 'empty'), { recursive: true });
  fs.mkdirSync(deep, { recursive: true });
  fs.writeFileSync(join(deep, 'ünï'), Buffer.alloc(100_000, 'content'));
  fs.writeFileSync(join(source, 'run.sh'), 'echo ran', { mode: 0o755 });
  fs.symlinkSync('run.sh', join(source, 'link'));
  fs.linkSync(join(source, 'run.sh'), join(source, 'second'));
  await box.upload(source);
  assert.equal((await box.run('cd /workspace/source && ./run.sh && ./link && ./second')).stdout, 'ran\nran\nran\n');
  await box.download('source', join(here, 'back'));
  const names = fs.readdirSync(source, { recursive: true }).sort();
  assert.deepEqual(fs.readdirSync(join(here, 'back'), { recursive: true }).sort(), names);
  for (const name of names.filter((each) => fs.lstatSync(join(source, each)).isFile())) {
    assert.deepEqual(fs.readFileSync(join(here, 'back', name)), fs.readFileSync(join(source, name)));
  }
  assert.equal(fs.readlinkSync(join(here, 'back/link')), 'run.sh');
  fs.accessSync(join(here, 'back/run.sh'), fs.constants.X_OK);
});

test('single files both ways', async () => {
  const here = directory();
  fs.writeFileSync(join(here, 'a'), 'content');
  await box.upload(join(here, 'a'), 'x/y');
  await box.download('x/y', join(here, 'b'));
  fs.mkdirSync(join(here, 'into'));
  await box.download('x/y', join(here, 'into'));
  assert.deepEqual([fs.readFileSync(join(here, 'b'), 'utf8'), fs.readFileSync(join(here, 'into/y'), 'utf8')], ['content', 'content']);
  await assert.rejects(box.download('none', join(here, 'c')), errors.FileNotFoundError);
  await assert.rejects(box.upload(join(here, 'none')), { code: 'ENOENT' });
  assert.deepEqual(fs.readdirSync(here).sort(), ['a', 'b', 'into']);
});

test('a large file', async () => {
  const here = directory();
  const content = Buffer.alloc(32 << 20);
  for (let at = 0; at < content.length; at += 4) content.writeUInt32BE(at, at);
  fs.writeFileSync(join(here, 'large'), content);
  await box.upload(join(here, 'large'));
  await box.download('large', join(here, 'back'));
  assert.ok(fs.readFileSync(join(here, 'back')).equals(content));
  await box.files.remove('large');
});

test('links out of a sandbox are refused', async () => {
  const here = directory();
  (await box.run('cd /workspace; mkdir out; ln -s /etc/passwd out/link; echo x > out/file')).raiseForStatus();
  await assert.rejects(box.download('out', join(here, 'back')), { name: 'UnsafeArchive', message: /leads outside/ });
  assert.ok(!fs.existsSync(join(here, 'back/link')));
});

// An archive with entries of a name, a type and a target or content.
async function* archive(...entries) {
  for (const [name, type, data] of entries) {
    const header = Buffer.from(makeHeader({ kind: type === '2' ? 'symlink' : 'file', name, link: type === '0' ? '' : data, size: type === '0' ? data.length : 0, mode: 0o777 }));
    header.write(type, header.length - 512 + 156);
    yield withSum(header);
    if (type === '0') yield Buffer.concat([Buffer.from(data), padding(data.length)]);
  }
  yield Buffer.alloc(1024);
}

function withSum(header) {
  const block = header.subarray(header.length - 512);
  block.fill(' ', 148, 156);
  block.write(`${block.reduce((sum, byte) => sum + byte, 0).toString(8).padStart(6, '0')}\0 `, 148);
  return header;
}

const HOSTILE = [
  [['../out', '0', 'x']],
  [['/tmp/out', '0', 'x']],
  [['a', '2', '/etc']],
  [['a/b', '2', '../../x']],
  [['a', '2', 'b/../../x']],
  [['a/b/up', '2', '../..'], ['c', '2', 'a/b/up/../outside']],
  [['a', '1', '/etc/passwd']],
  [['a', '3', '']],
  [['a', '6', '']],
  [['there/file', '0', 'x']],
  [[`there/${'d'.repeat(200)}`, '0', 'x']],
];

for (const entries of HOSTILE) {
  test(`a hostile archive: ${JSON.stringify(entries).slice(0, 60)}`, async () => {
    const here = directory();
    fs.mkdirSync(join(here, 'outside'));
    fs.mkdirSync(join(here, 'into'));
    fs.symlinkSync(join(here, 'outside'), join(here, 'into/there'));
    await assert.rejects(nodeFiles.unpack(join(here, 'into'), archive(...entries)), UnsafeArchive);
    assert.deepEqual(fs.readdirSync(join(here, 'outside')), []);
    assert.ok(!fs.existsSync(join(here, 'out')));
  });
}

test('broken archives', async () => {
  const whole = [];
  for await (const piece of archive(['a', '0', 'content'])) whole.push(piece);
  const bytes = Buffer.concat(whole);
  const torn = async function* (end) { yield bytes.subarray(0, end); };
  for (const end of [0, 100, 512, 515, 600, 1030]) await assert.rejects(nodeFiles.unpack(directory(), torn(end)), UnsafeArchive);
  const wrong = Buffer.from(bytes);
  wrong[0] = 'b'.charCodeAt(0);
  await assert.rejects(nodeFiles.unpack(directory(), (async function* () { yield wrong; })()), /not valid/);
  // The control: whole, byte by byte.
  const into = directory();
  await nodeFiles.unpack(into, (async function* () { for (const byte of bytes) yield Buffer.of(byte); })());
  assert.equal(fs.readFileSync(join(into, 'a'), 'utf8'), 'content');
});

test('a link and then a file through it', async () => {
  const into = directory();
  await nodeFiles.unpack(into, archive(['a', '2', 'b'], ['a', '0', 'new'], ['b', '0', 'b']));
  assert.equal(fs.readFileSync(join(into, 'b'), 'utf8'), 'b');
  assert.equal(fs.statSync(join(into, 'b')).mode & 0o7777, 0o755);
});
