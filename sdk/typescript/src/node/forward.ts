// SPDX-License-Identifier: Apache-2.0
// A local port that leads to a program in a sandbox.
import { type AddressInfo, type Server, type Socket, createServer } from "node:net";
import { asyncDispose } from "../dispose.js";
import type { Forward, ForwardOptions, Port } from "../ports.js";

/** Listen, and pass each connection to one that @open makes. */
export async function forward(open: () => Promise<Port>, options: ForwardOptions): Promise<Forward> {
  const made = new NodeForward(open, options.address ?? "127.0.0.1");
  await made.listen(options.localPort ?? 0);
  return made;
}

class NodeForward implements Forward {
  lastError: unknown = null;
  port = 0;
  readonly host: string;
  readonly #open: () => Promise<Port>;
  readonly #server: Server;
  readonly #connections = new Set<Socket>();

  constructor(open: () => Promise<Port>, host: string) {
    this.host = host;
    this.#open = open;
    // What was read from one side may go on to the other after its end.
    this.#server = createServer({ allowHalfOpen: true }, (local) => void this.#serve(local));
  }

  async listen(port: number): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(port, this.host, resolve);
    });
    this.port = (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://${this.host.includes(":") ? `[${this.host}]` : this.host}:${this.port}`;
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const local of this.#connections) local.destroy();
    await closed;
  }

  async [asyncDispose](): Promise<void> {
    await this.close();
  }

  async #serve(local: Socket): Promise<void> {
    this.#connections.add(local);
    local.on("close", () => this.#connections.delete(local));
    local.on("error", () => undefined);
    try {
      await pass(local, await this.#open());
    } catch (error) {
      this.lastError = error;
      // A reset: the client must not take a part for the whole.
      local.resetAndDestroy();
    }
  }
}

async function pass(local: Socket, port: Port): Promise<void> {
  try {
    await Promise.all([send(local, port), receive(local, port)]);
  } finally {
    await port.close();
  }
}

async function send(local: Socket, port: Port): Promise<void> {
  for await (const piece of local.iterator({ destroyOnReturn: false })) await port.write(piece);
  await port.finish();
}

async function receive(local: Socket, port: Port): Promise<void> {
  for await (const piece of port) {
    if (local.destroyed) return;
    if (!local.write(piece)) await drained(local);
  }
  local.end();
}

function drained(local: Socket): Promise<void> {
  return new Promise((resolve) => {
    const finish = (): void => {
      local.off("drain", finish).off("close", finish);
      resolve();
    };
    local.on("drain", finish).on("close", finish);
  });
}
