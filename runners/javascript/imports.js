// SPDX-License-Identifier: Apache-2.0
// Programs are evaluated as scripts, which have no `import` and `export`. This file rewrites those words, and nothing
// else; lines stay where they are. The parser is the one that Node.js brings along for its own prompt.
'use strict';
const vm = require('vm');

const PARSER = 'internal/deps/acorn/acorn/dist/acorn';
const WORDS = /\b(?:import|export)\b/;
// What the rewritten code uses. Not a word that programs use.
const HELPER = '__millibox';

const KINDS = new Set(['ImportDeclaration', 'ExportAllDeclaration', 'ExportNamedDeclaration', 'ExportDefaultDeclaration',
  'ImportExpression', 'MetaProperty']);

let acorn;

function loadParser() {
  if (acorn) return acorn;
  const text = process.binding('natives')[PARSER];
  const made = { exports: {} };
  vm.runInThisContext('(function (exports, module) {' + text + '\n})', { filename: 'acorn.js' })(made.exports, made);
  acorn = made.exports;
  return acorn;
}

function* walk(node) {
  if (Array.isArray(node)) {
    for (const item of node) if (item) yield* walk(item);
  } else if (node && typeof node.type === 'string') {
    yield node;
    for (const key of Object.keys(node)) {
      const child = node[key];
      if (child && typeof child === 'object') yield* walk(child);
    }
  }
}

const nameOf = (node) => (node.type === 'Identifier' ? node.name : node.value);
const keyOf = (node) => (node.type === 'Identifier' ? node.name : JSON.stringify(node.value));

// Names that a declaration binds.
function boundNames(declaration) {
  if (declaration.id) return [declaration.id.name];
  const names = [];
  const visit = (pattern) => {
    if (!pattern) return;
    if (pattern.type === 'Identifier') names.push(pattern.name);
    else if (pattern.type === 'ObjectPattern') pattern.properties.forEach((p) => visit(p.argument || p.value));
    else if (pattern.type === 'ArrayPattern') pattern.elements.forEach(visit);
    else visit(pattern.left || pattern.argument);
  };
  declaration.declarations.forEach((one) => visit(one.id));
  return names;
}

class Rewriting {
  constructor(source) {
    this.source = source;
    this.edits = []; // [start, end, text]
    this.exported = []; // [name outside, name inside]
  }

  // Replaces code, keeping the number of lines.
  edit(start, end, text) {
    const lines = (from) => from.split('\n').length - 1;
    const missing = lines(this.source.slice(start, end)) - lines(text);
    this.edits.push([start, end, text + '\n'.repeat(Math.max(0, missing))]);
  }

  // The call that loads a module, with its attributes.
  load(node) {
    const last = this.source.slice(node.source.end, node.end);
    const options = /^\s*(with|assert)\s*(\{[^}]*\})/.exec(last);
    return `await ${HELPER}.load(${node.source.raw}${options ? `, { ${options[1]}: ${options[2]} }` : ''})`;
  }

  ImportDeclaration(node) {
    const all = node.specifiers.find((one) => one.type === 'ImportNamespaceSpecifier');
    const named = node.specifiers.filter((one) => one !== all).map((one) =>
      (one.type === 'ImportDefaultSpecifier' ? 'default' : keyOf(one.imported)) + ': ' + one.local.name);
    const parts = [];
    if (all) parts.push(`${all.local.name} = ${this.load(node)}`);
    if (named.length) parts.push(`{ ${named.join(', ')} } = ${all ? all.local.name : this.load(node)}`);
    this.edit(node.start, node.end, parts.length ? `const ${parts.join(', ')};` : `${this.load(node)};`);
  }

  ExportAllDeclaration(node) {
    const name = node.exported ? `, ${JSON.stringify(nameOf(node.exported))}` : '';
    this.edit(node.start, node.end, `${HELPER}.again(${this.load(node)}${name});`);
  }

  ExportNamedDeclaration(node) {
    if (node.declaration) {
      this.edit(node.start, node.declaration.start, '');
      boundNames(node.declaration).forEach((name) => this.exported.push([name, name]));
    } else if (node.source) {
      const names = node.specifiers.map((one) => `[${JSON.stringify(nameOf(one.local))}, ${JSON.stringify(nameOf(one.exported))}]`);
      this.edit(node.start, node.end, `${HELPER}.again(${this.load(node)}, [${names.join(', ')}]);`);
    } else {
      node.specifiers.forEach((one) => this.exported.push([nameOf(one.exported), nameOf(one.local)]));
      this.edit(node.start, node.end, ';');
    }
  }

  ExportDefaultDeclaration(node) {
    const what = node.declaration;
    if (/Declaration$/.test(what.type) && what.id) {
      this.edit(node.start, what.start, '');
      this.exported.push(['default', what.id.name]);
    } else {
      this.edit(node.start, what.start, `${HELPER}.exports.default = `);
    }
  }

  ImportExpression(node) {
    this.edit(node.start, node.start + 'import'.length, `${HELPER}.load`);
  }

  MetaProperty(node) {
    if (node.meta.name === 'import') this.edit(node.start, node.end, `${HELPER}.meta`);
  }

  result() {
    let text = this.source;
    for (const [start, end, by] of this.edits.sort((a, b) => b[0] - a[0])) text = text.slice(0, start) + by + text.slice(end);
    return text;
  }
}

function parse(source) {
  const options = { ecmaVersion: 'latest', allowAwaitOutsideFunction: true, allowHashBang: true };
  try {
    return loadParser().parse(source, { ...options, sourceType: 'module' });
  } catch (failure) {
    try {
      return acorn.parse(source, { ...options, sourceType: 'script' }); // `with`, octal numbers
    } catch {
      throw failure;
    }
  }
}

// Return: {code, exported, failure}. Code that does not parse stays as it is: V8 says what is wrong with it, unless it
// stumbles over an import first. The failure is for that case.
function rewrite(source) {
  if (!WORDS.test(source)) return { code: source, exported: [] };
  const rewriting = new Rewriting(source);
  try {
    for (const node of walk(parse(source))) if (KINDS.has(node.type)) rewriting[node.type](node);
  } catch (failure) {
    return { code: source, exported: [], failure };
  }
  return { code: rewriting.result(), exported: rewriting.exported };
}

module.exports = { HELPER, loadParser, rewrite };
