// SPDX-License-Identifier: Apache-2.0
/*
 * Tools of outside MCP servers, as functions:
 *
 *   const tools = require("millibox_tools");
 *   console.log(await tools.search("issues"));            // finds tools by what they do
 *   console.log(await tools.describe("github.search"));   // arguments, types, description
 *   await tools.github.search({ query: "memory leak" });  // the result: text, or data where the tool has a schema
 *
 * tools.servers() lists the servers of this box, tools.list("github") their functions. tools.call("github", "search", {})
 * resolves to the whole result as the server sent it. A failure rejects with ToolError, Denied or Unavailable.
 *
 * Everything is requested when it is used, over the socket at MCP_SOCKET_PATH: one request per connection, a message is
 * four bytes (its length, big-endian) and JSON.
 */
"use strict";

const net = require("node:net");

const LENGTH = 4;
const MESSAGE_MAX = 10 * 1024 * 1024;
const OWN = "millibox:tools"; // answered by the gateway itself

class ToolError extends Error {
  constructor(text, result) {
    super(text);
    this.name = this.constructor.name;
    this.result = result;
  }
}

class Denied extends ToolError {
  constructor(text, rule) {
    super(text);
    this.rule = rule;
  }
}

class Unavailable extends ToolError {}

function ask(url, tool, args) {
  const data = Buffer.from(JSON.stringify({ url, tool, arguments: args ?? {} }));
  if (data.length > MESSAGE_MAX) {
    return Promise.reject(new ToolError(`the arguments have ${data.length} bytes; at most ${MESSAGE_MAX} can be sent`));
  }
  const path = process.env.MCP_SOCKET_PATH ?? "/tmp/mcp.sock";
  return new Promise((resolve, reject) => {
    const parts = [];
    const connection = net.connect(path, () => {
      const head = Buffer.alloc(LENGTH);
      head.writeUInt32BE(data.length);
      connection.write(Buffer.concat([head, data]));
    });
    connection.on("error", (error) => {
      reject(new Unavailable(`${path}: ${error.code}: this box has no tools of MCP servers, or the gateway was restarted`));
    });
    connection.on("data", (part) => parts.push(part));
    connection.on("close", () => {
      const whole = Buffer.concat(parts);
      if (whole.length < LENGTH || whole.length < LENGTH + whole.readUInt32BE(0)) {
        reject(new Unavailable("the gateway has closed the connection: it was restarted, or this box ends"));
      } else {
        resolve(JSON.parse(whole.subarray(LENGTH, LENGTH + whole.readUInt32BE(0)).toString()));
      }
    });
  });
}

async function request(url, tool, args) {
  const answer = await ask(url, tool, args);
  if (!("error" in answer)) {
    return answer.result;
  }
  const text = String(answer.error);
  if ("rule" in answer || "allowed_urls" in answer) {
    throw new Denied(text, answer.rule ?? "mcp.servers");
  }
  if (/^(Cannot connect|Timeout|Too many)/.test(text)) {
    throw new Unavailable(text);
  }
  throw new ToolError(text);
}

function identifier(name) {
  const text = name.replace(/[^A-Za-z0-9_$]/g, "_");
  return /^[0-9]/.test(text) ? `_${text}` : text;
}

// The type of a JSON schema, in TypeScript's words.
function typeOf(schema) {
  if (schema === null || typeof schema !== "object") {
    return "any";
  }
  if (Array.isArray(schema.enum) && schema.enum.length > 0 && schema.enum.length < 20) {
    return schema.enum.map((word) => JSON.stringify(word)).join(" | ");
  }
  const choices = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(choices)) {
    return [...new Set(choices.map(typeOf))].join(" | ");
  }
  const names = { integer: "number", array: "any[]", object: "object" };
  if (schema.type === "array" && schema.items) {
    return `${typeOf(schema.items)}[]`;
  }
  return [schema.type ?? "any"].flat().map((kind) => names[kind] ?? String(kind)).join(" | ");
}

class Tool {
  constructor(server, data) {
    this.server = server;
    this.data = data;
    this.name = String(data.name);
    this.properties = data.inputSchema?.properties ?? {};
    const required = data.inputSchema?.required;
    this.required = Array.isArray(required) ? required : [];
  }

  signature() {
    const parts = Object.entries(this.properties).map(
      ([name, schema]) => `${name}${this.required.includes(name) ? "" : "?"}: ${typeOf(schema)}`,
    );
    const args = parts.length > 0 ? `{ ${parts.join(", ")} }` : "";
    return `${identifier(this.server)}.${identifier(this.name)}(${args})`;
  }

