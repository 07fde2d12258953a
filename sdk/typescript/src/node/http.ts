// SPDX-License-Identifier: Apache-2.0
// Connections by Node.js: over a Unix socket, TCP or TLS.
import { readFileSync } from "node:fs";
import * as http from "node:http";
import * as https from "node:https";
import type { Duplex } from "node:stream";
import { ConnectError, ConnectionLost, MilliboxError } from "../base_errors.js";
import type { Content } from "../calls.js";
import type { Endpoint, Http, HttpAnswer, HttpRequest, UpgradeRequest } from "../platform.js";
import type { MessageSocket } from "../socket.js";
import { nameOf } from "../transport.js";
import { VERSION } from "../version.js";
import { acceptOf, makeKey, openSocket } from "./websocket.js";

/** Below the daemon's own limit for idle connections (60 s), so that no request goes into a connection that it
 * closes. */
const KEPT_MS = 20_000;
const KEPT_MAX = 64;
const CONNECT_MS = 10_000;
const UPGRADE = { Connection: "Upgrade", Upgrade: "websocket", "Sec-WebSocket-Version": "13" };
const USER_AGENT = `millibox-typescript/${VERSION}`;

/** The time limit of a request. */
class TimedOut extends Error {}

export class NodeHttp implements Http {
  readonly #endpoint: Endpoint;
  readonly #agent: http.Agent;
  readonly #authorities: { ca?: Buffer };
  readonly #target: http.RequestOptions;
  readonly #request: typeof http.request;
  readonly #prefix: string;

  constructor(endpoint: Endpoint) {
    const url = new URL(endpoint.url);
    const isTls = url.protocol === "https:";
    // No limit of connections here: a caller may read a hundred streams in turns, and they would wait for each other.
    // The transport limits calls.
    const kept = { keepAlive: true, maxFreeSockets: KEPT_MAX, timeout: KEPT_MS };
    this.#endpoint = endpoint;
    this.#authorities = isTls ? authorities(endpoint) : {};
    this.#agent = isTls ? new https.Agent({ ...kept, ...this.#authorities }) : new http.Agent(kept);
    closeAnswered(this.#agent);
    this.#request = isTls ? https.request : http.request;
    this.#prefix = url.pathname.replace(/\/+$/, "");
    this.#target =
      endpoint.socket !== null
        ? { socketPath: endpoint.socket, host: "localhost" }
        : { host: url.hostname.replace(/^\[|\]$/g, ""), ...(url.port ? { port: url.port } : {}) };
  }

  send(request: HttpRequest): Promise<HttpAnswer> {
    return new Promise((resolve, reject) => {
      if (request.signal?.aborted) return reject(request.signal.reason);
      const outgoing = this.#request({
        ...this.#target,
        agent: this.#agent,
        method: request.method,
        path: this.#prefix + request.path,
        headers: headersOf(request),
        timeout: request.idle,
        ...(request.signal ? { signal: request.signal } : {}),
      });
      const link = new Link(this.#endpoint, request.signal, outgoing);
      outgoing.on("response", (incoming) => resolve(new NodeAnswer(link, incoming)));
      outgoing.on("error", (error) => reject(link.translate(error)));
      writeBody(outgoing, request.content, link);
    });
  }

