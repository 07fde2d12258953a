// SPDX-License-Identifier: Apache-2.0
// Sends calls: answers of the daemon that are errors are thrown, what may be repeated is.
import { ApiError, ConnectError, ConnectionLost } from "./base_errors.js";
import { type Call, isWhole } from "./calls.js";
import { ExecutionNotFoundError, UnavailableError, fromAnswer, readBody } from "./errors.js";
import { type Cursor, delays } from "./follow.js";
import type { Event } from "./models.js";
import type { Endpoint, Http, HttpAnswer } from "./platform.js";
import { MessageSocket } from "./socket.js";

/** Pauses before a request is sent again: between attempts to reach a daemon, and at a crowded socket. */
const RETRY_S = 0.1;
const CROWD_S = 1;

/** Settings of a client; times are seconds. */
export interface Patience {
  readonly timeout: number;
  readonly retries: number;
  readonly reattach: number;
  readonly busyTimeout: number;
  readonly connections: number;
}

export class Transport {
  readonly #headers: { readonly [name: string]: string };
  /** Of calls that wait for programs, and of all others, so that one that ends a program never waits for it. */
  readonly #programs: Turns;
  readonly #others: Turns;

  constructor(
    readonly endpoint: Endpoint,
    readonly http: Http,
    readonly patience: Patience,
  ) {
    this.#headers = endpoint.apiKey === null ? {} : { Authorization: `Bearer ${endpoint.apiKey}` };
    if (!(patience.connections >= 1)) throw new RangeError("connections must be 1 or more");
    this.#programs = new Turns(patience.connections);
    this.#others = new Turns(Math.max(Math.floor(patience.connections / 4), 1));
  }

  close(): void {
    this.http.close();
  }

  /** Send a call and read its whole answer. */
  async call<T>(call: Call<T>, signal?: AbortSignal): Promise<T> {
    // No code of the caller runs meanwhile, so that calls cannot wait for each other.
    const turns = call.waits ? this.#programs : this.#others;
    const work = (): Promise<Uint8Array> => turns.take(async () => (await this.#send(call, signal)).bytes(), signal);
    return call.parse(await this.#repeat(call, work, signal));
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
    const attempts = new Attempts(call, this.patience);
    for (;;) {
      try {
        return await work();
      } catch (error) {
        const pause = attempts.pause(error);
        if (pause === null) throw error;
        await sleep(pause, signal);
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

/** When one call is sent again: only where that can have no second effect. */
class Attempts {
  readonly #call: Call<unknown>;
  readonly #retries: number;
  readonly #until: number;
  #count = 0;

  constructor(call: Call<unknown>, patience: Patience) {
    this.#call = call;
    this.#retries = patience.retries;
    this.#until = performance.now() + patience.busyTimeout * 1000;
  }

  /** Seconds to wait before the call is sent again; null: it is not. */
  pause(error: unknown): number | null {
    if (error instanceof ApiError && error.shouldRetry) {
      // Whatever answers: no loop without a pause.
      return this.#within(Math.max(error.retryAfter ?? 0, RETRY_S));
    }
    if (isCrowded(error)) return this.#within(CROWD_S);
    if (this.#count >= this.#retries || !this.#isSafe(error)) return null;
    return RETRY_S * ++this.#count;
  }

  /** All who were refused together would come back together. */
  #within(least: number): number | null {
    const seconds = least * (1 + Math.random() / 2);
    return isWhole(this.#call.content) && performance.now() + seconds * 1000 <= this.#until ? seconds : null;
  }

  /** Nothing was sent, or a repetition changes nothing. */
  #isSafe(error: unknown): boolean {
    if (error instanceof ConnectError) return isWhole(this.#call.content);
    return this.#call.repeatable === true && error instanceof ConnectionLost;
  }
}

/** Whether so many connections wait for the daemon that the kernel takes no further ones. */
function isCrowded(error: unknown): boolean {
  return error instanceof ConnectError && (error.cause as { code?: unknown } | undefined)?.code === "EAGAIN";
}

/** Lets so many work at a time; further ones wait, in their order. */
class Turns {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(count: number) {
    this.#free = count;
  }

  async take<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    if (this.#free > 0) this.#free--;
    else await this.#wait(signal);
    try {
      return await work();
    } finally {
      this.#leave();
    }
  }

  /** The one who leaves gives its turn to the first who waits. */
  #leave(): void {
    for (const next of this.#waiting) {
      this.#waiting.delete(next);
      next();
      return;
    }
    this.#free++;
  }

  #wait(signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const enter = (): void => {
        signal?.removeEventListener("abort", abort);
        resolve();
      };
      const abort = (): void => {
        this.#waiting.delete(enter);
        reject(signal?.reason);
      };
      if (signal?.aborted) return reject(signal.reason);
      signal?.addEventListener("abort", abort, { once: true });
      this.#waiting.add(enter);
    });
  }
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
