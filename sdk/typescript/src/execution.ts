// SPDX-License-Identifier: Apache-2.0
// A program that runs in a sandbox, or has run there.
import type { Data } from "./bytes.js";
import * as calls from "./calls.js";
import { StateConflictError } from "./errors.js";
import { Cursor } from "./follow.js";
import { type Event, type JsonObject, type Result, parseEvent } from "./models.js";
import type { CallOptions, OneShotCallbacks, OutputCallbacks } from "./options.js";
import type { Transport } from "./transport.js";

/** A handle of an execution. It holds no connection: the program runs on without it. Iterating over it yields its
 * output. */
export class Execution implements AsyncIterable<string> {
  readonly #transport: Transport;
  /** Id of the execution. */
  readonly id: string;

  /** @internal */
  constructor(transport: Transport, id: string) {
    this.#transport = transport;
    this.id = id;
  }

  /** Its events after the one with the number `after`: past ones, then new ones, up to `end`. */
  async *events(options: { after?: number } & CallOptions = {}): AsyncGenerator<Event, void, void> {
    const after = options.after ?? 0;
    yield* this.#transport.follow(calls.executionEvents(this.id, after), new Cursor(this.id, after), options.signal);
  }

  /** Wait for its end. Callbacks get the output from its start on. An aborted wait does not end the program. */
  wait(options: OutputCallbacks & CallOptions = {}): Promise<Result> {
    return collect(this.events({ signal: options.signal }), options);
  }

  /** The result of an ended execution; `StateConflictError` while it runs. */
  result(options: CallOptions = {}): Promise<Result> {
    return this.#transport.call(calls.executionResult(this.id), options.signal);
  }

  /** The request and what is known of the result so far. */
  info(options: CallOptions = {}): Promise<JsonObject> {
    return this.#transport.call(calls.executionShow(this.id), options.signal);
  }

  /** `pending`, `running`, or how it ended. */
  async status(options: CallOptions = {}): Promise<string> {
    return String((await this.info(options))["status"]);
  }

  /** Write to its standard input, which `stdinOpen` must have kept open; `end` closes it. */
  async sendStdin(data: Data, options: { end?: boolean } & CallOptions = {}): Promise<void> {
    await this.#transport.call(calls.executionStdin(this.id, data, options.end ?? false), options.signal);
  }

  /** What it has printed so far, both streams in their order. */
  async output(options: CallOptions = {}): Promise<string> {
    let text = "";
    for await (const line of this.#transport.lines(calls.executionEvents(this.id, 0, false), options.signal)) {
      const event = parseEvent(line);
      if (isOutput(event)) text += event.text;
    }
    return text;
  }

  /** Its output, both streams in their order, until it ends. */
  async *[Symbol.asyncIterator](): AsyncGenerator<string, void, void> {
    for await (const event of this.events()) if (isOutput(event)) yield event.text;
  }

  /** Close its standard input. */
  closeStdin(options: CallOptions = {}): Promise<void> {
    return this.sendStdin("", { ...options, end: true });
  }

  /** Cancel it. Return: false if it had ended before. */
  async kill(options: CallOptions = {}): Promise<boolean> {
    try {
      await this.#transport.call(calls.executionCancel(this.id), options.signal);
      return true;
    } catch (error) {
      if (error instanceof StateConflictError) return false;
      throw error;
    }
  }
}

function isOutput(event: Event): boolean {
  return event.kind === "stdout" || event.kind === "stderr";
}

/** Pass events to callbacks. Return: the result at the end. */
export async function collect(events: AsyncIterable<Event>, callbacks: OneShotCallbacks): Promise<Result> {
  let result: Result | null = null;
  for await (const event of events) {
    if (event.kind === "stdout") await callbacks.onStdout?.(event.text);
    else if (event.kind === "stderr") await callbacks.onStderr?.(event.text);
    else if (event.kind === "result") await callbacks.onResult?.(event.bundle);
    else if (event.kind === "install") await callbacks.onInstall?.(event.text);
    result = event.result ?? result;
  }
  // A stream ends with an end event or an error.
  return result!;
}
