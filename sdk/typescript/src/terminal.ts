// SPDX-License-Identifier: Apache-2.0
// A program of a sandbox on a terminal.
import { ConnectionLost } from "./base_errors.js";
import { type Data, encodeText } from "./bytes.js";
import * as calls from "./calls.js";
import { asyncDispose } from "./dispose.js";
import { STATUS, fromAnswer } from "./errors.js";
import { Execution } from "./execution.js";
import type { JsonObject, Result } from "./models.js";
import type { CallOptions } from "./options.js";
import { type MessageSocket, NORMAL } from "./socket.js";
import type { Transport } from "./transport.js";

/** Of one message to the daemon. */
const MESSAGE_MAX = 64 * 1024;

/** A program on a terminal: a shell, an editor, a debugger. Iterate over it to read what it shows, up to its end. What
 * the daemon refuses, such as a size, is thrown there; a new iteration goes on. Leaving it does not end the program;
 * `kill` does. */
export class Terminal implements AsyncIterable<Uint8Array> {
  readonly #socket: MessageSocket;
  readonly #execution: Execution;

  /** @internal */
  constructor(socket: MessageSocket, execution: Execution) {
    this.#socket = socket;
    this.#execution = execution;
  }

  /** @internal */
  static async attach(transport: Transport, id: string, options: CallOptions): Promise<Terminal> {
    return new Terminal(await transport.socket(calls.attachPath(id), options.signal), new Execution(transport, id));
  }

  /** Id of the execution, for `Sandbox.attach`. */
  get id(): string {
    return this.#execution.id;
  }

  /** Type. A line ends with `\n`; Ctrl-C is `\x03`, Ctrl-D `\x04`. */
  async send(data: Data): Promise<void> {
    const bytes = typeof data === "string" ? encodeText(data) : data;
    for (let at = 0; at < bytes.length; at += MESSAGE_MAX) {
      await this.#socket.send(bytes.subarray(at, at + MESSAGE_MAX));
    }
  }

  /** Change the size of the terminal. */
  async resize(rows: number, cols: number): Promise<void> {
    await this.#socket.send(JSON.stringify({ resize: { rows, cols } }));
  }

  /** Send a signal to the programs in the foreground, such as `INT` or `TERM`. */
  async sendSignal(name: string): Promise<void> {
    await this.#socket.send(JSON.stringify({ signal: name }));
  }

  /** Wait for the end of the program, without reading what it shows. */
  wait(options: CallOptions = {}): Promise<Result> {
    return this.#execution.wait(options);
  }

  /** End the program. Return: false if it had ended before. */
  kill(options: CallOptions = {}): Promise<boolean> {
    return this.#execution.kill(options);
  }

  /** Leave the terminal; the program runs on. */
  async close(): Promise<void> {
    this.#socket.close();
  }

  async [asyncDispose](): Promise<void> {
    await this.close();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, void> {
    for (let message = await this.#socket.next(); message !== null; message = await this.#socket.next()) {
      if (typeof message !== "string") yield message;
      else throwError(JSON.parse(message));
    }
    const { code } = this.#socket;
    if (code !== NORMAL) throw new ConnectionLost(`the connection to the terminal broke (${code})`);
  }
}

/** For a message that the daemon could not obey. */
function throwError(message: JsonObject): void {
  const body: JsonObject | undefined = message["error"];
  if (body) throw fromAnswer(STATUS[String(body["error_code"])] ?? 400, body);
}
