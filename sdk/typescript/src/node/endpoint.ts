// SPDX-License-Identifier: Apache-2.0
// Where the daemon is: arguments, the environment, or the default socket, in the order of the command line.
import { lstatSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { MilliboxError } from "../base_errors.js";
import { type Endpoint, type EndpointOptions, checkKey, checkUrl } from "../platform.js";

const SYSTEM_SOCKET = "/run/millibox/millibox.sock";
/** Fills only the Host header of requests over a Unix socket; every daemon accepts it. */
const UNIX_URL = "http://localhost";
/** A socket's path must fit into sun_path. */
const SOCKET_MAX = 107;

type Environment = { readonly [name: string]: string | undefined };

/** Arguments win over MILLIBOX_SOCKET, MILLIBOX_URL, MILLIBOX_API_KEY, MILLIBOX_API_KEY_FILE and MILLIBOX_CA_FILE. */
export function findEndpoint(options: EndpointOptions, env: Environment = process.env): Endpoint {
  let { url, socket } = options;
  if (url && socket) throw new MilliboxError("give url or socket, not both");
  if (!url && !socket) {
    socket = env["MILLIBOX_SOCKET"];
    url = socket ? undefined : env["MILLIBOX_URL"];
  }
  const apiKey = options.apiKey ? checkKey(options.apiKey, "apiKey") : keyOf(env);
  const caFile = options.caFile || env["MILLIBOX_CA_FILE"] || null;
  if (url) return { url: checkUrl(url), socket: null, apiKey, caFile };
  return { url: UNIX_URL, socket: checkSocket(socket || defaultSocket(env)), apiKey, caFile };
}

function defaultSocket(env: Environment): string {
  const uid = process.geteuid?.() ?? 0;
  if (uid === 0) return SYSTEM_SOCKET;
  const runtime = env["XDG_RUNTIME_DIR"] ?? "";
  const own = runtime.startsWith("/") ? `${runtime}/millibox/millibox.sock` : `/tmp/millibox-${uid}/millibox.sock`;
  if (own.startsWith("/tmp/") && stat(dirname(own)) !== null) checkOwner(dirname(own), uid);
  // Without a daemon of this user, that of the system.
  return !isSocket(own) && isSocket(SYSTEM_SOCKET) && isDirectoryOf(dirname(SYSTEM_SOCKET), 0) ? SYSTEM_SOCKET : own;
}

/** Any user can create /tmp/millibox-UID and read code that is sent to a socket there. */
function checkOwner(directory: string, uid: number): void {
  if (isDirectoryOf(directory, uid)) return;
  const remedy = "remove it, or name the socket with MILLIBOX_SOCKET";
  throw new MilliboxError(`${directory} belongs to another user, or others may write to it; ${remedy}`);
}

function stat(path: string): ReturnType<typeof lstatSync> | null {
  try {
    return lstatSync(path);
  } catch {
    return null;
  }
}

function isSocket(path: string): boolean {
  return stat(path)?.isSocket() ?? false;
}

function isDirectoryOf(path: string, owner: number): boolean {
  const found = stat(path);
  return Boolean(found?.isDirectory() && found.uid === owner && !(Number(found.mode) & 0o022));
}

function checkSocket(path: string): string {
  if (Buffer.byteLength(path) > SOCKET_MAX) {
    throw new MilliboxError(`the path of the socket is longer than ${SOCKET_MAX} bytes: ${path}`);
  }
  return path;
}

function keyOf(env: Environment): string | null {
  const key = env["MILLIBOX_API_KEY"];
  if (key) return checkKey(key, "MILLIBOX_API_KEY");
  const path = env["MILLIBOX_API_KEY_FILE"];
  if (!path) return null;
  let text: string;
  try {
    text = readFileSync(path, "utf8").trim();
  } catch (cause) {
    throw new MilliboxError(`could not read the key from ${path}: ${cause}`, { cause });
  }
  return checkKey(text, path);
}