  /** Its connection is not one of the agent's: it is not kept for other requests. */
  upgrade(request: UpgradeRequest): Promise<MessageSocket | HttpAnswer> {
    return new Promise((resolve, reject) => {
      if (request.signal?.aborted) return reject(request.signal.reason);
      const key = makeKey();
      const asked = { ...UPGRADE, "Sec-WebSocket-Key": key };
      const outgoing = this.#request({
        ...this.#target,
        ...this.#authorities,
        agent: false,
        path: this.#prefix + request.path,
        headers: { "User-Agent": USER_AGENT, ...request.headers, ...asked },
      });
      const link = new Link(this.#endpoint, request.signal, outgoing);
      const abort = (): void => void outgoing.destroy();
      request.signal?.addEventListener("abort", abort);
      outgoing.on("close", () => request.signal?.removeEventListener("abort", abort));
      outgoing.on("response", (incoming) => resolve(new NodeAnswer(link, incoming)));
      outgoing.on("error", (error) => reject(link.translate(error)));
      outgoing.on("upgrade", (answer, connection, head) => {
        request.signal?.removeEventListener("abort", abort);
        if (answer.headers["sec-websocket-accept"] === acceptOf(key)) return resolve(openSocket(connection, head));
        connection.destroy();
        reject(new ConnectionLost(`the server at ${nameOf(this.#endpoint)} does not speak WebSocket`));
      });
      outgoing.end();
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** The daemon answers a kept connection that gives way to another with 429 and closes it. Node.js drops bytes that
 * arrive before the next request and sends that request into the connection all the same: it would be lost. */
function closeAnswered(agent: http.Agent): void {
  const keep = agent.keepSocketAlive.bind(agent);
  const reuse = agent.reuseSocket.bind(agent);

  function close(this: Duplex): void {
    this.destroy();
  }
  agent.keepSocketAlive = (socket) => {
    socket.on("data", close);
    return keep(socket);
  };
  agent.reuseSocket = (socket, request) => {
    socket.removeListener("data", close);
    reuse(socket, request);
  };
}

function authorities(endpoint: Endpoint): { ca?: Buffer } {
  if (endpoint.caFile === null) return {};
  try {
    return { ca: readFileSync(endpoint.caFile) };
  } catch (cause) {
    throw new MilliboxError(`could not read the certificates in ${endpoint.caFile}: ${cause}`, { cause });
  }
}

function headersOf(request: HttpRequest): http.OutgoingHttpHeaders {
  const headers: http.OutgoingHttpHeaders = { "User-Agent": USER_AGENT, ...request.headers };
  const { content } = request;
  if (content instanceof Uint8Array) headers["Content-Length"] = content.length;
  else if (content instanceof Blob) headers["Content-Length"] = content.size;
  else if (content !== undefined) headers["Transfer-Encoding"] = "chunked";
  return headers;
}

/** A request on its way: what its failures mean. */
class Link {
  #isConnected = false;

  constructor(
    readonly endpoint: Endpoint,
    readonly signal: AbortSignal | undefined,
    readonly outgoing: http.ClientRequest,
  ) {
    outgoing.on("timeout", () => outgoing.destroy(new TimedOut("no progress within the time limit")));
    outgoing.on("socket", (socket) => {
      if (!socket.connecting) {
        this.#isConnected = true;
        return;
      }
      const timer = setTimeout(() => outgoing.destroy(new TimedOut("no connection")), CONNECT_MS);
      socket.once(endpoint.url.startsWith("https:") ? "secureConnect" : "connect", () => {
        this.#isConnected = true;
        clearTimeout(timer);
      });
      socket.once("close", () => clearTimeout(timer));
    });
  }

  /** The error of this package for one of Node.js. */
  translate(error: unknown): unknown {
    if (this.signal?.aborted) return this.signal.reason;
    // Thrown by what makes the pieces of the body.
    if (error instanceof SourceFailed) return error.cause;
    const reason = error instanceof Error ? error.message : String(error);
    const name = nameOf(this.endpoint);
    if (!this.#isConnected) {
      const text = `could not reach the daemon at ${name}: ${reason}; 'millibox up -d' starts one, local() its own`;
      return new ConnectError(text, { cause: error });
    }
    const late = `the daemon at ${name} did not answer in time`;
    const broken = `the connection to the daemon at ${name} broke`;
    return new ConnectionLost(`${error instanceof TimedOut ? late : broken}: ${reason}`, { cause: error });
  }
}

/** The caller's own error, which is thrown unchanged. */
class SourceFailed extends Error {}

function writeBody(outgoing: http.ClientRequest, content: Content | undefined, link: Link): void {
  if (content === undefined || content instanceof Uint8Array) {
    outgoing.end(content);
    return;
  }
  const pieces = content instanceof Blob ? content.stream() : content;
  copyBody(outgoing, pieces as AsyncIterable<Uint8Array>).catch((cause: unknown) => {
    link.outgoing.destroy(new SourceFailed("the body could not be made", { cause }));
  });
}

/** Write pieces as fast as the daemon takes them. An answer that comes before the end ends the writing. */
async function copyBody(outgoing: http.ClientRequest, pieces: AsyncIterable<Uint8Array>): Promise<void> {
  let stopped = false;
  let wake: (() => void) | null = null;
  const stop = (): void => {
    stopped = true;
    wake?.();
  };
  outgoing.once("response", stop);
  outgoing.once("close", stop);
  outgoing.on("drain", () => wake?.());
  for await (const piece of pieces) {
    if (stopped) return;
    if (!outgoing.write(piece)) await new Promise<void>((resolve) => (wake = resolve));
  }
  if (!stopped) outgoing.end();
}

class NodeAnswer implements HttpAnswer {
  constructor(
    readonly link: Link,
    readonly incoming: http.IncomingMessage,
  ) {}

  get status(): number {
    return this.incoming.statusCode ?? 0;
  }

  header(name: string): string | null {
    const found = this.incoming.headers[name];
    return Array.isArray(found) ? found.join(", ") : (found ?? null);
  }

  bytes(): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      const pieces: Buffer[] = [];
      this.incoming.on("data", (piece: Buffer) => pieces.push(piece));
      this.incoming.on("error", (error) => reject(this.link.translate(error)));
      this.incoming.on("end", () => {
        this.#leave();
        resolve(pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces));
      });
    });
  }

  async *pieces(): AsyncGenerator<Uint8Array, void, void> {
    try {
      for await (const piece of this.incoming) yield piece;
      this.#leave();
    } catch (error) {
      throw this.link.translate(error);
    }
  }

  close(): void {
    if (!this.incoming.complete) this.incoming.destroy();
  }

  /** The rest of a body that the daemon did not wait for is not sent: its connection cannot be used again. */
  #leave(): void {
    if (!this.link.outgoing.writableEnded) this.link.outgoing.destroy();
  }
}
