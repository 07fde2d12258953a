// SPDX-License-Identifier: Apache-2.0
// WebSockets, whichever runtime makes them: messages in both directions.
import { ConnectionLost } from "./base_errors.js";

/** Text, or bytes. */
export type Message = string | Uint8Array;

/** What a runtime's WebSocket does for a `MessageSocket`. */
export interface SocketDriver {
  /** Resolves when more may be sent. */
  send(message: Message): Promise<void>;
  close(code: number): void;
  /** Stop reading, or go on. */
  hold(hold: boolean): void;
}

export const NORMAL = 1000;
/** No close message came. */
export const LOST = 1006;
/** Bytes that wait for the reader until the runtime stops reading. */
const WAITING_MAX = 1 << 20;

/** A WebSocket: sends, and keeps what came until it is read. */
export class MessageSocket {
  /** The code with which it was closed; null while it is open. */
  code: number | null = null;
  readonly #waiting: Message[] = [];
  #size = 0;
  #wake: (() => void) | null = null;
  #driver: SocketDriver | null = null;

  /** Called by the runtime's part, before any message. */
  drive(driver: SocketDriver): void {
    this.#driver = driver;
  }

  /** Called by the runtime's part for each message. */
  deliver(message: Message): void {
    this.#waiting.push(message);
    this.#size += message.length;
    if (this.#size > WAITING_MAX) this.#driver?.hold(true);
    this.#wake?.();
  }

  /** Called by the runtime's part at the end. */
  end(code: number): void {
    this.code ??= code;
    this.#wake?.();
  }

  async send(message: Message): Promise<void> {
    if (this.code !== null) throw new ConnectionLost(`the connection is closed (${this.code})`);
    await this.#driver?.send(message);
  }

  /** Leave it; what was not read is dropped. */
  close(code: number = NORMAL): void {
    if (this.code === null) this.#driver?.close(code);
    this.end(code);
  }

  /** The next message; null at the end. Only one reader may wait. */
  async next(): Promise<Message | null> {
    while (this.#waiting.length === 0) {
      if (this.code !== null) return null;
      await new Promise<void>((resolve) => (this.#wake = resolve));
      this.#wake = null;
    }
    const message = this.#waiting.shift()!;
    const wasFull = this.#size > WAITING_MAX;
    this.#size -= message.length;
    if (wasFull && this.#size <= WAITING_MAX) this.#driver?.hold(false);
    return message;
  }
}
