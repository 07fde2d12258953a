// SPDX-License-Identifier: Apache-2.0
// Evaluates programs as Node's prompt would: names persist and may be declared again, `await` works everywhere, the
// value of the last expression is known, `require` and `import` both work.
//
// V8 does all that itself in the mode that its inspector offers to consoles (Runtime.evaluate with replMode). Only
// `import` and `export` are rewritten before (imports.js).
//
// The program runs in this process and can break all of it: nothing here is a security boundary.
'use strict';
const fs = require('fs');
const inspector = require('inspector');
const Module = require('module');
const path = require('path');
const { pathToFileURL } = require('url');
const { inspect, types } = require('util');
const vm = require('vm');
const handlers = require('./handler.js');
const imports = require('./imports.js');
const report = require('./report.js');

const { process } = globalThis; // the program may delete it

const HOME = '/workspace';
const LAYER = path.join(__dirname, 'layer'); // in NODE_PATH: see hideHost
const GROUP = 'program';
const { isPromise } = types;
const [Timeout, Immediate] = [[setTimeout, clearTimeout], [setImmediate, clearImmediate]].map(([make, clear]) => {
  const handle = make(() => {});
  clear(handle);
  return handle.constructor;
});
const hide = (object, name, value) =>
  Object.defineProperty(object, name, { value, writable: true, configurable: true, enumerable: false });

const MAJOR = Number(process.versions.node.split('.')[0]);
const modules = new Map(); // file: promise of what it exports
const shown = []; // MIME bundles of display()
const sources = new Map(); // name: text, for the line that an error shows
const SOURCES_MAX = 8 << 20;
const FILE_MAX = 1 << 20;
let sourcesSize = 0;
let session;
let holder; // remote id of an object whose take() gets values out of the inspector
let taken;
let loader; // of modules that Node.js would not load
let adapt = (found) => found; // what a program sees of a module that Node.js loaded
let isFinished = false; // the code has ended, the promise that is its last value is pending

class Interrupted extends Error {
  constructor() {
    super('the program was interrupted');
    this.name = 'Interrupted';
    this.stack = 'Interrupted: the program was interrupted';
  }
}

function post(method, params) {
  let answer;
  session.post(method, params, (error, result) => {
    answer = error ? { error } : { result };
  });
  return answer; // commands of a session in its own thread are answered at once
}

// The value behind what the inspector answered.
function take(remote) {
  if ('value' in remote || remote.type === 'undefined') return remote.value;
  if ('unserializableValue' in remote) {
    const text = remote.unserializableValue;
    return text.endsWith('n') ? BigInt(text.slice(0, -1)) : Number(text);
  }
  post('Runtime.callFunctionOn', {
    objectId: holder, functionDeclaration: 'function (value) { this.take(value); }', arguments: [{ objectId: remote.objectId }],
  });
  const value = taken;
  taken = undefined;
  return value;
}

function keepSource(name, text) {
  sourcesSize += text.length - (sources.get(name) || '').length;
  sources.delete(name);
  sources.set(name, text);
  for (const [old, words] of sources) {
    if (sourcesSize <= SOURCES_MAX || old === name) break;
    sources.delete(old);
    sourcesSize -= words.length;
  }
}

// A syntax error has its position here only.
function locate(thrown, details, name) {
  if (!types.isNativeError(thrown) || thrown.name !== 'SyntaxError' || details.scriptId === undefined) return undefined;
  return { name, line: details.lineNumber + 1, column: details.columnNumber };
}

function settle(error, answer, name) {
  if (error) return { thrown: new Interrupted() };
  const details = answer.exceptionDetails;
  if (!details) return { value: take(answer.result) };
  const thrown = take(details.exception || answer.result);
  return { thrown, place: locate(thrown, details, name) };
}

// Return: promise of {value} or {thrown, place}.
function evaluateScript(code, name) {
  return new Promise((resolve) => {
    session.post('Runtime.evaluate', {
      expression: code + '\n//# sourceURL=' + name, replMode: true, awaitPromise: true, objectGroup: GROUP,
    }, (error, answer) => {
      const end = settle(error, answer, name);
      post('Runtime.releaseObjectGroup', { objectGroup: GROUP });
      resolve(end);
    });
  });
}