  about() {
    return String(this.data.description ?? this.data.title ?? "").trim();
  }

  summary() {
    const line = this.about().split("\n")[0].slice(0, 200);
    return line ? `${this.signature()}: ${line}` : this.signature();
  }

  doc() {
    const lines = [this.signature(), "", this.about() || this.name, ""];
    for (const [name, schema] of Object.entries(this.properties)) {
      const fallback = schema?.default === undefined ? "" : ` (default ${JSON.stringify(schema.default)})`;
      const says = schema?.description ? `: ${schema.description}` : "";
      lines.push(`  ${name}${this.required.includes(name) ? "" : "?"}: ${typeOf(schema)}${fallback}${says}`);
    }
    return lines.join("\n");
  }
}

// What a program wants of a result: its data, its text, or its parts.
function textOf(result) {
  if (result?.structuredContent !== undefined && result.structuredContent !== null) {
    return result.structuredContent;
  }
  if (!Array.isArray(result?.content)) {
    return result;
  }
  return result.content.every((part) => part?.type === "text")
    ? result.content.map((part) => part.text).join("\n")
    : result.content;
}

async function allTools(server) {
  const found = await request(OWN, "list", server === undefined ? {} : { server });
  return found.servers.flatMap((entry) => entry.tools.filter((t) => t?.name).map((t) => new Tool(entry.name, t)));
}

async function serverNamed(word) {
  const names = await servers();
  const name = names.find((known) => known === word || identifier(known) === word);
  if (name === undefined) {
    throw new Denied(`this box may call no MCP server '${word}'; it may call: ${names.join(", ") || "none"}`, "mcp");
  }
  return name;
}

const known = new Map(); // "server" -> Promise of Map of names of tools

async function toolNamed(serverWord, word) {
  const server = await serverNamed(serverWord);
  if (!known.has(server)) {
    const loading = allTools(server).then((all) => new Map(all.map((tool) => [identifier(tool.name), tool])));
    loading.catch(() => known.delete(server));
    known.set(server, loading);
  }
  const all = await known.get(server);
  const tool = all.get(identifier(word));
  if (tool === undefined) {
    throw new Denied(`this box may call no tool '${word}' of MCP server '${server}'; it has: ${[...all.keys()].join(", ")}`, "mcp");
  }
  return tool;
}

async function invoke(serverWord, word, args) {
  const tool = await toolNamed(serverWord, word);
  const result = await call(tool.server, tool.name, args);
  const value = textOf(result);
  if (result?.isError === true) {
    throw new ToolError(typeof value === "string" ? value : JSON.stringify(value), result);
  }
  return value;
}

/** The names of the servers that this box may call. */
async function servers() {
  return (await request(OWN, "list", {})).servers.map((entry) => entry.name);
}

/** One line for each tool of a server, or of all. */
async function list(server) {
  return (await allTools(server)).map((tool) => tool.summary());
}

/** The tools that fit some words best: one line each, with arguments and what the tool does. */
async function search(text, limit = 10) {
  const words = text.toLowerCase().split(/[\s_-]+/).filter(Boolean);
  const scored = (await allTools()).map((tool) => {
    const name = `${tool.server} ${tool.name}`.toLowerCase();
    const about = tool.about().toLowerCase();
    const score = words.reduce((sum, word) => sum + 3 * name.includes(word) + about.includes(word), 0);
    return { score, name, line: tool.summary() };
  });
  return scored
    .filter((entry) => entry.score > 0 || words.length === 0)
    .sort((a, b) => b.score - a.score || a.name.localeCompare(b.name))
    .slice(0, limit)
    .map((entry) => entry.line);
}

/** All about one tool, by "server.tool" or "server/tool". */
async function describe(name) {
  const [, server, tool] = /^([^./]+)[./](.+)$/.exec(name) ?? [undefined, name, ""];
  return (await toolNamed(server, tool)).doc();
}

/** Call a tool by its names. Resolves to the whole result, as the server sent it. */
function call(server, tool, args) {
  return request(server, tool, args);
}

const own = { Denied, ToolError, Unavailable, call, describe, list, search, servers };

function serverProxy(server) {
  return new Proxy(
    {},
    {
      // A promise is recognised by "then": a server is none.
      get: (_, tool) => (typeof tool === "symbol" || tool === "then" ? undefined : (args) => invoke(server, tool, args)),
    },
  );
}

module.exports = new Proxy(own, {
  get: (target, name) =>
    name in target || typeof name === "symbol" || name === "then" || name === "__esModule" || name === "default"
      ? target[name]
      : serverProxy(name),
});
