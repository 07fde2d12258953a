// SPDX-License-Identifier: Apache-2.0
// Tar archives: headers of ustar, with pax records for what does not fit. Pure; archives that are read are hostile.
import { UnsafeArchive } from "../base_errors.js";

export const BLOCK = 512;
const NAME_MAX = 100;
const OCTAL_SIZE_MAX = 0o77777777777;
/** Bytes of one entry's pax records that are read. */
const PAX_MAX = 64 * 1024;

export type Kind = "file" | "directory" | "symlink" | "other";

export interface Entry {
  readonly kind: Kind;
  readonly name: string;
  readonly link: string;
  readonly size: number;
  readonly mode: number;
}

const TYPES: { readonly [kind in Exclude<Kind, "other">]: string } = { file: "0", directory: "5", symlink: "2" };
const KINDS: { readonly [type: string]: Kind } = { "\0": "file", "0": "file", "5": "directory", "2": "symlink" };

// ---- writing

/** The header of an entry, with pax records before it where needed. */
export function makeHeader(entry: Entry): Uint8Array {
  const [name, link] = [Buffer.from(entry.name), Buffer.from(entry.link)];
  const fits = name.length <= NAME_MAX && link.length <= NAME_MAX && entry.size <= OCTAL_SIZE_MAX;
  const header = makeBlock(name, link, TYPES[entry.kind as keyof typeof TYPES], entry.size, entry.mode);
  if (fits) return header;
  const records = Buffer.concat([
    record("path", entry.name),
    entry.link ? record("linkpath", entry.link) : Buffer.alloc(0),
    record("size", String(entry.size)),
  ]);
  const pax = makeBlock(Buffer.from("././@PaxHeader"), Buffer.alloc(0), "x", records.length, 0o644);
  return Buffer.concat([pax, records, padding(records.length), header]);
}

/** Zeros up to the next block. */
export function padding(size: number): Uint8Array {
  return Buffer.alloc((BLOCK - (size % BLOCK)) % BLOCK);
}

/** "LEN key=value\n"; LEN includes itself. */
function record(key: string, value: string): Buffer {
  const body = Buffer.from(` ${key}=${value}\n`);
  let length = body.length;
  while (length !== body.length + String(length).length) length = body.length + String(length).length;
  return Buffer.concat([Buffer.from(String(length)), body]);
}

function makeBlock(name: Buffer, link: Buffer, type: string, size: number, mode: number): Buffer {
  const block = Buffer.alloc(BLOCK);
  const octal = (value: number, at: number, digits: number): void => {
    block.write(value.toString(8).padStart(digits, "0"), at);
  };
  name.copy(block, 0, 0, NAME_MAX);
  octal(mode & 0o777, 100, 7);
  octal(0, 108, 7);
  octal(0, 116, 7);
  octal(size <= OCTAL_SIZE_MAX ? size : 0, 124, 11);
  octal(0, 136, 11);
  block.write(type, 156);
  link.copy(block, 157, 0, NAME_MAX);
  block.write("ustar\u000000", 257);
  octal(sumOf(block), 148, 6);
  block.write("\0 ", 154);
  return block;
}

function sumOf(block: Uint8Array): number {
  let sum = 0;
  for (let at = 0; at < BLOCK; at++) sum += at >= 148 && at < 156 ? 32 : block[at]!;
  return sum;
}

// ---- reading

/** Reads exactly as many bytes as are wanted from pieces of any size. */
class Reader {
  readonly #pieces: AsyncIterator<Uint8Array>;
  #rest: Uint8Array = new Uint8Array(0);

  constructor(pieces: AsyncIterable<Uint8Array>) {
    this.#pieces = pieces[Symbol.asyncIterator]();
  }

  /** At most @size bytes; none at the end. */
  async some(size: number): Promise<Uint8Array> {
    while (this.#rest.length === 0) {
      const next = await this.#pieces.next();
      if (next.done) return this.#rest;
      this.#rest = next.value;
    }
    const taken = this.#rest.subarray(0, size);
    this.#rest = this.#rest.subarray(taken.length);
    return taken;
  }

