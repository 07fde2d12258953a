// SPDX-License-Identifier: Apache-2.0
// A daemon: single executions, and everything that is not a sandbox.
import * as calls from "./calls.js";
import { asyncDispose } from "./dispose.js";
import { Execution, collect } from "./execution.js";
import { Cursor } from "./follow.js";
import { type Event, type JsonObject, type Result, SandboxInfo } from "./models.js";
import type { BoxOptions, CallOptions, HandlerOptions, OneShotCallbacks, OneShotOptions } from "./options.js";
import { type EndpointOptions, platform } from "./platform.js";
import { Transport, nameOf } from "./transport.js";

const PAGE = 200;

/** Settings of a client. */
export interface ClientOptions extends EndpointOptions {
  /** Seconds without progress until a request that waits for no program is given up; default: 60. */
  timeout?: number | undefined;
  /** How often a request is sent again after a failed connection where that has no second effect: nothing was sent, or
   * the request is idempotent; default: 3. */
  retries?: number | undefined;
  /** Seconds for which a broken stream of a sandbox is tried again; default: 60. A daemon that restarts keeps
   * sandboxes. */
  reattach?: number | undefined;
  /** Seconds for which a request is sent again that the daemon refused because it was busy; nothing was begun then.
   * Default: 300. */
  busyTimeout?: number | undefined;
  /** How many programs may be on their way at a time; further calls wait for their turn. Streams and calls with
   * callbacks are not counted, because their readers could wait for each other. Default: 64. */
  connections?: number | undefined;
}

/** A client of one daemon. It keeps connections; close it, or use it with `await using`.
 *
 * In Node.js the daemon is that of `url` or `socket`; by default that of MILLIBOX_SOCKET, MILLIBOX_URL, or the socket
 * of the user's or the system's daemon. The key is `apiKey`, MILLIBOX_API_KEY, or the content of the file
 * MILLIBOX_API_KEY_FILE; authorities for https are those of `caFile` or MILLIBOX_CA_FILE. In browsers `url` is
 * needed. */
export class Client {
  /** @internal */
  readonly transport: Transport;
  /** @internal */
  readonly onClose: (() => Promise<void>)[] = [];

  constructor(options: ClientOptions = {}) {
    const here = platform();
    const endpoint = here.findEndpoint(options);
    this.transport = new Transport(endpoint, here.openHttp(endpoint), {
      timeout: options.timeout ?? 60,
      retries: options.retries ?? 3,
      reattach: options.reattach ?? 60,
      busyTimeout: options.busyTimeout ?? 300,
      connections: options.connections ?? 64,
    });
  }

  /** Close all connections. */
  async close(): Promise<void> {
    this.transport.close();
    for (const work of this.onClose.splice(0)) await work();
  }

