// SPDX-License-Identifier: Apache-2.0
// Runs one JavaScript program as `node main.js` would, and reports its last value or its error.
//
// If the path of the program is "-", the process is started before its program is known (docs/protocol.md, "A prepared
// program"): it loads and compiles everything, waits for its request, and behaves as usual from then on. It announces
// its end instead of exiting, which takes longer than most programs run.
'use strict';
const fs = require('fs');
const { Writable } = require('stream');
const handlers = require('./handler.js');
const program = require('./program.js');
const report = require('./report.js');

const { process } = globalThis; // the program may delete it

const SOCKET = '/run/millibox/report.sock';
const CHANNEL = 3;
const STDIN = 4;
const UNSETTLED = 13; // Node's exit code for a top-level await that never ends
const SAMPLE = 'const sample = [1, "a"]; for (const x of sample) String(x); await 0; sample';

let addon;
const loadAddon = () => (addon ||= require('../addon.node'));
const pid = process.pid;
let end; // of the program's own code
let failed; // JSON
let isPrepared = false;
let isPrinting = false; // Node.js prints an error after the event

const write = (text) => {
  try {
    fs.writeSync(2, text);
  } catch {
    // without a reader
  }
};

function sendReport() {
  const { value, answered } = end || {};
  const text = report.render({ value: failed ? undefined : value, answered, error: failed, shown: program.takeShown() });
  if (text) loadAddon().report(SOCKET, Buffer.from(text));
}

// At the end of the process, whatever caused it.
function onExit(code) {
  if (process.pid !== pid) return;
  try {
    // Node.js does not wait for a promise that the program itself does not await.
    if (!end && !program.hasFinished()) {
      write('Warning: Detected unsettled top-level await\n');
      if (!code) process.exitCode = code = UNSETTLED;
    }
    sendReport();
    // Another listener may have something to say after this one.
    if (!isPrepared || isPrinting || process.listenerCount('exit') !== 1) return;
    fs.closeSync(1);
    fs.closeSync(2);
    addon.send(CHANNEL, Buffer.from(`done ${code & 0xff}`));
    process.reallyExit(code);
  } catch {
    // the process exits the regular way
  }
}

// Of a callback. Node.js prints it and exits, unless the program listens itself.
function onUncaught(thrown) {
  if (process.listenerCount('uncaughtException') > 0) return;
  isPrinting = true;
  failed ||= report.errorForm(report.nameError(thrown), program.describeError(thrown));
}

function fail(thrown, place, code) {
  if (process.listenerCount('uncaughtException') > 0) {
    process.emit('uncaughtException', thrown, 'uncaughtException');
    return;
  }
  const text = program.describeError(thrown, place);
  write(text + `\nNode.js ${process.version}\n`);
  failed = report.errorForm(report.nameError(thrown), text);
  process.exit(code);
}

async function run(file, args, translate) {
  const source = handlers.split(fs.readFileSync(file));
  const name = program.HOME + '/' + (source.asked.name || file.slice(file.lastIndexOf('/') + 1));
  process.argv = [process.execPath, name, ...args];
  program.setModule(name);
  process.on('exit', onExit);
  // Node.js itself would show the translated line.
  if (translate) process.setUncaughtExceptionCaptureCallback((thrown) => fail(thrown, undefined, 1));
  else process.on('uncaughtExceptionMonitor', onUncaught);
  const ended = await program.work(source, name, translate);
  end = ended;
  if ('thrown' in ended) fail(ended.thrown, ended.place, ended.code);
}

// Everything that does not depend on the program.
async function warm(translate) {
  await program.work({ code: translate ? SAMPLE : SAMPLE + '; import("fs")', asked: {} }, 'sample', translate);
  report.render({ value: [1, { a: 'b' }], shown: [] });
  program.describeError(new Error('sample'));
  new console.Console(new Writable({ write: (bytes, encoding, done) => done() })).log('%s', 1, { a: 'b' });
  process.stdout.write('');
}

async function wait(translate) {
  loadAddon().replace(CHANNEL, CHANNEL);
  await warm(translate);
  addon.send(CHANNEL, Buffer.from('ready'));
  addon.wait(CHANNEL, false);
  const words = addon.receive(CHANNEL)[0].toString().split('\0');
  if (words.length < 3) process.reallyExit(0);
  const [verb, , ...path] = words[0].split(' ');
  if (verb === 'stdin') addon.replace(STDIN, 0);
  fs.closeSync(STDIN);
  isPrepared = true;
  return [path.join(' '), words.slice(words.indexOf('', 1) + 1, -1)];
}

// Of the request: they precede the program's path.
function takeOptions() {
  const given = { __proto__: null };
  while ((process.argv[2] || '').startsWith('--')) {
    const [, name, value] = /^--([^=]*)=?(.*)$/.exec(process.argv.splice(2, 1)[0]);
    given[name] = value;
  }
  const version = process.versions.node;
  if (given.node && !(version + '.').startsWith(given.node.replace(/^v/, '') + '.')) {
    write(`options.node_version: the box has Node.js ${version}, not ${given.node}\n`);
    process.exit(1);
  }
  return given;
}

async function start(translate) {
  program.prepare();
  const [file, args] = process.argv[2] === '-' ? await wait(translate) : [process.argv[2], process.argv.slice(3)];
  await run(file, args, translate);
}

module.exports = { start, takeOptions };
if (require.main === module) {
  takeOptions();
  start();
}
