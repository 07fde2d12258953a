// SPDX-License-Identifier: Apache-2.0
// Connections to programs that listen in a sandbox.
import { ConnectionLost } from "./base_errors.js";
import { type Data, encodeText } from "./bytes.js";
import { asyncDispose } from "./dispose.js";
import { type MessageSocket, NORMAL } from "./socket.js";

/** Of one message to the daemon. */
const MESSAGE_MAX = 256 * 1024;
/** Close codes of the daemon, and what they mean. */
const REASONS: { readonly [code: number]: string } = {
  1001: "its sandbox has ended, or the daemon stops",
  1008: "the key was revoked",
  1011: "the program reset it",
};

/** A TCP connection to a program in a sandbox. Iterate over it to read what the program sends, up to its end. */
export class Port implements AsyncIterable<Uint8Array> {
  readonly #socket: MessageSocket;
  #isFinished = false;

  /** @internal */
  constructor(
    socket: MessageSocket,
    /** Its number. */
    readonly port: number,
  ) {
    this.#socket = socket;
  }

  /** Everything up to the end. */
  async readAll(): Promise<Uint8Array> {
    const pieces: Uint8Array[] = [];
    for await (const piece of this) pieces.push(piece);
    return new Uint8Array(await new Blob(pieces as Uint8Array<ArrayBuffer>[]).arrayBuffer());
  }

  /** Send text or bytes; resolves when more may be sent. */
  async write(data: Data): Promise<void> {
    const bytes = typeof data === "string" ? encodeText(data) : data;
    for (let at = 0; at < bytes.length; at += MESSAGE_MAX) {
      await this.#socket.send(bytes.subarray(at, at + MESSAGE_MAX));
    }
  }

  /** Send no more: the program reads the end of its input, and may send on. */
  async finish(): Promise<void> {
    if (this.#isFinished) return;
    this.#isFinished = true;
    await this.#socket.send(new Uint8Array(0));
  }

  /** End the connection; what the program still sends is dropped. */
  async close(): Promise<void> {
    this.#socket.close();
  }

  async [asyncDispose](): Promise<void> {
    await this.close();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, void> {
    for (let message = await this.#socket.next(); message !== null; message = await this.#socket.next()) {
      if (message.length === 0) return;
      if (typeof message !== "string") yield message;
    }
    const { code } = this.#socket;
    if (code === NORMAL) return;
    const reason = REASONS[code ?? 0] ?? `code ${code}`;
    throw new ConnectionLost(`the connection to port ${this.port} ended early: ${reason}`);
  }
}

/** Where a forwarded port is. */
export interface ForwardOptions {
  /** Default: a free one. */
  localPort?: number | undefined;
  /** Local address; default: `127.0.0.1`. */
  address?: string | undefined;
}

/** Local connections that lead to a port of a sandbox, until `close`. A connection that cannot be made, or breaks, is
 * reset; `lastError` has the reason. */
export interface Forward {
  /** Of a web server behind it. */
  readonly url: string;
  /** Address on which it listens. */
  readonly host: string;
  /** Port on which it listens. */
  readonly port: number;
  /** Why the latest failed connection failed. */
  readonly lastError: unknown;
  /** Listen no more, and end the connections. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}
