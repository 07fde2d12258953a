// SPDX-License-Identifier: Apache-2.0
// Bytes, base64 and text, without what only Node.js has.

/** Text, or bytes as they are. */
export type Data = string | Uint8Array;

const encoder = new TextEncoder();
/** Arguments of one call; engines limit their number. */
const CHUNK = 32768;

export function encodeText(text: string): Uint8Array {
  return encoder.encode(text);
}

export function decodeText(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}

export function toBase64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += CHUNK) text += String.fromCharCode(...bytes.subarray(at, at + CHUNK));
  return btoa(text);
}

export function fromBase64(text: string): Uint8Array {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at++) bytes[at] = binary.charCodeAt(at);
  return bytes;
}

/** Text as it is; bytes, and text with NUL, as base64. */
export function encodeData(name: string, data: Data): string | { base64: string } {
  if (typeof data === "string" && !data.includes("\0")) return data;
  // Those of another realm, such as a test's, too.
  if (typeof data !== "string" && Object.prototype.toString.call(data) !== "[object Uint8Array]")
    throw new TypeError(`${name}: must be text or a Uint8Array`);
  return { base64: toBase64(typeof data === "string" ? encodeText(data) : data) };
}
