// SPDX-License-Identifier: Apache-2.0
// The persistent JavaScript runner: evaluates pieces of code one after another in one process.
//
// Requests arrive on descriptor 3 (docs/protocol.md, "The request channel"). Between them the event loop runs: timers,
// servers and promises of earlier runs continue. What they print goes to the run that is under way, or else to the next.
'use strict';
const fs = require('fs');
const net = require('net');
const { Readable } = require('stream');
const addon = require('../addon.node');
const handlers = require('./handler.js');
const program = require('./program.js');
const report = require('./report.js');

const { process } = globalThis; // the program may delete it

const CHANNEL = 3;
const MAIN = program.HOME + '/main.js';
const PIECE_MAX = 60 << 10;
const LATE_MAX = 64 << 10;
const INTERRUPTED = 130;
const HIGH = 64; // descriptors of ours are above those that programs count on

let current; // {id, finish}: the run that is under way
let cells = 0;
let late = []; // what was printed between runs: [descriptor, bytes]
let lateSize = 0;
let input; // process.stdin of this run
let exitCode; // of process.exit() in this run
let channel = CHANNEL;
let nothing; // /dev/null

const { pid } = process;
const realExit = process.reallyExit;

function write(fd, bytes) {
  for (let at = 0; at < bytes.length;) {
    try {
      at += fs.writeSync(fd, bytes, at);
    } catch (error) {
      if (error.code === 'EAGAIN') addon.wait(fd, true);
      else return;
    }
  }
}

const writeError = (text) => write(2, Buffer.from(text));

function print(fd, bytes) {
  if (current) return write(fd, bytes);
  if (lateSize < LATE_MAX) {
    late.push([fd, Buffer.from(bytes.subarray(0, LATE_MAX - lateSize))]);
    lateSize += bytes.length;
  }
  return undefined;
}

// process.stdout and process.stderr of all runs. Descriptors 1 and 2 are those of the run.
function makeOutput(stream, fd) {
  stream._write = (bytes, encoding, callback) => {
    print(fd, Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes, encoding));
    callback();
  };
  stream._destroy = (error, callback) => callback(error);
  stream.destroy = () => stream; // a program that closes it must not cost the next one its output
  stream.end = (...args) => {
    if (args.length && typeof args[0] !== 'function' && args[0] !== undefined && args[0] !== null) stream.write(args[0]);
    const callback = args.find((arg) => typeof arg === 'function');
    if (callback) process.nextTick(callback);
    return stream;
  };
}

function openInput() {
  if (!current) return Readable.from([]);
  const stream = new net.Socket({ fd: addon.copy(0, HIGH), readable: true, writable: false, manualStart: true });
  stream.fd = 0;
  return stream;
}

function defineInput() {
  Object.defineProperty(process, 'stdin', {
    configurable: true, enumerable: true,
    get: () => (input ||= openInput()),
    set: (stream) => {
      input = stream;
    },
  });
}

function setVariables(variables) {
  return variables.map((word) => {
    const [name] = word.split('=', 1);
    const before = process.env[name];
    process.env[name] = word.slice(name.length + 1);
    return [name, before];
  });
}

function restoreVariables(replaced) {
  for (const [name, before] of replaced.reverse()) {
    if (before === undefined) delete process.env[name];
    else process.env[name] = before;
  }
}

function pointAtNull() {
  for (const fd of [0, 1, 2]) addon.replace(nothing, fd);
}

function sendReport(id, text) {
  const bytes = Buffer.from(text);
  const head = Buffer.from(`report ${id}\n`);
  for (let at = 0; at < bytes.length; at += PIECE_MAX)
    addon.send(channel, Buffer.concat([head, bytes.subarray(at, at + PIECE_MAX)]));
}

function describe({ thrown, place, value, answered }, isError) {
  let error;
  if (isError) {
    const text = program.describeError(thrown, place);
    writeError(text);
    error = report.errorForm(report.nameError(thrown), text);
  }
  return report.render({ value, answered, error, shown: program.takeShown() });
}

