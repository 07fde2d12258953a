// SPDX-License-Identifier: Apache-2.0
// Sends calls: answers of the daemon that are errors are thrown, what may be repeated is.
import { ApiError, ConnectError, ConnectionLost } from "./base_errors.js";
import { type Call, isWhole } from "./calls.js";
import {
  ExecutionNotFoundError,
  TooManyRequestsError,
  UnavailableError,
  fromAnswer,
  readBody,
} from "./errors.js";
import { type Cursor, delays } from "./follow.js";
import type { Event } from "./models.js";
import type { Endpoint, Http, HttpAnswer } from "./platform.js";
import { MessageSocket } from "./socket.js";

const RETRY_S = 0.1;

/** Settings of a client; times are seconds. */
export interface Patience {
  readonly timeout: number;
  readonly retries: number;
  readonly reattach: number;
}

export class Transport {
  readonly #headers: { readonly [name: string]: string };

  constructor(
    readonly endpoint: Endpoint,
    readonly http: Http,
    readonly patience: Patience,
  ) {
    this.#headers = endpoint.apiKey === null ? {} : { Authorization: `Bearer ${endpoint.apiKey}` };
  }

  close(): void {
    this.http.close();
  }

  /** Send a call and read its whole answer. */
  async call<T>(call: Call<T>, signal?: AbortSignal): Promise<T> {
    return call.parse(await this.#repeat(call, async () => (await this.#send(call, signal)).bytes(), signal));
  }

  /** The answer of a call, piece by piece. */
  async *pieces(call: Call<Uint8Array>, signal?: AbortSignal): AsyncGenerator<Uint8Array, void, void> {
    const answer = await this.#repeat(call, () => this.#send(call, signal), signal);
    try {
      yield* answer.pieces();
    } finally {
      answer.close();
    }
  }

  /** The lines of an answer. */
  async *lines(call: Call<Uint8Array>, signal?: AbortSignal): AsyncGenerator<string, void, void> {
    const decoder = new TextDecoder();
    let rest = "";
    for await (const piece of this.pieces(call, signal)) {
      const text = decoder.decode(piece, { stream: true });
      let start = 0;
      // Only what is new is searched: a line can be megabytes long and come in many pieces.
      for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", start)) {
        const line = rest + text.slice(start, end);
        rest = "";
        start = end + 1;
        if (line) yield line;
      }
      rest += text.slice(start);
    }
  }

  /** The events of an execution up to its end. A broken connection is made again, and nothing is lost or repeated. */
  async *follow(call: Call<Uint8Array>, cursor: Cursor, signal?: AbortSignal): AsyncGenerator<Event, void, void> {
    let waiting = delays(this.patience.reattach);
    for (;;) {
      try {
        for await (const line of this.lines(call, signal)) {
          waiting = delays(this.patience.reattach);
          const event = cursor.take(line);
          if (event !== null) yield event;
        }
        // The stream was read to its end, so that its connection can be used again.
        if (cursor.result !== null) return;
        throw new ConnectionLost(`the daemon at ${nameOf(this.endpoint)} ended a stream before its program had ended`);
      } catch (error) {
        if (cursor.result !== null && error instanceof ConnectionLost) return;
        this.#checkResumable(error, cursor);
        const delay = waiting.next();
        if (delay.done) throw error;
        await sleep(delay.value, signal);
        call = cursor.resume();
      }
    }
  }

  /** Throws what ends a stream. */
  #checkResumable(error: unknown, cursor: Cursor): void {
    if (error instanceof ExecutionNotFoundError && cursor.wasResumed) {
      const lost = `the daemon at ${nameOf(this.endpoint)} was killed and lost ${cursor.executionId}`;
      throw new ConnectionLost(`${lost}; programs that are started with startCode() survive that`, { cause: error });
    }
    const broke =
      error instanceof ConnectionLost || error instanceof ConnectError || error instanceof UnavailableError;
    if (!broke || !cursor.canResume) throw error;
  }

  /** Do @work for a call, again if that is safe. */
  async #repeat<T>(call: Call<unknown>, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    for (let attempt = 0; ; attempt++) {
      try {
        return await work();
      } catch (error) {
        if (attempt >= this.patience.retries || !mayRepeat(error, call)) throw error;
        await sleep((error instanceof ApiError && error.retryAfter) || RETRY_S * (attempt + 1), signal);
      }
    }
  }

  /** Send a call. Return: an answer without an error whose body is to be read. */
  async #send(call: Call<unknown>, signal?: AbortSignal): Promise<HttpAnswer> {
    const answer = await this.http.send({
      method: call.method,
      path: call.path,
      headers: call.headers ? { ...this.#headers, ...call.headers } : this.#headers,
      content: call.content,
      idle: call.waits ? 0 : this.patience.timeout * 1000,
      signal,
    });
    if (answer.status < 400) return answer;
    throw await errorOf(answer);
  }

  /** Open a WebSocket. */
  async socket(path: string, signal?: AbortSignal): Promise<MessageSocket> {
    const opened = await this.http.upgrade({ path, headers: this.#headers, signal });
    if (opened instanceof MessageSocket) return opened;
    throw await errorOf(opened);
  }
}

async function errorOf(answer: HttpAnswer): Promise<ApiError> {
  const retryAfter = Number.parseFloat(answer.header("retry-after") ?? "");
  return fromAnswer(answer.status, readBody(await answer.bytes()), Number.isNaN(retryAfter) ? null : retryAfter);
}

/** Whether sending @call again can have no second effect: nothing was sent, the daemon refused it before it did
 * anything, or a repetition changes nothing. */
function mayRepeat(error: unknown, call: Call<unknown>): boolean {
  if (error instanceof ConnectError || error instanceof TooManyRequestsError) return isWhole(call.content);
  return call.repeatable === true && (error instanceof ConnectionLost || error instanceof UnavailableError);
}

/** An address for messages. */
export function nameOf(endpoint: Endpoint): string {
  return endpoint.socket ?? endpoint.url;
}

/** Wait; an aborted signal ends the wait with its reason. */
export function sleep(seconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const finish = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", finish);
      if (signal?.aborted) reject(signal.reason);
      else resolve();
    };
    const timer = setTimeout(finish, seconds * 1000);
    signal?.addEventListener("abort", finish);
    if (signal?.aborted) finish();
  });
}
