// SPDX-License-Identifier: Apache-2.0
// Files of a sandbox.
import { decodeText, encodeText } from "./bytes.js";
import * as calls from "./calls.js";
import { FileNotFoundError, RangeNotSatisfiableError } from "./errors.js";
import { FileInfo, type JsonObject } from "./models.js";
import type { CallOptions } from "./options.js";
import { localFiles } from "./platform.js";
import type { Transport } from "./transport.js";

/** What can be written: text, bytes, a Blob, or pieces, such as a readable stream of Node.js. */
export type Writable = string | calls.Content;

/** Files below `/workspace` of a sandbox. Paths are relative to it, or begin with `/workspace`. */
export class Files {
  readonly #transport: Transport;
  readonly #id: string;

  /** @internal */
  constructor(transport: Transport, id: string) {
    this.#transport = transport;
    this.#id = id;
  }

  /** The content of a file, or a part of it. */
  async read(path: string, options: { offset?: number; length?: number } & CallOptions = {}): Promise<Uint8Array> {
    if (options.length === 0) return new Uint8Array(0);
    const call = calls.fileRead(this.#id, path, options.offset, options.length);
    try {
      return await this.#transport.call(call, options.signal);
    } catch (error) {
      if (error instanceof RangeNotSatisfiableError) return new Uint8Array(0);
      throw error;
    }
  }

  /** The content of a file as text. */
  async readText(path: string, options: CallOptions = {}): Promise<string> {
    return decodeText(await this.read(path, options));
  }

  /** The content of a file, piece by piece. */
  async *stream(path: string, options: CallOptions = {}): AsyncGenerator<Uint8Array, void, void> {
    yield* this.#transport.pieces(calls.fileRead(this.#id, path), options.signal);
  }

  /** Write a file. Missing directories are created; the file is replaced at once when all is there. Browsers gather
   * pieces before they send them. */
  write(path: string, data: Writable, options: { mode?: number } & CallOptions = {}): Promise<FileInfo> {
    const content = typeof data === "string" ? encodeText(data) : data;
    return this.#transport.call(calls.fileWrite(this.#id, path, content, options.mode), options.signal);
  }

  /** Entries of a directory, in the order of their names; with `recursive`, everything below it. */
  async list(path = "", options: { recursive?: boolean } & CallOptions = {}): Promise<FileInfo[]> {
    const found: FileInfo[] = [];
    let after: string | null = null;
    do {
      const call = calls.fileList(this.#id, path, options.recursive ?? false, after);
      const answer: JsonObject = await this.#transport.call(call, options.signal);
      for (const raw of answer["files"]) found.push(new FileInfo(raw));
      after = answer["truncated"] ? (answer["next"] ?? null) : null;
    } while (after !== null);
    return found;
  }

  /** The entry itself; links are not followed. */
  stat(path: string, options: CallOptions = {}): Promise<FileInfo> {
    return this.#transport.call(calls.fileStat(this.#id, path), options.signal);
  }

  /** Whether there is an entry. */
  async exists(path: string, options: CallOptions = {}): Promise<boolean> {
    try {
      await this.stat(path, options);
      return true;
    } catch (error) {
      if (error instanceof FileNotFoundError) return false;
      throw error;
    }
  }

  /** Move a file or directory. What is at `to` is a conflict, or replaced. */
  move(path: string, to: string, options: { replace?: boolean } & CallOptions = {}): Promise<FileInfo> {
    return this.#transport.call(calls.fileMove(this.#id, path, to, options.replace ?? false), options.signal);
  }

  /** Create a directory; with `parents` (the default) also missing ones above it, and one that exists is no error. */
  mkdir(path: string, options: { parents?: boolean } & CallOptions = {}): Promise<FileInfo> {
    return this.#transport.call(calls.fileMkdir(this.#id, path, options.parents ?? true), options.signal);
  }

  /** Remove a file, or a directory: with its content if `recursive`. */
  remove(path: string, options: { recursive?: boolean } & CallOptions = {}): Promise<void> {
    return this.#transport.call(calls.fileRemove(this.#id, path, options.recursive ?? false), options.signal);
  }

  /** Copy a local file or directory into the sandbox; by default under its own name. A directory's content goes into
   * the directory `path`; links stay links. Not in browsers. */
  async upload(local: string, path?: string, options: CallOptions = {}): Promise<void> {
    const here = localFiles();
    const target = path ?? here.baseName(local);
    if (await here.isDirectory(local)) {
      await this.#transport.call(calls.tarWrite(this.#id, target, here.pack(local)), options.signal);
      return;
    }
    const { content, mode } = await here.read(local);
    await this.write(target, content, { ...options, mode });
  }

  /** Copy a file or directory of the sandbox to the local path. A file appears at once when all is there. Nothing of
   * a directory gets outside of `local`: links out of it are an error (`UnsafeArchive`). Not in browsers. */
  async download(path: string, local: string, options: CallOptions = {}): Promise<void> {
    const here = localFiles();
    if ((await this.stat(path, options)).isDir) {
      await here.unpack(local, this.#transport.pieces(calls.tarRead(this.#id, path), options.signal));
      return;
    }
    const target = (await here.isDirectory(local)) ? here.join(local, here.baseName(path)) : local;
    await here.write(target, this.stream(path, options));
  }
}