// Ends the run @id, once. @end: as of program.work().
function finish(id, end) {
  if (!current || current.id !== id) return;
  const { replaced } = current;
  const text = describe(end, 'thrown' in end);
  const { code } = end;
  addon.arm(false); // nothing may end this half-way
  current = undefined;
  restoreVariables(replaced);
  if (input) input.destroy();
  input = undefined;
  pointAtNull();
  if (text) sendReport(id, text);
  addon.send(channel, Buffer.from(`done ${id} ${code}`));
  addon.arm(true); // a callback may compute without end
}

function begin([bytes, ...fds]) {
  addon.arm(false);
  const words = bytes.toString().split('\0').slice(0, -1);
  const [, id, ...path] = words[0].split(' ');
  const border = words.indexOf('', 1);
  fds.forEach((fd, i) => {
    addon.replace(fd, i);
    fs.closeSync(fd);
  });
  current = { id: Number(id), replaced: setVariables(words.slice(1, border)) };
  process.argv = [process.execPath, MAIN, ...words.slice(border + 1)];
  exitCode = undefined;
  process.exitCode = undefined;
  program.takeShown();
  for (const [fd, text] of late) write(fd, text);
  late = [];
  lateSize = 0;
  return path.join(' ');
}

async function perform(request, translate) {
  const file = begin(request);
  const { id } = current;
  let end;
  try {
    const source = handlers.split(fs.readFileSync(file));
    const name = source.asked.name ? `${program.HOME}/${source.asked.name}` : undefined;
    program.setName((process.argv[1] = name || MAIN));
    if ('event' in source.asked && !('optional' in source.asked)) program.forgetHandler();
    cells++;
    addon.arm(true);
    end = await program.work(source, name || `<cell-${cells}>`, translate);
  } catch (thrown) {
    end = { code: 1, thrown };
  }
  finish(id, end);
}

function onRequest(translate) {
  let request;
  try {
    request = addon.receive(channel);
  } catch {
    realExit.call(process, 1);
  }
  if (!request) return;
  if (request[0].length === 0) realExit.call(process, 0);
  perform(request, translate).catch(() => realExit.call(process, 1)); // the program broke what the runner needs
}

// After SIGINT, or after a run ended itself.
function onInterrupt() {
  if (!current) return;
  const code = exitCode;
  exitCode = undefined;
  try {
    finish(current.id, code === undefined ? { code: INTERRUPTED, thrown: new program.Interrupted() } : { code });
  } catch {
    realExit.call(process, 1);
  }
}

// process.exit() ends the run; the session continues.
function exit(code) {
  if (process.pid !== pid) realExit.call(process, code);
  process._exiting = false;
  exitCode = (code === undefined ? process.exitCode || 0 : Number(code)) & 0xff;
  process.exitCode = undefined;
  if (!current) return;
  addon.terminate();
  for (;;); // until V8 ends it
}

// Of callbacks. They end nothing, but a run that is under way says so.
function onUncaught(thrown) {
  if (process.listenerCount('uncaughtException') > 0) process.emit('uncaughtException', thrown, 'uncaughtException');
  else print(2, Buffer.from(program.describeError(thrown)));
}

function start(translate) {
  const opened = fs.openSync('/dev/null', 'r+');
  nothing = addon.copy(opened, HIGH);
  fs.closeSync(opened);
  channel = addon.copy(CHANNEL, HIGH);
  fs.closeSync(CHANNEL);
  makeOutput(process.stdout, 1);
  makeOutput(process.stderr, 2);
  defineInput();
  program.prepare();
  program.setModule(MAIN);
  process.reallyExit = exit;
  process.setUncaughtExceptionCaptureCallback(onUncaught);
  addon.interrupts(onInterrupt);
  addon.arm(true);
  addon.watch(channel, () => onRequest(translate));
}

module.exports = { start };
if (require.main === module) start();
