// SPDX-License-Identifier: Apache-2.0
// TypeScript into JavaScript, without a network: by the compiler's library where it is installed, or by Node.js itself, which
// can remove types since version 22. Positions in errors are those of the TypeScript.
'use strict';
const fs = require('fs');
const Module = require('module');
const path = require('path');
const program = require('../javascript/program.js');

const PLACES = ['/workspace/node_modules', '/usr/local/lib/node_modules', '/usr/lib/node_modules', '/usr/share/nodejs'];
const SHOWN_MAX = 20; // errors
const maps = new Map(); // name of a program: its lines, each a list of [column, line there, column there]
let ts;
let target; // of the request; undefined: none

class TypeScriptMissing extends Error {}
TypeScriptMissing.prototype.name = 'TypeScriptMissing';

// Return: the compiler; undefined: there is none.
function loadCompiler() {
  for (const place of ts ? [] : PLACES) {
    const file = place + '/typescript/lib/typescript.js';
    if (fs.existsSync(file)) {
      ts = require(file);
      break;
    }
  }
  return ts;
}

const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

// The numbers of one segment of a source map.
function decode(segment) {
  const numbers = [];
  let value = 0;
  let shift = 0;
  for (const digit of segment) {
    const bits = DIGITS.indexOf(digit);
    value += (bits & 31) << shift;
    shift += 5;
    if (bits & 32) continue;
    numbers.push(value & 1 ? -(value >> 1) : value >> 1);
    value = shift = 0;
  }
  return numbers;
}

function readMap(text) {
  let line = 0;
  let column = 0;
  return JSON.parse(text).mappings.split(';').map((segments) => {
    let at = 0;
    return segments.split(',').filter(Boolean).map((segment) => {
      const [step, , lines = 0, columns = 0] = decode(segment);
      at += step;
      line += lines;
      column += columns;
      return [at, line, column];
    });
  });
}

// Position in the TypeScript; lines and columns count from 1.
function mapPosition(name, line, column) {
  const found = maps.get(name);
  const segments = found && found[line - 1];
  if (!segments || !segments.length) return [line, column];
  const before = segments.filter(([at]) => at < column).pop() || segments[0];
  return [before[1] + 1, before[2] + 1];
}

function mapText(text) {
  return text.replace(/([^\s():]+(?::\/\/[^\s():]+)?):(\d+):(\d+)/g, (all, name, line, column) =>
    (maps.has(name) ? [name, ...mapPosition(name, Number(line), Number(column))].join(':') : all));
}

// Error.prepareStackTrace of programs that have not set their own.
function prepareStackTrace(error, frames) {
  let head;
  try {
    head = Error.prototype.toString.call(error);
  } catch {
    head = '<error>';
  }
  const ours = frames.findIndex((frame) => frame.getFileName() === 'node:inspector');
  return [head, ...(ours < 0 ? frames : frames.slice(0, ours)).map((frame) => '    at ' + mapText(String(frame)))].join('\n');
}

// What the compiler says, in the form of `tsc`.
function describe(found, name) {
  const text = ts.flattenDiagnosticMessageText(found.messageText, '\n');
  if (!found.file || found.start === undefined) return { text: `error TS${found.code}: ${text}` };
  const { line, character } = found.file.getLineAndCharacterOfPosition(found.start);
  return { text: `${name}(${line + 1},${character + 1}): error TS${found.code}: ${text}`, place: { name, line: line + 1, column: character } };
}

function refuse(diagnostics, name, kind) {
  const said = diagnostics.slice(0, SHOWN_MAX).map((one) => describe(one, name));
  const first = ts.flattenDiagnosticMessageText(diagnostics[0].messageText, '\n');
  const error = kind(first);
  error.stack = [`${error.name}: ${first}`, ...said.map(({ text }) => text)].join('\n');
  Object.defineProperty(error, 'place', { value: said[0].place, enumerable: false });
  throw error;
}