// The value of a name that a program declared; undefined if it did not.
function lookUp(name) {
  if (!/^[\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*$/u.test(name)) return undefined;
  const { result } = post('Runtime.evaluate', {
    expression: `typeof ${name} === 'undefined' ? undefined : ${name}`, objectGroup: GROUP, silent: true });
  const value = result && !result.exceptionDetails ? take(result.result) : undefined;
  post('Runtime.releaseObjectGroup', { objectGroup: GROUP });
  return value;
}

function putExports(exported) {
  for (const [outside, inside] of exported) globalThis.module.exports[outside] = lookUp(inside);
}

// The parser's own error, for code in which V8 sees no further than the first import.
function blame(thrown, { message, loc }, name) {
  thrown.message = message.replace(/ \(\d+:\d+\)$/, '');
  thrown.stack = `SyntaxError: ${thrown.message}`;
  return { thrown, place: { name, line: loc.line, column: loc.column } };
}

// Evaluates @source. A promise as the last value is part of the program: its end is awaited too.
// Return: promise of {value} or {thrown, place}.
async function evaluate(source, name, translate) {
  keepSource(name, source);
  isFinished = false;
  let translated;
  try {
    translated = translate ? translate(source, name) : source;
  } catch (thrown) {
    return { thrown, place: thrown.place };
  }
  const { code, exported, failure } = imports.rewrite(translated.replace(/^#!/, '//'));
  const end = await evaluateScript(code, name);
  if (failure && failure.loc && end.place) return blame(end.thrown, failure, name);
  if (exported.length && !('thrown' in end)) putExports(exported);
  if (end.value instanceof Timeout || end.value instanceof Immediate) return {}; // a callback's handle is no result
  if (!isPromise(end.value)) return end;
  isFinished = true;
  try {
    return { value: await end.value };
  } catch (thrown) {
    return { thrown };
  } finally {
    isFinished = false;
  }
}

// Before a run that must define a handler of its own.
function forgetHandler() {
  const { exports } = globalThis.module || {};
  if (exports && typeof exports === 'object') delete exports.handler;
  post('Runtime.evaluate', { expression: "if (typeof handler !== 'undefined') handler = undefined", silent: true });
}

// V8 takes no name with blanks, and positions in stacks must be found again: as Node.js writes such names in URLs.
const nameScript = (name) => name.replace(/[\s():]/g, (c) => ({ '(': '%28', ')': '%29' })[c] || encodeURIComponent(c));

// Runs a source file: code, and perhaps a request to call its handler or to read its variables.
// Return: promise of {code, value, answered, thrown, place}.
async function work({ code, asked }, name, translate) {
  const end = await evaluate(code, nameScript(name), translate);
  if ('thrown' in end) return { code: 1, ...end };
  const optional = 'optional' in asked;
  if (!('outputs' in asked) && !('event' in asked)) return { code: 0, ...end };
  if (optional && !handlers.isHandler(lookUp, end.value)) return { code: 0, ...end };
  return handlers.answer(asked, lookUp);
}

// Frames of the runner, of the inspector below it, and what Node.js adds around them.
const isOurs = (line) => line.includes(__dirname + '/') || / \(?node:(?:inspector|internal\/)/.test(line);

// The stack of an error without our own frames at its end.
function trim(stack) {
  const lines = stack.split('\n');
  const first = lines.findIndex((line) => /^\s+at .*\bnode:inspector:\d+:\d+\)?$/.test(line));
  const kept = first < 0 ? lines : lines.slice(0, first);
  while (kept.length > 1 && /^\s+at /.test(kept[kept.length - 1]) && isOurs(kept[kept.length - 1])) kept.pop();
  return kept.join('\n');
}

// Whether the text of @name is known, or is a file of the program.
function knowsSource(name) {
  if (sources.has(name)) return true;
  if (!name.startsWith(HOME + '/') || name.includes('/node_modules/')) return false;
  try {
    if (fs.statSync(name).size > FILE_MAX) return false;
    keepSource(name, fs.readFileSync(name, 'utf8'));
    return true;
  } catch {
    return false;
  }
}

// The first position of @stack in a program that we know.
function findPlace(stack) {
  for (const line of stack.split('\n')) {
    const found = /^\s+at .*?\(?([^\s()]+):(\d+):(\d+)\)?$/.exec(line);
    if (found && knowsSource(found[1])) return { name: found[1], line: Number(found[2]), column: Number(found[3]) - 1 };
  }
  return undefined;
}

// The line of a program, as Node.js shows it above an error.
function showPlace(place) {
  const text = (sources.get(place.name) || '').split('\n')[place.line - 1];
  if (text === undefined) return '';
  const line = report.cut(text, 500);
  const column = Math.min(place.column, line.length);
  return `${place.name}:${place.line}\n${line}\n${line.slice(0, column).replace(/[^\t]/g, ' ')}^\n\n`;
}

function describeThrown(thrown) {
  if (!types.isNativeError(thrown)) return 'Uncaught:\n' + report.describe(thrown);
  try {
    thrown.stack = trim(String(thrown.stack));
  } catch {
    // frozen
  }
  return /\n\s+at /.test(thrown.stack) ? inspect(thrown, { depth: 4, maxStringLength: 10000 }) : String(thrown.stack);
}

// What Node.js would print about an uncaught error.
function describeError(thrown, place) {
  try {
    const text = describeThrown(thrown);
    const found = place || (types.isNativeError(thrown) ? findPlace(String(thrown.stack)) : undefined);
    return (found ? showPlace(found) : '') + text + '\n';
  } catch {
    return 'Uncaught error\n';
  }
}

// The functions of a module at @file: `require`, and `import` as a function.
function makeModule(file) {
  const made = new Module(file, null);
  made.filename = file;
  made.paths = Module._nodeModulePaths(path.dirname(file));
  made._compile('module.exports = [require, (name, options) => import(name, options)];', file);
  const [require, load] = made.exports;
  made.exports = {};
  made.loaded = false;
  made.id = '.';
  return { made, require, load };
}

const adapted = async (loaded, name, require) => adapt(await loaded, name, require);

// What rewritten code of a module uses.
function makeHelper(file, exports, require, load) {
  return {
    load: (name, options) => (loader && loader(name, file)) || loadPlain(name, file) || adapted(loadLayer(name, file, options) || load(name, options), name, require),
    exports,
    meta: {
      __proto__: null, dirname: path.dirname(file), filename: file, url: pathToFileURL(file).href,
      resolve: (name) => (Module.isBuiltin && Module.isBuiltin(name) ? 'node:' + name.replace(/^node:/, '')
        : pathToFileURL(require.resolve(name)).href),
    },
    again(from, names) {
      if (typeof names === 'string') exports[names] = from;
      else if (names) for (const [inside, outside] of names) exports[outside] = from[inside];
      else for (const name of Object.keys(from)) if (name !== 'default') exports[name] = from[name];
    },
  };
}

// A .js file of the program with `import` or `export`, which Node.js takes for a module only since version 22.
function loadPlain(name, from) {
  if (MAJOR >= 22 || !/^\.{0,2}\//.test(name)) return undefined;
  const file = path.resolve(path.dirname(from), name);
  if (modules.has(file)) return modules.get(file);
  if (!file.endsWith('.js') || !fs.existsSync(file) || fs.existsSync(HOME + '/package.json')) return undefined;
  const source = fs.readFileSync(file, 'utf8');
  if (!/^\s*(?:import|export)\b/m.test(source)) return undefined;
  modules.set(file, runModule(file, source));
  return modules.get(file);
}

// A package below NODE_PATH, which `import` does not search: loaded as by a module beside that directory.
function loadLayer(name, from, options) {
  const found = /^(?:@[^/]+\/)?[^./@:][^/:]*(?=\/|$)/.exec(name);
  if (!found || !process.env.NODE_PATH || Module.builtinModules.includes(name)) return undefined;
  const has = (folder) => fs.existsSync(path.join(folder, found[0]));
  if (Module._nodeModulePaths(path.dirname(from)).some(has)) return undefined;
  const folder = process.env.NODE_PATH.split(':').find((one) => path.basename(one) === 'node_modules' && has(one));
  return folder && makeModule(path.join(path.dirname(folder), 'import.js')).load(name, options);
}

// Return: promise of what the module exports.
async function runModule(file, source) {
  const { require, load } = makeModule(file);
  const exports = { __proto__: null };
  const { code, exported, failure } = imports.rewrite(source);
  if (failure) throw Object.assign(new SyntaxError(failure.message), { stack: `SyntaxError: ${failure.message}\n    at ${file}:${failure.loc.line}:${failure.loc.column + 1}` });
  const names = exported.map(([outside, inside]) => `${imports.HELPER}.exports[${JSON.stringify(outside)}] = ${inside};`);
  const run = vm.runInThisContext(`(async function (${imports.HELPER}) { 'use strict'; ${code}\n${names.join(' ')} })`,
    { filename: file, columnOffset: -(`(async function (${imports.HELPER}) { 'use strict'; `.length) });
  await run(makeHelper(file, exports, require, load));
  return exports;
}

// Gives the program the names of a module at @file.
function setModule(file) {
  const { made, require, load } = makeModule(file);
  const { exports } = made;
  process.mainModule = require.main = made;
  for (const [name, value] of Object.entries({ require, module: made, exports, __filename: file, __dirname: path.dirname(file) }))
    hide(globalThis, name, value);
  hide(globalThis, imports.HELPER, makeHelper(file, exports, require, load));
  return made;
}

// For a run of another file in the same directory, which shares everything else with those before it.
const setName = (file) => Reflect.set(globalThis, '__filename', file); // false if the program froze it

// The inspector would store what is printed, and takes its time. Node's own methods print.
function unwrapConsole() {
  const plain = new console.Console({ stdout: process.stdout, stderr: process.stderr });
  for (const name of Object.keys(console)) if (typeof plain[name] === 'function') console[name] = plain[name];
}

function display(...values) {
  for (const value of values) if (shown.length < 100) shown.push(report.forms(value)[1]);
}

// For a language that has modules of its own. @replacement: gets a module's name and the file that imports it; returns its
// exports, or undefined. @change: gets a module that Node.js loaded, its name and the importing file's require; returns what
// the program sees of it.
function setLoader(replacement, change) {
  loader = replacement;
  adapt = change;
}

// Node.js also searches folders of the host. With packages of the box, only the host's own modules find something there.
function hideHost() {
  const lookUp = Module._resolveLookupPaths;
  const isHosts = (place) => place.startsWith('/usr/');
  Module._resolveLookupPaths = (name, parent) => {
    const places = lookUp(name, parent);
    return places && !(parent && parent.filename && isHosts(parent.filename)) ? places.filter((one) => !isHosts(one)) : places;
  };
}

// Once, before the first program.
function prepare() {
  if ((process.env.NODE_PATH || '').split(':').includes(LAYER)) hideHost();
  if (process.env.HTTPS_PROXY) require('./proxy_fetch.js')();
  session = new inspector.Session();
  session.connect();
  const catcher = {
    take(value) {
      taken = value;
    },
  };
  hide(globalThis, imports.HELPER, catcher);
  holder = post('Runtime.evaluate', { expression: imports.HELPER }).result.result.objectId;
  unwrapConsole();
  hide(globalThis, 'display', display);
  process.execArgv.length = 0;
}

// Return: what was displayed since the last call.
const takeShown = () => shown.splice(0);

// Whether only a promise is pending that the program did not await itself.
const hasFinished = () => isFinished;

module.exports = { HOME, Interrupted, describeError, forgetHandler, hasFinished, prepare, setLoader, setModule, setName, takeShown, work };
