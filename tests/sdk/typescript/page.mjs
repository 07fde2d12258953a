// SPDX-License-Identifier: Apache-2.0
// What a page does with the SDK, in a real browser (test_browser.py). The address names the daemon, a key, and which of the groups
// below to run; the page posts the outcome of each function to its own server.
import { Client, ConnectionLost, MilliboxError, ProgramFailed, Sandbox, errors } from '/millibox/browser.js';

const asked = new URL(location.href).searchParams;
const url = asked.get('url');
const apiKey = asked.get('key') || undefined;
const client = new Client({ url, apiKey });
const ENDLESS = 'print(1, flush=True)\nimport time; time.sleep(600)';

function same(found, wanted) {
  const [a, b] = [JSON.stringify(found), JSON.stringify(wanted)];
  if (a !== b) throw new Error(`${a} is not ${b}`);
}

async function fails(promise, kind, words = '') {
  const error = await promise.then((value) => new Error(`no error but ${JSON.stringify(value)}`), (thrown) => thrown);
  const fits = typeof kind === 'string' ? error.name === kind : error instanceof kind;
  if (!fits || !String(error.message).includes(words)) throw new Error(`${error.name}: ${error.message}`, { cause: error });
  return error;
}

async function withBox(work) {
  const box = await Sandbox.create({ client });
  try {
    return await work(box);
  } finally {
    await box.close();
  }
}

// A text of a terminal or a connection, up to @words.
async function until(pieces, words) {
  const decoder = new TextDecoder();
  let shown = '';
  for (;;) {
    const next = await pieces.next();
    if (next.done) throw new Error(`it ended before '${words}': ${JSON.stringify(shown)}`);
    shown += decoder.decode(next.value, { stream: true });
    if (shown.includes(words)) return shown;
  }
}

const http = {
  async 'one program'() {
    const result = await client.runCode('print(6 * 7)\n"☃"');
    same([result.ok, result.stdout, result.json], [true, '42\n', '☃']);
  },
  async 'a program that fails'() {
    const result = await client.runCode('1 / 0');
    same([result.ok, result.error.name], [false, 'ZeroDivisionError']);
    try {
      result.raiseForStatus();
    } catch (error) {
      if (error instanceof ProgramFailed) return;
    }
    throw new Error('no ProgramFailed');
  },
  async 'refused requests'() {
    const error = await fails(client.runCode('1', { memory: 'lots' }), errors.InvalidParameterError);
    same(error.field, 'resources.memory');
    await fails(Sandbox.connect('sess_none', { client }).then((box) => box.info()), errors.SessionNotFoundError);
  },
  async 'a session'() {
    await withBox(async (box) => {
      await box.runCode('x = 41');
      same((await box.runCode('x + 1')).json, 42);
      same((await box.run('echo $((6 * 7))')).stdout, '42\n');
      same((await client.sandboxes()).some((found) => found.id === box.id), true);
    });
  },
  // Each event arrives while the program waits for the answer to it.
  async 'a stream'() {
    await withBox(async (box) => {
      const run = await box.startCode('for i in range(3):\n    print(i, flush=True)\n    input()', { stdinOpen: true });
      const seen = [];
      for await (const event of run.events()) {
        seen.push(event.kind);
        if (event.kind === 'stdout') await run.sendStdin('\n');
      }
      same(seen.filter((kind) => kind === 'stdout').length, 3);
      same(seen.at(-1), 'end');
      same((await run.wait()).stdout, '0\n1\n2\n');
    });
  },
  async files() {
    await withBox(async (box) => {
      const bytes = crypto.getRandomValues(new Uint8Array(60000));
      await box.files.write('bytes', bytes);
      await box.files.write('blob', new Blob(['of a ', 'form'], { type: 'text/plain' }));
      await box.files.write('dir ☃/pieces', (async function* () { yield new Uint8Array([1]); yield new Uint8Array([2]); })());
      same([...await box.files.read('bytes')], [...bytes]);
      same(await box.files.readText('blob'), 'of a form');
      let size = 0;
      for await (const piece of box.files.stream('dir ☃/pieces')) size += piece.length;
      same(size, 2);
      same((await box.files.list()).map(({ name, size: length }) => [name, length]).filter(([name]) => name !== 'dir ☃'), [['blob', 9], ['bytes', 60000]]);
      await box.files.remove('blob');
      same(await box.files.exists('blob'), false);
      await fails(box.files.read('none'), errors.FileNotFoundError);
      await fails(box.upload('/etc/hostname'), MilliboxError, 'no local files');
      await fails(box.download('bytes', '/tmp/x'), MilliboxError, 'no local files');
    });
  },
  // 20 MB up as a Blob, and down in pieces.
  async 'a large file'() {
    await withBox(async (box) => {
      await box.files.write('large', new Blob(Array.from({ length: 20 }, (_, i) => new Uint8Array(1 << 20).fill(i))));
      let size = 0;
      let last = -1;
      for await (const piece of box.files.stream('large')) {
        size += piece.length;
        last = piece.at(-1);
      }
      same([size, last], [20 << 20, 19]);
    });
  },
  async 'an abort ends the program'() {
    await withBox(async (box) => {
      const abort = new AbortController();
      await fails(box.runCode(ENDLESS, { timeout: 600, signal: abort.signal, onStdout: () => abort.abort() }), 'AbortError');
      // As AbortSignal.timeout() does it, but not before the program runs.
      const late = new AbortController();
      const onStdout = () => late.abort(new DOMException('late', 'TimeoutError'));
      await fails(box.runCode(ENDLESS, { timeout: 600, signal: late.signal, onStdout }), 'TimeoutError');
      same((await box.runCode('"next"')).json, 'next'); // it would wait for a program that runs on
    });
  },
  async 'no server listens'() {
    const none = new Client({ url: 'http://127.0.0.1:1', retries: 0 });
    await fails(none.health(), ConnectionLost);
  },
};

