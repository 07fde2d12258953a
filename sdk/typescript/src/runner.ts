// SPDX-License-Identifier: Apache-2.0
// Runs programs in one sandbox.
import * as calls from "./calls.js";
import { Execution, collect } from "./execution.js";
import { Cursor } from "./follow.js";
import type { Event, JsonObject, Result } from "./models.js";
import type { OutputCallbacks } from "./options.js";
import type { Transport } from "./transport.js";

/** Starts programs in a session and follows them. */
export class Runner {
  constructor(
    readonly transport: Transport,
    readonly id: string,
  ) {}

  /** Start a program without waiting for it. */
  async start(body: JsonObject, signal?: AbortSignal): Promise<Execution> {
    const ticket = await this.transport.call(calls.sessionStart(this.id, body), signal);
    return new Execution(this.transport, ticket["execution_id"]);
  }

  /** Start a program and yield its events. */
  stream(body: JsonObject, cursor: Cursor, signal?: AbortSignal): AsyncGenerator<Event, void, void> {
    return this.transport.follow(calls.sessionStream(this.id, body), cursor, signal);
  }

  /** Start a program and wait for its end. An aborted caller cancels it. */
  async run(body: JsonObject, callbacks: OutputCallbacks, signal?: AbortSignal): Promise<Result> {
    const cursor = new Cursor();
    try {
      return await collect(this.stream(body, cursor, signal), callbacks);
    } catch (error) {
      if (signal?.aborted && cursor.executionId !== null && cursor.result === null) {
        // The caller wants to know why it was aborted, not that the daemon cannot be reached.
        await new Execution(this.transport, cursor.executionId).kill().catch(() => false);
      }
      throw error;
    }
  }
}
