// SPDX-License-Identifier: Apache-2.0
// What a runner reports besides output (docs/protocol.md, "The report"): values as JSON and as MIME bundles, errors.
// All sizes are bounded. Nothing here throws because of what a program made, except an interrupt.
'use strict';
const { inspect, types } = require('util');

const REPORT_MAX = 1 << 20;
const TEXT_MAX = 64 << 10;
const NODES_MAX = 10000;
const DEPTH_MAX = 32;
const TRACE_LINES_MAX = 200;
const ERROR_ROOM = 200 << 10;
const INT_MAX = 2 ** 63;
const DISPLAY = Symbol.for('Jupyter.display'); // the name that other kernels use
const INSPECT = { depth: 4, maxArrayLength: 1000, maxStringLength: TEXT_MAX, breakLength: 100 };
const { parse, stringify } = JSON;
const { getPrototypeOf, prototype: OBJECT } = Object;
const { isArray } = Array;

const cut = (text, limit = TEXT_MAX) => (text.length <= limit ? text : text.slice(0, limit - 3) + '...');

// Lone surrogates are no text.
const quote = (text) => stringify(text.isWellFormed ? text.toWellFormed() : text.replace(
  /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g, '\uFFFD'));

// Integers beyond 64 bits are reals for the reader, which JavaScript writes as integers below 1e21.
const writeNumber = (value) => stringify(value) + (Number.isInteger(value) && Math.abs(value) >= INT_MAX && Math.abs(value) < 1e21 ? '.0' : '');

class NotPlain extends Error {}

// Data that JSON represents exactly.
class Plain {
  nodes = 0;
  size = 0;

  refuse() {
    throw new NotPlain();
  }

  count(text) {
    this.size += text.length;
    return this.size > REPORT_MAX / 4 ? this.refuse() : text;
  }

  scalar(value) {
    switch (typeof value) {
      case 'string': return value.length <= TEXT_MAX ? quote(value) : this.refuse();
      case 'boolean': return value ? 'true' : 'false';
      case 'number': return Number.isFinite(value) && !Object.is(value, -0) ? writeNumber(value) : this.refuse();
      default: return this.refuse();
    }
  }

  // The reader refuses NUL in a key. Two keys with lone surrogates could become the same one.
  key(text) {
    const quoted = quote(text);
    return text.includes('\0') || parse(quoted) !== text ? this.refuse() : this.count(quoted);
  }

  members(value, depth) {
    return Object.keys(value).map((key) => this.key(key) + ':' + this.render(value[key], depth + 1));
  }

  render(value, depth = 0) {
    if (++this.nodes > NODES_MAX || depth > DEPTH_MAX) this.refuse();
    if (value === null) return this.count('null');
    if (typeof value !== 'object') return this.count(this.scalar(value));
    if (types.isProxy(value)) this.refuse();
    if (isArray(value)) {
      if (value.length > NODES_MAX) this.refuse();
      return '[' + Array.from(value, (item) => this.render(item, depth + 1)).join(',') + ']';
    }
    const kind = getPrototypeOf(value);
    if ((kind !== OBJECT && kind !== null) || typeof value.toJSON === 'function') this.refuse();
    return '{' + this.members(value, depth).join(',') + '}';
  }
}

// JSON text, or undefined.
function plainJson(value) {
  try {
    return new Plain().render(value);
  } catch {
    return undefined; // not plain, or a getter that throws
  }
}

function describe(value) {
  try {
    return cut(typeof value === 'string' ? value : inspect(value, INSPECT));
  } catch (error) {
    return '<unprintable ' + typeof value + '>';
  }
}

const STARTS = [
  ['image/png', [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a]],
  ['image/jpeg', [0xff, 0xd8, 0xff]],
  ['image/gif', [0x47, 0x49, 0x46, 0x38]],
];

function imageKind(value) {
  const found = STARTS.find(([, start]) => start.every((byte, i) => value[i] === byte));
  return found ? found[0] : undefined;
}

function encodeForm(data) {
  if (typeof data === 'string') return data;
  return types.isUint8Array(data) ? Buffer.from(data.buffer, data.byteOffset, data.length).toString('base64')
    : plainJson(data);
}

// The value's other forms: pairs of MIME type and text.
function rich(value) {
  try {
    if (types.isUint8Array(value)) {
      const kind = imageKind(value);
      return kind ? [[kind, encodeForm(value)]] : [];
    }
    if (value === null || typeof value !== 'object' || types.isProxy(value)) return [];
    const forms = typeof value[DISPLAY] === 'function' ? value[DISPLAY]() : {};
    return Object.entries(forms).map(([kind, data]) => [kind, encodeForm(data)])
      .filter(([kind, text]) => /^[\w.+-]+\/[\w.+-]+$/.test(kind) && typeof text === 'string');
  } catch {
    return [];
  }
}

function bundle(value, plain, data) {
  const forms = new Map([['text/plain', plain]]);
  const others = rich(value);
  if (data !== undefined && value !== null && typeof value === 'object' && !others.length) forms.set('application/json', data);
  let left = REPORT_MAX / 2;
  for (const [kind, text] of others) {
    left -= text.length;
    if (left > 0) forms.set(kind, text);
  }
  return '{' + [...forms].map(([kind, text]) => quote(kind) + ':' + quote(text)).join(',') + '}';
}

// The value as JSON, and its MIME bundle.
function forms(value) {
  const plain = describe(value);
  const data = plainJson(value);
  return [data === undefined ? quote(plain) : data, bundle(value, plain, data)];
}

// @report: {value, answered (JSON), error (JSON), shown (bundles)}; each may be absent. Return: text, or ''.
function render({ value, answered, error, shown = [] }) {
  const members = [];
  const results = [];
  let size = 0;
  const add = (text) => {
    if (size + text.length > REPORT_MAX - ERROR_ROOM) return;
    size += text.length;
    results.push(text);
  };
  shown.forEach(add);
  if (answered !== undefined) {
    members.push('"result":' + answered);
  } else if (value !== undefined) {
    const [data, last] = forms(value);
    size += data.length;
    members.push('"result":' + data);
    add(last);
  }
  if (results.length) members.push('"results":[' + results.join(',') + ']');
  if (error !== undefined) members.push('"error":' + error);
  return members.length ? '{' + members.join(',') + '}' : '';
}

// Name and text of what a program threw.
function nameError(thrown) {
  try {
    if (types.isNativeError(thrown) || thrown instanceof Error)
      return [cut(String(thrown.name || 'Error'), 1000), cut(String(thrown.message))];
    const kind = thrown === null || thrown === undefined ? undefined : thrown.constructor;
    return [kind && typeof kind.name === 'string' && kind.name ? cut(kind.name, 1000) : typeof thrown, describe(thrown)];
  } catch {
    return ['Error', '<unprintable>'];
  }
}

function errorForm([name, words], text) {
  let lines = cut(text).replace(/\n$/, '').split('\n');
  if (lines.length > TRACE_LINES_MAX) {
    const half = TRACE_LINES_MAX / 2;
    lines = [...lines.slice(0, half), '...', ...lines.slice(-half)];
  }
  return '{"name":' + quote(name) + ',"value":' + quote(words) + ',"traceback":[' + lines.map(quote).join(',') + ']}';
}

module.exports = { bundle, cut, describe, errorForm, forms, nameError, plainJson, quote, render, writeNumber };