  async [asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Where the daemon is: a socket's path or a URL. */
  get address(): string {
    return nameOf(this.transport.endpoint);
  }

  /** Run code once in a new box, and wait for its end. Callbacks get output while it runs. If the signal is aborted,
   * the program is killed. */
  runCode(code: string, options: OneShotOptions & OneShotCallbacks = {}): Promise<Result> {
    const { onStdout, onStderr, onResult, onInstall } = options;
    if (onStdout || onStderr || onResult || onInstall) return collect(this.stream(code, options), options);
    const body = calls.oneShot(calls.program(code, options), options);
    return this.transport.call(calls.execute(body), options.signal);
  }

  /** Run code once in a new box and yield its events. A reader that stops early ends the program. */
  async *stream(code: string, options: OneShotOptions = {}): AsyncGenerator<Event, void, void> {
    const body = calls.oneShot(calls.program(code, options), options);
    yield* this.transport.follow(calls.executeStream(body), new Cursor(), options.signal);
  }

  /** Call `handler(event)` or `handler(event, context)` that the code defines, in a new box. Return: its value. An
   * exception of the handler is a `ProgramError`. */
  async call(code: string, event: JsonObject, options: HandlerOptions & BoxOptions = {}): Promise<any> {
    const body = calls.oneShot(calls.handler(code, event, options), options);
    return (await this.transport.call(calls.execute(body), options.signal)).raiseForStatus().value;
  }

  /** All sandboxes of the caller, newest first; with `state` only those in it. */
  async sandboxes(options: { state?: string } & CallOptions = {}): Promise<SandboxInfo[]> {
    const found = await this.#all((offset) => calls.sessionList(options.state, PAGE, offset), options);
    return found.map((raw) => new SandboxInfo(raw));
  }

  /** A handle of an execution by its id. */
  execution(id: string): Execution {
    return new Execution(this.transport, id);
  }

  /** Languages, whether they work, what installs them, and their options; with `template` in boxes of this template.
   * `check`: of which languages a program is run first: `unknown` (default), `none`, or `all`, which needs scope
   * `admin`. */
  async languages(
    options: { template?: string; check?: "unknown" | "none" | "all" } & CallOptions = {},
  ): Promise<JsonObject[]> {
    const answer = await this.transport.call(calls.languages(options.template, options.check), options.signal);
    return answer["languages"] ?? [];
  }

  /** What boxes can be made of. */
  templates(options: CallOptions = {}): Promise<JsonObject[]> {
    return this.#all((offset) => calls.page("/api/v1/templates", PAGE, offset), options);
  }

  /** Secrets that the proxy adds to requests of boxes, without their values. */
  secrets(options: CallOptions = {}): Promise<JsonObject[]> {
    return this.#all((offset) => calls.page("/api/v1/secrets", PAGE, offset), options);
  }

  /** Create or change a secret for requests to `hosts`; `settings` are the API's: `mode`, `header`, `format`, `env`.
   * Programs never see its value. */
  setSecret(
    name: string,
    value: string,
    hosts: readonly string[],
    settings: JsonObject = {},
    options: CallOptions = {},
  ): Promise<JsonObject> {
    const body = { value, hosts, ...settings };
    return this.request("PUT", `/api/v1/secrets/${encodeURIComponent(name)}`, body, options);
  }

  /** Delete a secret. */
  async deleteSecret(name: string, options: CallOptions = {}): Promise<void> {
    await this.request("DELETE", `/api/v1/secrets/${encodeURIComponent(name)}`, undefined, options);
  }

  /** The policies of the daemon. */
  async policies(options: CallOptions = {}): Promise<JsonObject[]> {
    return (await this.#show("policies", options))["policies"] ?? [];
  }

  /** What a request would be granted, and by which rule; the fields are those of the API. */
  explain(request: JsonObject, options: CallOptions = {}): Promise<JsonObject> {
    return this.request("POST", "/api/v1/policy/explain", request, options);
  }

  /** Who the caller is to the daemon. */
  identity(options: CallOptions = {}): Promise<JsonObject> {
    return this.#show("identity", options);
  }

  /** State and version of the daemon. */
  health(options: CallOptions = {}): Promise<JsonObject> {
    return this.#show("health", options);
  }

  /** Boxes that are made ahead. */
  async pools(options: CallOptions = {}): Promise<JsonObject[]> {
    return (await this.#show("pools", options))["pools"] ?? [];
  }

  /** Any other request of the API: JSON in, JSON out. */
  request(method: string, path: string, body?: JsonObject, options: CallOptions = {}): Promise<JsonObject> {
    return this.transport.call(calls.anyRequest(method, path, body), options.signal);
  }

  #show(name: string, options: CallOptions): Promise<JsonObject> {
    return this.transport.call(calls.show(`/api/v1/${name}`), options.signal);
  }

  async #all(page: (offset: number) => calls.Call<JsonObject>, options: CallOptions): Promise<JsonObject[]> {
    const found: JsonObject[] = [];
    for (;;) {
      const answer = await this.transport.call(page(found.length), options.signal);
      found.push(...calls.items(answer));
      if (!answer["has_more"]) return found;
    }
  }
}
