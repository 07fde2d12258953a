// SPDX-License-Identifier: Apache-2.0
// Connections by fetch, for browsers and other runtimes without Node.js's modules.
import { ConnectionLost } from "../base_errors.js";
import type { Content } from "../calls.js";
import type { Endpoint, Http, HttpAnswer, HttpRequest, UpgradeRequest } from "../platform.js";
import type { MessageSocket } from "../socket.js";
import { nameOf } from "../transport.js";
import { openSocket } from "./websocket.js";

export class WebHttp implements Http {
  readonly #endpoint: Endpoint;
  readonly #all = new AbortController();

  constructor(endpoint: Endpoint) {
    this.#endpoint = endpoint;
  }

  async send(request: HttpRequest): Promise<HttpAnswer> {
    const link = new Link(this.#endpoint, request, this.#all.signal);
    try {
      const body = request.content === undefined ? null : await whole(request.content);
      const response = await link.within(
        fetch(this.#endpoint.url + request.path, {
          method: request.method,
          headers: request.headers,
          body,
          signal: link.signal,
          credentials: "omit",
          cache: "no-store",
          redirect: "error",
        }),
      );
      return new WebAnswer(link, response);
    } catch (error) {
      link.end();
      throw link.translate(error);
    }
  }

  upgrade(request: UpgradeRequest): Promise<MessageSocket> {
    return openSocket(this.#endpoint, request, this.#all.signal);
  }

  close(): void {
    this.#all.abort();
  }
}

/** Browsers stream no bodies of requests over HTTP/1.1; a Blob need not be in memory. */
async function whole(content: Content): Promise<Blob | Uint8Array<ArrayBuffer>> {
  if (content instanceof Blob) return content;
  if (content instanceof Uint8Array) return content as Uint8Array<ArrayBuffer>;
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  for await (const piece of content) pieces.push(piece as Uint8Array<ArrayBuffer>);
  return new Blob(pieces);
}

/** A request on its way: its signals, its time limit, what its failures mean. */
class Link {
  readonly #endpoint: Endpoint;
  readonly #request: HttpRequest;
  readonly #closed: AbortSignal;
  readonly #abort = new AbortController();
  #isLate = false;

  constructor(endpoint: Endpoint, request: HttpRequest, closed: AbortSignal) {
    this.#endpoint = endpoint;
    this.#request = request;
    this.#closed = closed;
    for (const signal of [request.signal, closed]) {
      signal?.addEventListener("abort", this.cancel);
      if (signal?.aborted) this.cancel();
    }
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  readonly cancel = (): void => this.#abort.abort();

  /** The answer has ended. */
  end(): void {
    for (const signal of [this.#request.signal, this.#closed]) signal?.removeEventListener("abort", this.cancel);
  }

  /** Wait for the next step, no longer than the time limit. */
  async within<T>(step: Promise<T>): Promise<T> {
    if (this.#request.idle === 0) return step;
    const late = (): void => {
      this.#isLate = true;
      this.cancel();
    };
    const timer = setTimeout(late, this.#request.idle);
    try {
      return await step;
    } finally {
      clearTimeout(timer);
    }
  }

  /** fetch does not tell a refused connection from one that broke: the request may have been served. */
  translate(error: unknown): unknown {
    if (this.#request.signal?.aborted) return this.#request.signal.reason;
    const name = nameOf(this.#endpoint);
    if (this.#isLate) return new ConnectionLost(`the daemon at ${name} did not answer in time`);
    const reason = error instanceof Error ? error.message : String(error);
    return new ConnectionLost(`the connection to the daemon at ${name} broke: ${reason}`, { cause: error });
  }
}

class WebAnswer implements HttpAnswer {
  readonly status: number;
  readonly #link: Link;
  readonly #response: Response;
  #isRead = false;

  constructor(link: Link, response: Response) {
    this.#link = link;
    this.#response = response;
    this.status = response.status;
  }

  header(name: string): string | null {
    return this.#response.headers.get(name);
  }

  async bytes(): Promise<Uint8Array> {
    const pieces: Uint8Array[] = [];
    for await (const piece of this.pieces()) pieces.push(piece);
    const all = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
    let at = 0;
    for (const piece of pieces) {
      all.set(piece, at);
      at += piece.length;
    }
    return all;
  }

  async *pieces(): AsyncGenerator<Uint8Array, void, void> {
    const reader = this.#response.body?.getReader();
    try {
      while (reader) {
        const next = await this.#link.within(reader.read());
        if (next.done) break;
        yield next.value;
      }
      this.#isRead = true;
    } catch (error) {
      throw this.#link.translate(error);
    } finally {
      this.close();
    }
  }

  close(): void {
    this.#link.end();
    if (!this.#isRead) this.#link.cancel();
  }
}