  async exactly(size: number): Promise<Buffer> {
    const parts: Uint8Array[] = [];
    for (let left = size; left > 0; left -= parts[parts.length - 1]!.length) {
      parts.push(await this.some(left));
      if (parts[parts.length - 1]!.length === 0) throw new UnsafeArchive("the archive ends before its end");
    }
    return Buffer.concat(parts);
  }

  async *content(size: number): AsyncGenerator<Uint8Array, void, void> {
    for (let left = size; left > 0; ) {
      const piece = await this.some(left);
      if (piece.length === 0) throw new UnsafeArchive("the archive ends within a file");
      left -= piece.length;
      yield piece;
    }
  }

  async close(): Promise<void> {
    await this.#pieces.return?.();
  }
}

/** Read an archive; @take gets each entry and its content, and need not read it. */
export async function readArchive(
  pieces: AsyncIterable<Uint8Array>,
  take: (entry: Entry, content: AsyncIterable<Uint8Array>) => Promise<void>,
): Promise<void> {
  const reader = new Reader(pieces);
  let extra: Partial<Entry> = {};
  try {
    for (;;) {
      const block = await reader.exactly(BLOCK);
      if (block.every((byte) => byte === 0)) break;
      const type = String.fromCharCode(block[156]!);
      const head = readBlock(block);
      if (type === "x") {
        if (head.size > PAX_MAX) throw new UnsafeArchive("the archive has a header that is too long");
        extra = readRecords((await reader.exactly(head.size + padding(head.size).length)).subarray(0, head.size));
        continue;
      }
      const entry = { ...head, ...extra };
      extra = {};
      const content = reader.content(entry.size);
      await take(entry, content);
      for await (const _ of content); // what was not read
      await reader.exactly(padding(entry.size).length);
    }
    // Read to the end, so that the connection can be used again.
    while ((await reader.some(BLOCK)).length > 0);
  } finally {
    await reader.close();
  }
}

function readBlock(block: Buffer): Entry {
  if (readOctal(block, 148, 8) !== sumOf(block)) throw new UnsafeArchive("the archive has a header that is not valid");
  const prefix = block.toString("latin1", 257, 263) === "ustar\0" ? text(block, 345, 155) : "";
  const name = text(block, 0, NAME_MAX);
  const kind = KINDS[String.fromCharCode(block[156]!)] ?? "other";
  return {
    kind: kind === "file" && name.endsWith("/") ? "directory" : kind,
    name: prefix ? `${prefix}/${name}` : name,
    link: text(block, 157, NAME_MAX),
    size: readOctal(block, 124, 12),
    mode: readOctal(block, 100, 8) & 0o777,
  };
}

function readOctal(block: Buffer, at: number, length: number): number {
  const digits = block.toString("latin1", at, at + length).replace(/[ \0]+$/, "").trimStart();
  if (!/^[0-7]*$/.test(digits)) throw new UnsafeArchive("the archive has a number that is not valid");
  return Number.parseInt(digits || "0", 8);
}

function text(block: Buffer, at: number, length: number): string {
  const end = block.subarray(at, at + length).indexOf(0);
  return decode(block.subarray(at, end < 0 ? at + length : at + end));
}

/** Names of which JavaScript cannot make the same bytes again are refused. */
function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new UnsafeArchive("the archive has a name that is not UTF-8");
  }
}

function readRecords(records: Buffer): Partial<Entry> {
  const found: { name?: string; link?: string; size?: number } = {};
  for (let at = 0; at < records.length; ) {
    const space = records.indexOf(" ", at);
    const length = Number(records.toString("latin1", at, space));
    const equals = records.indexOf("=", space);
    const end = at + length;
    const valid = space > at && Number.isSafeInteger(length) && equals > space && equals < end && end <= records.length;
    if (!valid) throw new UnsafeArchive("the archive has a header that is not valid");
    const key = records.toString("latin1", space + 1, equals);
    const value = decode(records.subarray(equals + 1, end - 1));
    if (key === "path") found.name = value;
    else if (key === "linkpath") found.link = value;
    else if (key === "size" && /^\d{1,15}$/.test(value)) found.size = Number(value);
    else if (key === "size" || key.startsWith("GNU.sparse")) {
      throw new UnsafeArchive(`the archive has an invalid '${key}'`);
    }
    at = end;
  }
  return found;
}
