// SPDX-License-Identifier: Apache-2.0
// The client's side of RFC 6455, over a connection of node:http: Node.js has none for Unix sockets.
import { createHash, randomBytes } from "node:crypto";
import type { Duplex } from "node:stream";
import { LOST, type Message, MessageSocket, NORMAL, type SocketDriver } from "../socket.js";

const GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const CONTINUATION = 0;
const TEXT = 1;
const BINARY = 2;
const CLOSE = 8;
const PING = 9;
const PONG = 10;
const CONTROL_MAX = 125;
/** Of one message; those of the daemon have at most 256 KiB. */
const MESSAGE_MAX = 4 << 20;
const PROTOCOL_ERROR = 1002;
const TOO_BIG = 1009;
/** For the daemon's answer to a close message. */
const CLOSE_MS = 2000;

export function makeKey(): string {
  return randomBytes(16).toString("base64");
}

export function acceptOf(key: string): string {
  return createHash("sha1").update(key + GUID).digest("base64");
}

/** A WebSocket over a connection that was upgraded; @head came with the answer. */
export function openSocket(connection: Duplex, head: Buffer): MessageSocket {
  const socket = new MessageSocket();
  const frames = new Frames(connection, socket);
  socket.drive(frames);
  connection.on("data", (piece: Buffer) => frames.read(piece));
  connection.on("error", () => socket.end(LOST));
  connection.on("close", () => socket.end(LOST));
  connection.on("end", () => connection.end());
  if (head.length > 0) frames.read(head);
  return socket;
}

interface Frame {
  readonly isLast: boolean;
  readonly opcode: number;
  readonly data: Buffer;
}

/** Frames of one connection. */
class Frames implements SocketDriver {
  readonly #connection: Duplex;
  readonly #socket: MessageSocket;
  #rest: Buffer = Buffer.alloc(0);
  #parts: Buffer[] = [];
  #opcode = CONTINUATION;
  #isClosing = false;

  constructor(connection: Duplex, socket: MessageSocket) {
    this.#connection = connection;
    this.#socket = socket;
  }

  async send(message: Message): Promise<void> {
    const isText = typeof message === "string";
    if (this.#write(isText ? TEXT : BINARY, isText ? Buffer.from(message) : message)) return;
    await new Promise<void>((resolve) => {
      const finish = (): void => {
        this.#connection.off("drain", finish);
        this.#connection.off("close", finish);
        resolve();
      };
      this.#connection.on("drain", finish);
      this.#connection.on("close", finish);
    });
  }

  hold(hold: boolean): void {
    if (hold) this.#connection.pause();
    else this.#connection.resume();
  }

  close(code: number): void {
    if (this.#isClosing) return;
    this.#isClosing = true;
    this.#write(CLOSE, Buffer.of(code >> 8, code & 255));
    this.#connection.resume();
    setTimeout(() => this.#connection.destroy(), CLOSE_MS).unref();
  }

  /** Return: false if the sender should wait. */
  #write(opcode: number, data: Uint8Array): boolean {
    const size = data.length;
    const head = size < 126 ? Buffer.alloc(2) : size < 65536 ? Buffer.alloc(4) : Buffer.alloc(10);
    head[0] = 0x80 | opcode;
    head[1] = 0x80 | (size < 126 ? size : size < 65536 ? 126 : 127);
    if (head.length === 4) head.writeUInt16BE(size, 2);
    if (head.length === 10) head.writeBigUInt64BE(BigInt(size), 2);
    // Clients must mask, so that no proxy takes what they send for a request.
    const mask = randomBytes(4);
    const masked = Buffer.allocUnsafe(size);
    for (let at = 0; at < size; at++) masked[at] = data[at]! ^ mask[at & 3]!;
    return this.#connection.write(Buffer.concat([head, mask, masked]));
  }

  read(piece: Buffer): void {
    this.#rest = this.#rest.length ? Buffer.concat([this.#rest, piece]) : piece;
    for (let frame = this.#next(); frame !== null; frame = this.#next()) this.#take(frame);
  }

  /** The next whole frame, or null. */
  #next(): Frame | null {
    const rest = this.#rest;
    if (rest.length < 2 || this.#connection.destroyed) return null;
    const short = rest[1]! & 127;
    const start = short < 126 ? 2 : short === 126 ? 4 : 10;
    if (rest.length < start) return null;
    const size = short < 126 ? short : short === 126 ? rest.readUInt16BE(2) : Number(rest.readBigUInt64BE(2));
    const isControl = Boolean(rest[0]! & 8);
    // No extension was offered, and servers do not mask.
    if (rest[0]! & 0x70 || rest[1]! & 0x80 || (isControl && size > CONTROL_MAX)) return this.#fail(PROTOCOL_ERROR);
    if (size > MESSAGE_MAX) return this.#fail(TOO_BIG);
    if (rest.length < start + size) return null;
    this.#rest = rest.subarray(start + size);
    return { isLast: Boolean(rest[0]! & 0x80), opcode: rest[0]! & 15, data: rest.subarray(start, start + size) };
  }

  #take(frame: Frame): void {
    if (frame.opcode === CLOSE) this.#takeClose(frame.data);
    else if (frame.opcode === PING) this.#write(PONG, frame.data);
    else if (frame.opcode <= BINARY) this.#takeData(frame);
    else if (frame.opcode !== PONG) this.#fail(PROTOCOL_ERROR);
  }

  #takeData({ isLast, opcode, data }: Frame): void {
    if ((opcode === CONTINUATION) !== this.#parts.length > 0) return void this.#fail(PROTOCOL_ERROR);
    if (opcode !== CONTINUATION) this.#opcode = opcode;
    this.#parts.push(data);
    if (this.#parts.reduce((sum, part) => sum + part.length, 0) > MESSAGE_MAX) return void this.#fail(TOO_BIG);
    if (!isLast) return;
    const whole = this.#parts.length === 1 ? data : Buffer.concat(this.#parts);
    this.#parts = [];
    this.#socket.deliver(this.#opcode === TEXT ? whole.toString() : whole);
  }

  #takeClose(data: Buffer): void {
    this.#socket.end(data.length >= 2 ? data.readUInt16BE(0) : NORMAL);
    if (!this.#isClosing) this.#write(CLOSE, data.subarray(0, 2));
    this.#isClosing = true;
    this.#connection.end();
  }

  #fail(code: number): null {
    this.close(code);
    this.#socket.end(code);
    this.#connection.destroy();
    return null;
  }
}
