// SPDX-License-Identifier: Apache-2.0
// The browser's WebSocket.
import { ConnectionLost } from "../base_errors.js";
import type { Endpoint, UpgradeRequest } from "../platform.js";
import { type Message, MessageSocket } from "../socket.js";
import { nameOf } from "../transport.js";

export function openSocket(endpoint: Endpoint, request: UpgradeRequest, closed: AbortSignal): Promise<MessageSocket> {
  // A page cannot add headers, and others can read the URL: the key is offered as the name of a protocol.
  const protocols = endpoint.apiKey === null ? [] : ["millibox", `millibox.key.${endpoint.apiKey}`];
  return new Promise((resolve, reject) => {
    const socket = new MessageSocket();
    const web = new WebSocket(endpoint.url.replace(/^http/, "ws") + request.path, protocols);
    const leave = (): void => web.close();
    web.binaryType = "arraybuffer";
    socket.drive({
      send: async (message: Message) => web.send(message as string),
      close: (code) => web.close(code),
      // A browser reads on; the daemon's windows bound what comes.
      hold: () => undefined,
    });
    for (const signal of [request.signal, closed]) signal?.addEventListener("abort", leave);
    web.onopen = (): void => {
      request.signal?.removeEventListener("abort", leave);
      resolve(socket);
    };
    web.onmessage = ({ data }): void => socket.deliver(typeof data === "string" ? data : new Uint8Array(data));
    web.onclose = ({ code }): void => {
      for (const signal of [request.signal, closed]) signal?.removeEventListener("abort", leave);
      socket.end(code);
      const refused = new ConnectionLost(`the daemon at ${nameOf(endpoint)} did not open a WebSocket`);
      reject(request.signal?.aborted ? request.signal.reason : refused);
    };
  });
}
