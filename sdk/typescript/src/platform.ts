// SPDX-License-Identifier: Apache-2.0
// What differs between Node.js and browsers: connections, settings of the environment, local files.
import { MilliboxError } from "./base_errors.js";
import type { Content } from "./calls.js";
import type { Forward, ForwardOptions, Port } from "./ports.js";
import type { MessageSocket } from "./socket.js";

/** An address and the credentials for it. */
export interface Endpoint {
  readonly url: string;
  /** Path of a Unix socket. */
  readonly socket: string | null;
  readonly apiKey: string | null;
  readonly caFile: string | null;
}

/** Where the daemon is. */
export interface EndpointOptions {
  /** Such as `http://127.0.0.1:8000`. */
  url?: string | undefined;
  /** Path of a Unix socket; not in browsers. */
  socket?: string | undefined;
  /** An API key. */
  apiKey?: string | undefined;
  /** Authorities for https; not in browsers. */
  caFile?: string | undefined;
}

/** What is sent. */
export interface HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: { readonly [name: string]: string };
  readonly content: Content | undefined;
  /** Milliseconds without progress after which it is given up; 0: none. */
  readonly idle: number;
  readonly signal: AbortSignal | undefined;
}

/** What asks for a WebSocket. */
export type UpgradeRequest = Pick<HttpRequest, "path" | "headers" | "signal">;

/** An answer whose body is to be read once, or closed. */
export interface HttpAnswer {
  readonly status: number;
  header(name: string): string | null;
  bytes(): Promise<Uint8Array>;
  pieces(): AsyncIterable<Uint8Array>;
  /** Give up what was not read. */
  close(): void;
}

/** Connections to one daemon. Failures are `ConnectError`, `ConnectionLost`, or the reason of the signal. */
export interface Http {
  send(request: HttpRequest): Promise<HttpAnswer>;
  /** Open a WebSocket. Return: it, or the answer that refuses it. */
  upgrade(request: UpgradeRequest): Promise<MessageSocket | HttpAnswer>;
  close(): void;
}

/** Files of this machine. */
export interface LocalFiles {
  isDirectory(path: string): Promise<boolean>;
  baseName(path: string): string;
  /** The file's content, and its mode in a sandbox. */
  read(path: string): Promise<{ content: AsyncIterable<Uint8Array>; mode: number }>;
  /** The file appears at once when all is there. */
  write(path: string, pieces: AsyncIterable<Uint8Array>): Promise<void>;
  /** A directory as a tar archive. */
  pack(path: string): AsyncIterable<Uint8Array>;
  unpack(path: string, archive: AsyncIterable<Uint8Array>): Promise<void>;
  join(directory: string, name: string): string;
}

export interface Platform {
  findEndpoint(options: EndpointOptions): Endpoint;
  openHttp(endpoint: Endpoint): Http;
  readonly files: LocalFiles | null;
  readonly forward: LocalForward | null;
}

/** Listens on a local port, and passes each connection to one that is opened for it. */
export type LocalForward = (open: () => Promise<Port>, options: ForwardOptions) => Promise<Forward>;

let current: Platform | null = null;

/** Called by the entry points. */
export function usePlatform(platform: Platform): void {
  current = platform;
}

export function platform(): Platform {
  if (current === null) throw new MilliboxError("import 'millibox' first");
  return current;
}

export function localFiles(): LocalFiles {
  const { files } = platform();
  if (files === null) throw new MilliboxError("there are no local files here: use files.read and files.write");
  return files;
}

export function localForward(): LocalForward {
  const { forward } = platform();
  if (forward === null) throw new MilliboxError("there are no local ports here: use openPort");
  return forward;
}

const KEY = /^[A-Za-z0-9_.~+/=-]{1,200}$/;

export function checkUrl(url: string): string {
  if (!/^https?:\/\/[^/?#]+/.test(url)) throw new MilliboxError(`'${url}' is not a URL such as http://127.0.0.1:8000`);
  return url.replace(/\/+$/, "");
}

/** It becomes part of a header. */
export function checkKey(key: string, origin: string): string {
  if (!KEY.test(key)) throw new MilliboxError(`${origin} does not contain a valid key`);
  return key;
}
