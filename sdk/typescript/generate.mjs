#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Makes what is made of other files. Usage: generate.mjs [--check]
//
// src/errors.ts            one class for each error code, from lib/base/error_codes.def
// docs/sdk/typescript.md   the reference, from comments
//
// With --check nothing is written; the status is 1 if a file is not what it should be. Needs the package typescript.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const HERE = new URL('./', import.meta.url);
const ROOT = new URL('../../', HERE);
const MADE = 'Made by sdk/typescript/generate.mjs from';

const read = (url) => readFileSync(url, 'utf8');

// ---- src/errors.ts

const CODE = /ERROR_CODE\((\w+),\s*(\d+),\s*-?\d+,\s*"([^"]+)",\s*"((?:[^"\\]|\\.)*)"/g;

const ERRORS_TAIL = `
/** The error for an error body. A code that this version does not know is an \`ApiError\`. */
export function fromAnswer(status: number, body: ErrorBody, retryAfter: number | null = null): ApiError {
  return new (CLASSES[String(body.error_code)] ?? ApiError)(status, body, retryAfter);
}

/** An error body; one that is none, such as a proxy's page, becomes the detail of an error without a code. */
export function readBody(body: Uint8Array): ErrorBody {
  const text = new TextDecoder().decode(body);
  try {
    const found: unknown = JSON.parse(text);
    if (found !== null && typeof found === "object" && !Array.isArray(found)) return found;
  } catch {
    // Not JSON.
  }
  return { error_detail: text.slice(0, 500).trim() };
}
`;

function readCodes() {
  const found = [...read(new URL('lib/base/error_codes.def', ROOT)).matchAll(CODE)]
    .filter(([, word]) => word !== 'NONE')
    .map(([, , status, code, description]) => ({ status, code, description, name: className(code) }));
  if (found.length < 20 || new Set(found.map(({ name }) => name)).size !== found.length) {
    throw new Error('two codes have one class, or the list was not read');
  }
  // Classes after their bases: "not found" is the base of all that were not found.
  return found.sort((a, b) => Number(b.name === 'NotFoundError') - Number(a.name === 'NotFoundError'));
}

function className(code) {
  const name = code.split('.').pop();
  return name.endsWith('Error') ? name : `${name}Error`;
}

function makeErrors(codes) {
  const classes = codes.map(({ status, code, description, name }) => {
    const base = status === '404' && name !== 'NotFoundError' ? 'NotFoundError' : 'ApiError';
    return `\n/** ${description} */\nexport class ${name} extends ${base} {\n  static override readonly code: string = "${code}";\n}\n`;
  });
  const table = (rows) => rows.map(([code, value]) => `  "${code}": ${value},\n`).join('');
  return [
    `// ${MADE} lib/base/error_codes.def; do not edit.\n// SPDX-License-Identifier: Apache-2.0\n`,
    '// One class for each error code of the daemon.\nimport { ApiError, type ErrorBody } from "./base_errors.js";\n',
    ...classes,
    '\n/** The class of each code. */\nexport const CLASSES: { readonly [code: string]: typeof ApiError } = {\n',
    table(codes.map(({ code, name }) => [code, name])),
    '};\n\n/** The HTTP status of each code. */\nexport const STATUS: { readonly [code: string]: number } = {\n',
    table(codes.map(({ code, status }) => [code, status])),
    `};\n${ERRORS_TAIL}`,
  ].join('');
}

// ---- docs/sdk/typescript.md

// Files of the reference, and what they define for users.
const REFERENCE = [
  ['client.ts', ['Client', 'ClientOptions']],
  ['platform.ts', ['EndpointOptions']],
  ['sandbox.ts', ['Sandbox', 'ClientOption']],
  ['files.ts', ['Files', 'Writable']],
  ['commands.ts', ['Commands', 'Command']],
  ['execution.ts', ['Execution']],
  ['terminal.ts', ['Terminal']],
  ['ports.ts', ['Port', 'Forward', 'ForwardOptions']],
  ['node/local.ts', ['local', 'LocalOptions', 'LocalDaemon']],
  ['models.ts', ['Result', 'ErrorInfo', 'Event', 'FileInfo', 'SandboxInfo', 'PortInfo']],
  ['options.ts', null],
  ['ai.ts', ['codeTool', 'CodeToolOptions']],
  ['base_errors.ts', ['MilliboxError', 'ConnectError', 'ConnectionLost', 'UnsafeArchive', 'ApiError', 'ProgramError',
    'ProgramFailed', 'ProgramTimeout', 'ProgramCrashed', 'ProgramCancelled']],
];

const REFERENCE_HEAD = `<!-- ${MADE} comments; do not edit. -->
# TypeScript SDK: reference

[sdk/typescript/README.md](../../sdk/typescript/README.md) is the introduction. Times are seconds, as in the API. What can
be absent is \`null\`.
`;

function commentOf(node) {
  const found = ts.getJSDocCommentsAndTags(node).find(ts.isJSDoc);
  const text = found ? (ts.getTextOfJSDocComment(found.comment) ?? '') : '';
  return { text: text.replace(/\s+/g, ' ').trim(), isHidden: Boolean(found?.tags?.some((tag) => tag.tagName.text === 'internal')) };
}

const has = (node, kind) => Boolean(ts.canHaveModifiers(node) && ts.getModifiers(node)?.some((item) => item.kind === kind));
const cell = (text) => text.replaceAll('|', '\\|');
const plain = (text) => text.replace(/\s+/g, ' ').replace(/ \| undefined\b/g, '').trim();

function typeOf(node, file) {
  return node ? plain(node.getText(file)) : '';
}

// Names, types and defaults of a function.
function signatureOf(node, file) {
  const parameters = node.parameters.map((item) => {
    const value = item.initializer ? ` = ${item.initializer.getText(file)}` : '';
    const type = typeOf(item.type, file);
    return `${item.name.getText(file)}${item.questionToken ? '?' : ''}${type ? `: ${type}` : ''}${value}`;
  });
  const type = typeOf(node.type, file);
  return `(${parameters.join(', ')})${type && type !== 'void' ? `: ${type}` : ''}`;
}

function describeMember(node, file) {
  const { text, isHidden } = commentOf(node);
  const name = node.name?.getText(file);
  if (isHidden || !text || !name || name.startsWith('#')) return [];
  const label = has(node, ts.SyntaxKind.StaticKeyword) ? `static ${name}` : name;
  if (ts.isMethodDeclaration(node)) return [`| ${cell(`\`${label}${signatureOf(node, file)}\``)} | ${cell(text)} |`];
  const optional = node.questionToken ? '?' : '';
  const type = typeOf(node.type, file);
  return [`| ${cell(`\`${label}${optional}${type ? `: ${type}` : ''}\``)} | ${cell(text)} |`];
}

// Parameters of a constructor that are fields.
function fieldsOf(node) {
  const makers = node.members.filter((item) => ts.isConstructorDeclaration(item));
  return makers.flatMap((item) => item.parameters.filter((parameter) => ts.isParameterPropertyDeclaration(parameter, item)));
}

function describe(node, file) {
  const { text } = commentOf(node);
  const lines = [`\n## ${node.name.text}\n`];
  const bases = (node.heritageClauses ?? []).flatMap((clause) => clause.types.map((type) => `\`${type.getText(file)}\``));
  lines.push(`${bases.length ? `Extends ${bases.join(', ')}. ` : ''}${text}`);
  if (ts.isTypeAliasDeclaration(node)) return [...lines, `\n\`\`\`ts\ntype ${node.name.text} = ${plain(node.type.getText(file))}\n\`\`\``];
  if (ts.isFunctionDeclaration(node)) return [...lines, `\n\`\`\`ts\n${node.name.text}${signatureOf(node, file)}\n\`\`\``];
  const maker = node.members.find((item) => ts.isConstructorDeclaration(item));
  const isPublic = maker && !commentOf(maker).isHidden && !has(maker, ts.SyntaxKind.PrivateKeyword);
  if (isPublic && !fieldsOf(node).length && node.name.text === 'Client') {
    lines.push(`\n\`\`\`ts\nnew ${node.name.text}${signatureOf(maker, file)}\n\`\`\``);
  }
  const rows = [...(ts.isClassDeclaration(node) ? fieldsOf(node) : []), ...node.members].flatMap((item) => describeMember(item, file));
  if (rows.length) lines.push(`\n| | |\n| --- | --- |\n${rows.join('\n')}`);
  return lines;
}

function makeReference(codes) {
  const lines = [REFERENCE_HEAD];
  for (const [name, wanted] of REFERENCE) {
    const file = ts.createSourceFile(name, read(new URL(`src/${name}`, HERE)), ts.ScriptTarget.Latest, true);
    const nodes = file.statements.filter((node) => node.name && has(node, ts.SyntaxKind.ExportKeyword) && commentOf(node).text);
    const chosen = wanted ?? nodes.map((node) => node.name.text);
    for (const title of chosen) {
      const node = nodes.find((item) => item.name.text === title);
      if (!node) throw new Error(`${name} exports no ${title} that has a comment`);
      lines.push(...describe(node, file));
    }
  }
  lines.push('\n## errors\n\nSubclasses of `ApiError`:\n\n| class | code | |\n| --- | --- | --- |');
  for (const { name, code, description } of codes) lines.push(`| \`${name}\` | ${code} | ${description} |`);
  return `${lines.join('\n')}\n`;
}

const codes = readCodes();
const made = new Map([
  [new URL('src/errors.ts', HERE), makeErrors(codes)],
  [new URL('docs/sdk/typescript.md', ROOT), makeReference(codes)],
]);
for (const [url, text] of made) {
  if (existsSync(url) && read(url) === text) continue;
  const name = fileURLToPath(url).slice(fileURLToPath(ROOT).length);
  if (process.argv.includes('--check')) {
    console.log(`${name} is not current: run sdk/typescript/generate.mjs`);
    process.exitCode = 1;
  } else {
    writeFileSync(url, text);
    console.log(`wrote ${name}`);
  }
}