const sockets = {
  async 'a terminal'() {
    await withBox(async (box) => {
      const terminal = await box.pty(undefined, { rows: 20, cols: 70, env: { TERM: 'dumb' } });
      const pieces = terminal[Symbol.asyncIterator]();
      await terminal.send('stty size\n');
      await until(pieces, '\n20 70\r\n');
      await terminal.resize(30, 100);
      await terminal.send('stty size\n');
      await until(pieces, '\n30 100\r\n');
      await terminal.send('exit 3\n');
      while (!(await pieces.next()).done);
      same((await terminal.wait()).exitCode, 3);
    });
  },
  async 'a port'() {
    await withBox(async (box) => {
      const code = "import socket\ns = socket.create_server(('127.0.0.1', 8101))\nprint('up', flush=True)\nc, _ = s.accept()\n"
        + 'for data in iter(lambda: c.recv(65536), b""): c.sendall(data)\nc.close()';
      const server = await box.commands.start(['python3', '-c', code]);
      for await (const text of server) if (text.includes('up')) break;
      const connection = await box.openPort(8101);
      const sent = crypto.getRandomValues(new Uint8Array(50000));
      const received = connection.readAll();
      await connection.write(sent);
      await connection.finish();
      same([...await received], [...sent]);
      await connection.close();
    });
  },
  async 'a port without a listener'() {
    await withBox(async (box) => {
      const error = await box.openPort(8102).then((connection) => connection.readAll()).then(() => null, (thrown) => thrown);
      if (!(error instanceof MilliboxError)) throw new Error(`not an error of the SDK: ${error}`);
    });
  },
};

const key = {
  async 'a wrong key'() {
    const wrong = new Client({ url, apiKey: apiKey.slice(0, -1) + (apiKey.endsWith('a') ? 'b' : 'a') });
    await fails(wrong.runCode('1'), errors.UnauthorizedError);
    await fails(new Client({ url }).runCode('1'), errors.UnauthorizedError);
    // The browser reports nothing but a socket that did not open.
    await withBox(async (box) => {
      const other = await Sandbox.connect(box.id, { client: wrong }).catch(() => null);
      if (other) await fails(other.openPort(80), MilliboxError);
    });
  },
};

// A page whose origin the daemon does not know.
const stranger = {
  async 'every request fails'() {
    await fails(client.runCode('print(1)'), ConnectionLost);
    await fails(client.health(), ConnectionLost);
  },
};

const groups = { http, sockets, key, stranger };
const outcomes = {};
for (const group of asked.get('groups').split(',')) {
  for (const [name, work] of Object.entries(groups[group])) {
    try {
      await work();
      outcomes[name] = 'passed';
    } catch (error) {
      outcomes[name] = `${error.name}: ${error.message}\n${error.stack}`;
    }
  }
}
await fetch('/outcomes', { method: 'POST', body: JSON.stringify({ agent: navigator.userAgent, outcomes }) });
