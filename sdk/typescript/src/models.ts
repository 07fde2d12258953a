// SPDX-License-Identifier: Apache-2.0
// What the daemon answers: results, events, sessions, files.
import { ProgramCancelled, ProgramCrashed, ProgramFailed, ProgramTimeout } from "./base_errors.js";
import { encodeText, fromBase64 } from "./bytes.js";
import { STATUS, fromAnswer } from "./errors.js";

/** An object of the API. */
export type JsonObject = { [name: string]: any };

/** How a program ended. */
export type Status = "success" | "failed" | "timeout" | "crashed" | "cancelled";

/** A rich result: media type to content, base64 for images. */
export type Bundle = { [media: string]: string };

const PROGRAM_ERRORS = {
  failed: ProgramFailed,
  timeout: ProgramTimeout,
  crashed: ProgramCrashed,
  cancelled: ProgramCancelled,
};

/** The exception that ended a program. */
export class ErrorInfo {
  constructor(
    /** Its class. */
    readonly name: string,
    /** Its message. */
    readonly value: string,
    /** Lines of its traceback. */
    readonly traceback: readonly string[] = [],
  ) {}

  toString(): string {
    return this.value ? `${this.name}: ${this.value}` : this.name;
  }
}

/** How a program ended. `raw` is the daemon's whole object. */
export class Result {
  constructor(readonly raw: JsonObject) {}

  /** Id of the execution. */
  get executionId(): string {
    return String(this.raw["execution_id"]);
  }

  /** `success`, `failed`, `timeout`, `crashed` or `cancelled`. */
  get status(): Status {
    return this.raw["status"];
  }

  /** Whether the program succeeded. */
  get ok(): boolean {
    return this.raw["status"] === "success";
  }

  /** Exit status; 128 and the number of the signal that ended the program. */
  get exitCode(): number | null {
    return this.raw["exit_code"] ?? null;
  }

  /** The language that ran. */
  get language(): string | null {
    return this.raw["language"] ?? null;
  }

  /** What the program printed, up to the limit. */
  get stdout(): string {
    return this.raw["stdout"] ?? "";
  }

  /** What it wrote to standard error. */
  get stderr(): string {
    return this.raw["stderr"] ?? "";
  }

  /** Whether output was left out. */
  get truncated(): boolean {
    return Boolean(this.raw["stdout_truncated"] || this.raw["stderr_truncated"]);
  }

  /** Value of the last expression, or of a handler, as JSON; null if there is none. */
  get value(): any {
    return this.raw["result"] ?? null;
  }

  /** Rich results in their order: media type to content, base64 for images. */
  get results(): Bundle[] {
    return this.raw["results"] ?? [];
  }

  /** The exception that ended the program. */
  get error(): ErrorInfo | null {
    const found = this.raw["error"];
    return found ? new ErrorInfo(found.name, found.value, found.traceback ?? []) : null;
  }

  /** The limit that ended it or cut its output: `time`, `memory`, `processes`, `output`, `disk` ... */
  get limit(): string | null {
    return this.raw["limit"] ?? null;
  }

  /** What rules refused it: `kind`, `what`, `rule`, `count`, and `remedy`, the smallest change that allows it. */
  get denials(): JsonObject[] {
    return this.raw["denials"] ?? [];
  }

  /** How it ended, by which rule, and what to change, a line each. Empty after a success without denials. */
  get why(): string[] {
    return this.raw["why"] ?? [];
  }

  /** What it used: `duration_ms`, `cpu_time_ms`, `memory_peak_mb` ... */
  get metrics(): { [name: string]: number | null } {
    return this.raw["metrics"] ?? {};
  }

  /** Files that it created or changed. */
  get artifacts(): JsonObject[] {
    return this.raw["artifacts"] ?? [];
  }

  /** What isolated it: `engine`, `mode`, `missing`; all of it with `receipt: "plain"` or `"signed"`. */
  get isolation(): JsonObject {
    return this.raw["isolation"] ?? {};
  }

  /** What it was, how it ended and how it was isolated, signed; with `receipt: "signed"`. `millibox receipt verify`
   * checks it. */
  get receipt(): JsonObject | null {
    return this.raw["receipt"] ?? null;
  }

  /** What the daemon granted or understood otherwise than requested. */
  get warnings(): string[] {
    return this.raw["warnings"] ?? [];
  }

  /** The value of the last expression as text; without one, what the program printed. */
  get text(): string {
    return this.find("text/plain") ?? this.stdout;
  }

  /** The last figure. */
  get png(): Uint8Array | null {
    return this.findBytes("image/png");
  }

  /** The last result that has HTML, such as a table. */
  get html(): string | null {
    return this.find("text/html");
  }

  /** The last result that is JSON; without one, the value of the last expression. */
  get json(): any {
    const found = this.find("application/json");
    return found === null ? this.value : JSON.parse(found);
  }

  /** Content of the last rich result that has this media type. */
  find(media: string): string | null {
    const bundles = this.results;
    for (let at = bundles.length - 1; at >= 0; at--) {
      const found = bundles[at]?.[media];
      if (found !== undefined) return found;
    }
    return null;
  }