const options = (kind) => ({
  target: ts.ScriptTarget[target || 'ES2022'], module: kind, sourceMap: true, isolatedModules: true, esModuleInterop: true, experimentalDecorators: true,
  jsx: ts.JsxEmit.React,
  // An import may be used by a later run of a session only.
  ...(Number(ts.version.split('.')[0]) < 5 ? { preserveValueImports: true } : { verbatimModuleSyntax: kind === ts.ModuleKind.ESNext }),
});

function compile(source, name, kind) {
  const [extension] = /\.(?:[cm]?ts|tsx)$/.exec(name) || ['.ts'];
  // Only the extension counts: the compiler writes nothing for a file that is called a.d.ts.
  const made = ts.transpileModule(source, { compilerOptions: options(kind), reportDiagnostics: true, fileName: 'main' + extension });
  const wrong = made.diagnostics.filter((one) => one.category === ts.DiagnosticCategory.Error && one.file);
  if (wrong.length) refuse(wrong, name, (text) => new SyntaxError(text));
  maps.set(name, readMap(made.sourceMapText));
  return made.outputText.replace(/\n?\/\/# sourceMappingURL=.*\s*$/, '');
}

// By Node.js itself. Types alone are replaced by blanks, which moves nothing.
function strip(source, name) {
  const { emitWarning } = process;
  maps.delete(name); // of an earlier run of a file with this name
  process.emitWarning = () => {}; // that this is experimental
  try {
    return stripQuietly(source, name);
  } finally {
    process.emitWarning = emitWarning;
  }
}

function stripQuietly(source, name) {
  try {
    return Module.stripTypeScriptTypes(source);
  } catch (error) {
    if (error.code !== 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX') throw error;
  }
  const made = Module.stripTypeScriptTypes(source, { mode: 'transform', sourceMap: true });
  const [code, map] = made.split(/\n\/\/# sourceMappingURL=data:application\/json;base64,/);
  maps.set(name, readMap(Buffer.from(map, 'base64').toString()));
  return code;
}

function translate(source, name) {
  if (loadCompiler()) return compile(source, name, ts.ModuleKind.ESNext);
  if (Module.stripTypeScriptTypes && !target) return strip(source, name);
  throw new TypeScriptMissing(target ? 'the option target needs the package node-typescript' : 'install the package node-typescript, or Node.js 22.13 or later');
}

// Files that a program requires or imports.
function loadFile(module, file) {
  const source = fs.readFileSync(file, 'utf8');
  module._compile(loadCompiler() ? compile(source, file, ts.ModuleKind.CommonJS) : strip(source, file), file);
}

// `./a.js` may mean a.ts, as everywhere in TypeScript.
function findFile(name, from) {
  const file = path.resolve(path.dirname(from), name);
  const names = [file, file.replace(/\.([cm]?)js$/, '.$1ts'), file + '.ts', file + '.tsx', file + '/index.ts'];
  return names.find((one) => /\.[cm]?tsx?$/.test(one) && fs.existsSync(one));
}

// import of a TypeScript file is a require of it; everything else is left to Node.js.
function loadModule(name, from) {
  const file = /^\.{0,2}\//.test(name) ? findFile(name, from) : undefined;
  if (!file) return undefined;
  const found = globalThis.require(file);
  return { __proto__: null, default: found, ...found };
}

// Node.js shows few names of a CommonJS module to `import * as`, the compiler (esModuleInterop) all properties of its exports.
function showExports(found, name, require) {
  const { default: exported } = found;
  const isOpen = exported && (typeof exported === 'object' || typeof exported === 'function') && !exported.__esModule;
  if (!isOpen || Module.builtinModules.includes(name.replace(/^node:/, ''))) return found;
  try {
    const cached = require.cache[require.resolve(name)];
    if (!cached || cached.exports !== exported) return found;
  } catch {
    return found; // no CommonJS module
  }
  return { __proto__: null, ...exported, ...found };
}

// Once, before the first program.
function prepare(wanted) {
  target = wanted;
  for (const extension of ['.ts', '.cts', '.mts', '.tsx']) Module._extensions[extension] ||= loadFile;
  program.setLoader(loadModule, showExports);
  Error.prepareStackTrace = prepareStackTrace;
}

module.exports = { loadCompiler, mapPosition, prepare, translate };
