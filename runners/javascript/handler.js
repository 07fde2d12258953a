// SPDX-License-Identifier: Apache-2.0
// Calls the handler of a program, or reads its variables after a run. Such a request is JSON after the code in the
// source file (docs/protocol.md, "The source").
'use strict';
const { types } = require('util');
const report = require('./report.js');

const RETURN_MAX = 3 << 20; // bytes of JSON that a handler may return
const RETURN_VALUES_MAX = 49000;
const RETURN_DEPTH_MAX = 60;
const OUTPUTS_MAX = RETURN_MAX / 2;
// Exit codes of a program with a handler.
const NOT_LOADED = 1;
const RAISED = 2;
const NOT_JSON = 3;

class HandlerNotFound extends Error {}
class ResultNotJson extends Error {}
for (const kind of [HandlerNotFound, ResultNotJson]) kind.prototype.name = kind.name;

// Our own frames say nothing about the program.
function withoutStack(error) {
  error.stack = `${error.name}: ${error.message}`;
  return error;
}

// Return: {code, asked}; @bytes: a source file.
function split(bytes) {
  const border = bytes.indexOf(0);
  if (border < 0) return { code: bytes.toString(), asked: {} };
  return { code: bytes.toString('utf8', 0, border), asked: JSON.parse(bytes.toString('utf8', border + 1)) };
}

// Approximate number of values in parsed JSON.
function measure(value, depth = 1) {
  if (depth > RETURN_DEPTH_MAX) throw new ResultNotJson(`it is nested deeper than ${RETURN_DEPTH_MAX} levels`);
  if (value === null || typeof value !== 'object') return 1;
  const items = Object.values(value);
  if (Object.keys(value).some((key) => key.includes('\0'))) throw new ResultNotJson('a key contains NUL');
  return items.reduce((sum, item) => sum + measure(item, depth + 1), 1 + (Array.isArray(value) ? 0 : items.length));
}

// Strict JSON of a parsed @value: text that is Unicode, numbers that the reader takes.
function write(value) {
  if (typeof value === 'string') return report.quote(value);
  if (typeof value === 'number') return report.writeNumber(value);
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  if (Array.isArray(value)) return '[' + value.map(write).join(',') + ']';
  const members = new Map(Object.entries(value).map(([key, item]) => [report.quote(key), write(item)]));
  return '{' + [...members].map(([key, text]) => key + ':' + text).join(',') + '}';
}

function jsonOf(value) {
  let text;
  try {
    text = JSON.stringify(value === undefined ? null : value);
  } catch (error) {
    throw new ResultNotJson(report.cut(String(error.message), 1000)); // a cycle, a big integer
  }
  if (text === undefined) throw new ResultNotJson(`a ${typeof value} is no JSON`);
  if (text.length > RETURN_MAX || Buffer.byteLength(text) > RETURN_MAX)
    throw new ResultNotJson(`it is longer than ${RETURN_MAX} bytes`);
  const plain = JSON.parse(text);
  if (measure(plain) > RETURN_VALUES_MAX) throw new ResultNotJson(`it has more than ${RETURN_VALUES_MAX} values`);
  return write(plain);
}

// The variables @wanted by name, as JSON or else as text; missing ones are left out.
function outputs(wanted, lookUp) {
  const found = [];
  let left = OUTPUTS_MAX;
  for (const name of wanted) {
    const value = lookUp(name);
    if (value === undefined) continue;
    let text;
    try {
      text = jsonOf(value);
    } catch {
      text = report.quote(report.describe(value));
    }
    left -= text.length;
    if (left > 0) found.push(report.quote(name) + ':' + text);
  }
  return '{' + found.join(',') + '}';
}

// The second argument of a handler: what was given, and the same in the spelling of JavaScript.
function makeContext(given) {
  const end = performance.now() + given.remaining_time_in_millis;
  const context = { ...given };
  for (const [name, value] of Object.entries(given)) context[name.replace(/_([a-z])/g, (_, c) => c.toUpperCase())] = value;
  const left = () => Math.max(0, Math.floor(end - performance.now()));
  for (const name of ['getRemainingTimeInMillis', 'get_remaining_time_in_millis'])
    Object.defineProperty(context, name, { value: left, enumerable: false });
  return context;
}

// `exports.handler`, or a function `handler` of the program.
function find(lookUp) {
  const { exports } = globalThis.module || {};
  const handler = exports && (typeof exports === 'object' || typeof exports === 'function') ? exports.handler : undefined;
  return handler === undefined ? lookUp('handler') : handler;
}

// Whether an optional handler is meant: a function that takes an event, and perhaps a context.
// A last value that only defines it is no result.
function isHandler(lookUp, value) {
  const handler = find(lookUp);
  if (value !== undefined && value !== handler && value !== globalThis.module.exports) return false;
  return typeof handler === 'function' && !types.isProxy(handler) && (handler.length === 1 || handler.length === 2);
}

// Return: promise of {code, answered (JSON), thrown}.
async function call(asked, lookUp) {
  const handler = find(lookUp);
  if (typeof handler !== 'function')
    return { code: NOT_LOADED, thrown: withoutStack(new HandlerNotFound("the code defines no function 'handler'")) };
  let value;
  try {
    value = await handler(asked.event, makeContext(asked.context));
  } catch (thrown) {
    return { code: RAISED, thrown };
  }
  try {
    return { code: 0, answered: jsonOf(value) };
  } catch (thrown) {
    thrown.message = "the handler's return value: " + thrown.message;
    return { code: NOT_JSON, thrown: withoutStack(thrown) };
  }
}

// Calls the handler or reads variables. Return: as call().
async function answer(asked, lookUp) {
  return 'outputs' in asked ? { code: 0, answered: outputs(asked.outputs, lookUp) } : call(asked, lookUp);
}

module.exports = { answer, isHandler, split };