  /** The same, decoded from base64. */
  findBytes(media: string): Uint8Array | null {
    const found = this.find(media);
    return found === null ? null : fromBase64(found);
  }

  /** Return the result itself, or throw a `ProgramError` if the program did not succeed. */
  raiseForStatus(): this {
    if (this.ok) return this;
    const kind = PROGRAM_ERRORS[this.status as keyof typeof PROGRAM_ERRORS] ?? ProgramFailed;
    throw new kind(this, this.#describe());
  }

  #describe(): string {
    const { error, limit } = this;
    const parts = [`the program's status is ${this.status}`];
    if (limit) parts.push(`the ${limit.replace("_", " ")} limit ended it`);
    else parts.push(error ? String(error) : `exit status ${this.exitCode}`);
    const last = error ? undefined : this.stderr.trim().split("\n").pop();
    if (last) parts.push(last);
    return parts.join(": ");
  }

  toString(): string {
    return this.ok ? this.text : this.#describe();
  }
}

/** Kinds of events of an execution. */
export type EventKind = "install" | "pending" | "paused" | "start" | "stdout" | "stderr" | "result" | "end";

/** One event of an execution. */
export class Event {
  constructor(
    /** `install`, `pending`, `paused`, `start`, `stdout`, `stderr`, `result` or `end`. */
    readonly kind: EventKind,
    /** The daemon's object. */
    readonly raw: JsonObject,
  ) {}

  /** Its number in the execution; null for events that are part of the end. */
  get number(): number | null {
    return this.raw["id"] ?? null;
  }

  /** With `pending` and `start`. */
  get executionId(): string | null {
    return this.raw["execution_id"] ?? null;
  }

  /** With `stdout`, `stderr` and `install` (a package manager's output): text; invalid UTF-8 is replaced. */
  get text(): string {
    const data = this.raw["data"];
    return typeof data === "string" ? data : "";
  }

  /** With `stdout` and `stderr`: the unchanged bytes. */
  get data(): Uint8Array {
    const exact = this.raw["base64"];
    return typeof exact === "string" ? fromBase64(exact) : encodeText(this.text);
  }

  /** With `result`: media type to content. */
  get bundle(): Bundle {
    const data = this.raw["data"];
    return data !== null && typeof data === "object" ? data : {};
  }

  /** With `end`: the result. */
  get result(): Result | null {
    const found = this.raw["result"];
    return this.kind === "end" && found ? new Result(found) : null;
  }
}

/** An event from a line of NDJSON. Throws `ApiError` for an `error` event. */
export function parseEvent(line: string): Event {
  const raw: JsonObject = JSON.parse(line);
  if (raw["event"] === "error") {
    const body: JsonObject = raw["error"] ?? {};
    throw fromAnswer(STATUS[String(body["error_code"])] ?? 500, body);
  }
  return new Event(raw["event"], raw);
}

/** A file, directory or link of a sandbox. */
export class FileInfo {
  /** Last component of its path. */
  readonly name: string;
  /** Path below `/workspace`. */
  readonly path: string;
  /** `file`, `directory`, `symlink` or `other`. */
  readonly type: string;
  /** Bytes. */
  readonly size: number;
  /** Permission bits. */
  readonly mode: number;
  /** When its content changed. */
  readonly modified: string;
  /** Changes with the content. */
  readonly etag: string;
  /** Where a link leads. */
  readonly target: string | null;

  constructor(raw: JsonObject) {
    this.name = raw["name"];
    this.path = raw["path"];
    this.type = raw["type"];
    this.size = raw["size"];
    this.mode = Number.parseInt(raw["mode"], 8);
    this.modified = raw["modified_time"];
    this.etag = raw["etag"];
    this.target = raw["target"] ?? null;
  }

  /** Whether it is a directory. */
  get isDir(): boolean {
    return this.type === "directory";
  }
}

/** A sandbox as the daemon has it: a session. `raw` is the whole object. */
export class SandboxInfo {
  /** Id, for `Sandbox.connect`. */
  readonly id: string;
  /** `creating`, `ready`, `running`, `paused`, `terminated` or `failed`. */
  readonly state: string;
  /** Its default language. */
  readonly language: string | null;
  /** What it was made of. */
  readonly template: string | null;
  /** When. */
  readonly createdAt: string;

  constructor(readonly raw: JsonObject) {
    this.id = raw["session_id"];
    this.state = raw["state"];
    this.language = raw["language"] ?? null;
    this.template = raw["template_id"] ?? null;
    this.createdAt = raw["created_at"];
  }
}

/** A TCP port on which a program of a sandbox listens. */
export class PortInfo {
  /** Its number. */
  readonly port: number;
  /** `loopback`, `any`, or `other`: an address that `openPort` does not reach. */
  readonly address: string;

  constructor(raw: JsonObject) {
    this.port = raw["port"];
    this.address = raw["address"];
  }

  /** Whether `openPort` and `forward` reach it. */
  get isReachable(): boolean {
    return this.address !== "other";
  }
}
