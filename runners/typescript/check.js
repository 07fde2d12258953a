// SPDX-License-Identifier: Apache-2.0
// check.js ARTIFACT [--target=NAME] [--tsconfig=FILE] -- FILE...: checks the types of a program in this directory. Messages have
// the form of `tsc`; ARTIFACT is made if there are no errors.
'use strict';
const fs = require('fs');
const path = require('path');
const ts = require('./translate.js').loadCompiler();

const SHOWN_MAX = 100; // errors
// Where the packages of a request or of a session are.
const TYPES = ['/workspace/node_modules/@types', '/opt/millibox/packages/npm/node_modules/@types', '/usr/share/nodejs/@types'];
// For programs without the types of Node.js.
const AMBIENT = `declare var require: any, module: any, exports: any, process: any, Buffer: any, __filename: string, __dirname: string, global: any;
declare var setImmediate: any, clearImmediate: any;
`;
const DISPLAY = `declare function display(...values: any[]): void;
declare module '*';
`;

function stop(text) {
  fs.writeSync(2, text + '\n');
  process.exit(2);
}

// Of the request's file, or of tsconfig.json if there is one.
function readConfig(name) {
  const file = name || 'tsconfig.json';
  if (!fs.existsSync(file)) return name ? stop(`error TS5058: The specified path does not exist: '${name}'.`) : {};
  const { config, error } = ts.readConfigFile(path.resolve(file), ts.sys.readFile);
  if (error) stop(`error TS${error.code}: ${ts.flattenDiagnosticMessageText(error.messageText, ' ')}`);
  const { options, errors } = ts.convertCompilerOptionsFromJson(config.compilerOptions || {}, process.cwd());
  if (errors.length) stop(`error TS${errors[0].code}: ${ts.flattenDiagnosticMessageText(errors[0].messageText, ' ')}`);
  return options;
}

function describe(found) {
  const text = ts.flattenDiagnosticMessageText(found.messageText, ' ');
  if (!found.file || found.start === undefined) return `error TS${found.code}: ${text}`;
  const { line, character } = found.file.getLineAndCharacterOfPosition(found.start);
  return `${path.relative('', found.file.fileName)}(${line + 1},${character + 1}): error TS${found.code}: ${text}`;
}

function main(artifact, words) {
  const given = { __proto__: null };
  while (words.length && words[0] !== '--') {
    const [, name, value] = /^--([^=]*)=?(.*)$/.exec(words.shift());
    given[name] = value;
  }
  const roots = TYPES.filter((place) => fs.existsSync(place));
  const hasNode = roots.some((place) => fs.existsSync(place + '/node'));
  const options = {
    target: ts.ScriptTarget.ES2022, strict: true, esModuleInterop: true, experimentalDecorators: true, jsx: ts.JsxEmit.React, skipLibCheck: true,
    typeRoots: roots, types: hasNode ? ['node'] : [],
    ...readConfig(given.tsconfig),
    ...(given.target ? { target: ts.ScriptTarget[given.target] } : {}),
    noEmit: true, module: ts.ModuleKind.ESNext, moduleDetection: 'force',
    moduleResolution: ts.ModuleResolutionKind.NodeJs || ts.ModuleResolutionKind.Node10,
  };
  fs.writeFileSync('.ambient.d.ts', (hasNode ? '' : AMBIENT) + DISPLAY);
  const program = ts.createProgram([...words.slice(1), '.ambient.d.ts'].map((file) => path.resolve(file)), options);
  const wrong = ts.getPreEmitDiagnostics(program).filter((one) => one.category === ts.DiagnosticCategory.Error);
  if (wrong.length) stop(wrong.slice(0, SHOWN_MAX).map(describe).join('\n'));
  fs.writeFileSync(artifact, 'checked\n');
}

if (!ts) stop('the option check needs the package node-typescript in the box');
main(process.argv[2], process.argv.slice(3));
