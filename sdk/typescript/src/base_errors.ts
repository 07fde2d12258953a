// SPDX-License-Identifier: Apache-2.0
// What can go wrong: the roots of all errors. errors.ts adds one class for each code of the daemon.
import type { Result } from "./models.js";

/** Root of all errors of this package. */
export class MilliboxError extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** The daemon could not be reached. Nothing was sent. */
export class ConnectError extends MilliboxError {}

/** The connection broke, or the daemon did not answer in time. It may have served the request. */
export class ConnectionLost extends MilliboxError {}

/** An archive of a sandbox has an entry that would leave its directory. */
export class UnsafeArchive extends MilliboxError {}

/** The body of an error answer. */
export interface ErrorBody {
  error_code?: unknown;
  description?: unknown;
  error_detail?: unknown;
  solution?: unknown;
  request_id?: unknown;
  field?: unknown;
  log?: unknown;
  retry_after?: unknown;
}

/** The daemon refused a request, or failed to serve it. Subclasses are in `errors`, one for each code. */
export class ApiError extends MilliboxError {
  /** The code in the daemon's list that this class stands for. */
  static readonly code: string = "";
  /** HTTP status. */
  readonly status: number;
  /** Code in the daemon's list. */
  readonly code: string;
  /** What the code means. */
  readonly description: string;
  /** What was wrong with this request. */
  readonly detail: string;
  /** What helps. */
  readonly solution: string;
  /** The request in the daemon's log. */
  readonly requestId: string;
  /** Path of the field that is at fault. */
  readonly field: string | null;
  /** The last output of a package manager that failed. */
  readonly log: string | null;
  /** Seconds after which the daemon wants the request again. */
  readonly retryAfter: number | null;
  /** Nothing was begun, and the same request may succeed later. Clients have tried it again for a while. */
  readonly shouldRetry: boolean;

  constructor(status: number, body: ErrorBody, retryAfter: number | null = null) {
    const code = textOf(body.error_code) || new.target.code;
    const detail = textOf(body.error_detail);
    const description = textOf(body.description);
    const solution = textOf(body.solution);
    const reason = detail || description || `HTTP status ${status}`;
    super(`${code ? `${code}: ` : ""}${reason}${solution ? ` (${solution})` : ""}`);
    this.status = status;
    this.code = code;
    this.description = description;
    this.detail = detail;
    this.solution = solution;
    this.requestId = textOf(body.request_id);
    this.field = typeof body.field === "string" ? body.field : null;
    this.log = typeof body.log === "string" ? body.log : null;
    this.shouldRetry = typeof body.retry_after === "number";
    this.retryAfter = retryAfter ?? (typeof body.retry_after === "number" ? body.retry_after : null);
  }
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** A program did not succeed. Only `Result.raiseForStatus` and `call` throw it. */
export class ProgramError extends MilliboxError {
  /** How it ended. */
  readonly result: Result;

  constructor(result: Result, text: string) {
    super(text);
    this.result = result;
  }
}

/** It ended with an exception, another exit status than 0, or a signal. */
export class ProgramFailed extends ProgramError {}

/** It exceeded its time limit. */
export class ProgramTimeout extends ProgramError {}

/** Its box was lost. */
export class ProgramCrashed extends ProgramError {}

/** It was cancelled. */
export class ProgramCancelled extends ProgramError {}
