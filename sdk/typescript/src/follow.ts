// SPDX-License-Identifier: Apache-2.0
// Where a reader of events is, so that it can continue after a broken connection without a loss or a repetition.
import { type Call, executionEvents } from "./calls.js";
import { type Event, type Result, parseEvent } from "./models.js";

/** Events without a number: the daemon sends them again with the end. */
const LOOSE = new Set(["stdout", "stderr", "result"]);

/** Follows one execution. Events have numbers; those without are part of the end, and are sent again with it. */
export class Cursor {
  executionId: string | null;
  result: Result | null = null;
  wasResumed = false;
  #last: number;
  /** Events without a number that were delivered since the last number. */
  #loose = 0;
  /** Of these, how many the new stream will send again. */
  #repeated = 0;
  #inSession: boolean;

  constructor(executionId: string | null = null, after = 0) {
    this.executionId = executionId;
    this.#last = after;
    this.#inSession = executionId !== null;
  }

  /** Whether the daemon keeps the events: it does in sessions, once it has given the execution an id. */
  get canResume(): boolean {
    return this.#inSession && this.executionId !== null && this.result === null;
  }

  /** The request for what is missing. */
  resume(): Call<Uint8Array> {
    this.wasResumed = true;
    this.#repeated = this.#loose;
    return executionEvents(this.executionId ?? "", this.#last);
  }

  /** The event of a line, or null if its reader has it already. */
  take(line: string): Event | null {
    const event = parseEvent(line);
    // Only executions in sessions have it.
    if (event.kind === "pending") this.#inSession = true;
    this.executionId ??= event.executionId;
    if (event.number !== null) {
      this.#last = event.number;
      this.#loose = this.#repeated = 0;
    } else if (LOOSE.has(event.kind)) {
      if (this.#repeated > 0) {
        this.#repeated--;
        return null;
      }
      this.#loose++;
    }
    this.result = event.result ?? this.result;
    return event;
  }
}

/** Seconds before each attempt to reach a daemon again. */
const FIRST_DELAY = 0.05;
const LAST_DELAY = 1;

/** Growing pauses that add up to about @patience. */
export function* delays(patience: number): Generator<number, void, void> {
  for (let delay = FIRST_DELAY, spent = 0; spent < patience; delay = Math.min(delay * 2, LAST_DELAY)) {
    yield delay;
    spent += delay;
  }
}
