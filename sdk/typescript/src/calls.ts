// SPDX-License-Identifier: Apache-2.0
// Every request as a value: what to send, how to read the answer, whether it may be repeated. Pure functions.
import { MilliboxError } from "./base_errors.js";
import { type Data, decodeText, encodeData, encodeText } from "./bytes.js";
import { FileInfo, type JsonObject, PortInfo, Result, SandboxInfo } from "./models.js";
import type {
  BoxOptions,
  HandlerOptions,
  InstallOptions,
  OneShotOptions,
  ProgramOptions,
  SandboxOptions,
  StartOptions,
} from "./options.js";

/** A body: as a whole, or in pieces. */
export type Content = Uint8Array | Blob | AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

/** One request and the reader of its answer. */
export interface Call<T> {
  readonly method: string;
  readonly path: string;
  readonly parse: (body: Uint8Array) => T;
  readonly content?: Content;
  readonly headers?: { readonly [name: string]: string };
  /** A repetition has no further effect. */
  readonly repeatable?: boolean;
  /** The answer comes when a program has ended: no time limit for it. */
  readonly waits?: boolean;
}

type Query = { readonly [name: string]: string | number | boolean | null | undefined };

const V1 = "/api/v1";
const NDJSON = { Accept: "application/x-ndjson" };
const JSON_TYPE = { "Content-Type": "application/json" };

const nothing = (): void => undefined;
const same = (body: Uint8Array): Uint8Array => body;
const result = (body: Uint8Array): Result => new Result(object(body));
const sandbox = (body: Uint8Array): SandboxInfo => new SandboxInfo(object(body));
const file = (body: Uint8Array): FileInfo => new FileInfo(object(body));

function object(body: Uint8Array): JsonObject {
  const found: unknown = JSON.parse(decodeText(body));
  return found !== null && typeof found === "object" && !Array.isArray(found) ? found : { value: found };
}

function get<T>(path: string, parse: (body: Uint8Array) => T, query: Query = {}): Call<T> {
  return { method: "GET", path: path + queryOf(query), parse, repeatable: true };
}

function post<T>(
  path: string,
  parse: (body: Uint8Array) => T,
  body: JsonObject = {},
  more: Partial<Call<T>> = {},
): Call<T> {
  const content = encodeText(JSON.stringify(body));
  return { method: "POST", path, parse, content, ...more, headers: { ...JSON_TYPE, ...more.headers } };
}

function queryOf(fields: Query): string {
  const given = Object.entries(fields).filter(([, value]) => value !== null && value !== undefined);
  const words = given.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`);
  return words.length ? `?${words.join("&")}` : "";
}

/** Fields that have a value: others have the daemon's defaults. */
function given(fields: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null));
}

function orNothing(fields: JsonObject): JsonObject | undefined {
  return Object.keys(fields).length ? fields : undefined;
}

/** Fields of a program's request. */
export function program(code: string, options: ProgramOptions): JsonObject {
  if (Array.isArray(options.files)) throw new TypeError("files: must be an object of path: content, not an array");
  const entries = options.files && Object.entries(options.files);
  const files = entries?.map(([path, data]) => [path, encodeData(`files.${path}`, data)]);
  return given({
    code,
    language: options.language,
    file_name: options.fileName,
    timeout: options.timeout,
    stdin: options.stdin === undefined ? undefined : encodeData("stdin", options.stdin),
    args: options.args,
    files: files && Object.fromEntries(files),
    env_vars: options.env,
    options: options.options,
    receipt: options.receipt,
  });
}

/** Fields of a request for a program that is not waited for. */
export function start(options: StartOptions): JsonObject {
  return given({ stdin_open: options.stdinOpen || undefined, background: options.background || undefined });
}

/** Fields of a request that calls a handler. */
export function handler(code: string, event: JsonObject, options: HandlerOptions): JsonObject {
  return given({ handler_code: code, event, timeout: options.timeout, context: options.context });
}

function box(options: BoxOptions & { maxOutput?: OneShotOptions["maxOutput"] }): JsonObject {
  return given({
    template_id: options.template,
    packages: options.packages,
    lock: options.lock,
    engine: options.engine,
    min_isolation: options.minIsolation,
    network: options.network,
    network_allow: options.allow,
    secrets: options.secrets,
    mcp: options.mcp,
    policy: options.policy,
    resources: orNothing(
      given({
        cpu: options.cpu,
        memory: options.memory,
        disk: options.disk,
        max_processes: options.maxProcesses,
        max_output: options.maxOutput,
      }),
    ),
  });
}

// One execution in a new box.

/** @program: fields of `program` or `handler`. Code whose language is not certain is Python, as everywhere but in
 * plain REST. */
export function oneShot(program: JsonObject, options: OneShotOptions): JsonObject {
  return { default_language: "python", ...program, ...box(options) };
}

export function execute(body: JsonObject): Call<Result> {
  return post(`${V1}/execute`, result, body, { waits: true });
}

export function executeStream(body: JsonObject): Call<Uint8Array> {
  return post(`${V1}/execute`, same, body, { waits: true, headers: NDJSON });
}

// Sessions.

const sessionUrl = (id: string): string => `${V1}/sessions/${encodeURIComponent(id)}`;

export function sessionCreate(options: SandboxOptions): Call<SandboxInfo> {
  const own = {
    mode: "persistent",
    id: options.id,
    language: options.language,
    env_vars: options.env,
    timeout: options.idleTimeout,
    lifetime: options.lifetime,
  };
  // Packages are installed first.
  const waits = options.packages !== undefined || options.lock !== undefined;
  return post(`${V1}/sessions`, sandbox, { ...given(own), ...box(options) }, { waits });
}

export function sessionShow(id: string): Call<SandboxInfo> {
  return get(sessionUrl(id), sandbox);
}

export function sessionList(status: string | undefined, limit: number, offset: number): Call<JsonObject> {
  return get(`${V1}/sessions`, object, { status, limit, offset });
}

export function sessionDelete(id: string): Call<void> {
  return { method: "DELETE", path: sessionUrl(id), parse: nothing, repeatable: true };
}

/** pause, resume and keepalive have no further effect when repeated; a second interrupt has. */
export function sessionAct(id: string, verb: "pause" | "resume" | "keepalive" | "interrupt"): Call<SandboxInfo> {
  return post(`${sessionUrl(id)}/${verb}`, sandbox, {}, { repeatable: verb !== "interrupt" });
}

export function sessionInstall(id: string, packages: readonly string[], options: InstallOptions): Call<Uint8Array> {
  const names = packages.length ? packages : undefined;
  const body = given({ packages: names, language: options.language, lock: options.lock, stream: true });
  return post(`${sessionUrl(id)}/packages`, same, body, { waits: true });
}

export function sessionStats(id: string): Call<JsonObject> {
  return get(`${sessionUrl(id)}/stats`, object);
}

export function sessionExecutions(id: string, limit: number, offset: number): Call<JsonObject> {
  return get(`${sessionUrl(id)}/executions`, object, { limit, offset });
}

export function sessionStart(id: string, body: JsonObject): Call<JsonObject> {
  return post(`${sessionUrl(id)}/execute`, object, body);
}

export function sessionStream(id: string, body: JsonObject): Call<Uint8Array> {
  return post(`${sessionUrl(id)}/execute`, same, body, { waits: true, headers: NDJSON });
}

// Executions.

const executionUrl = (id: string): string => `${V1}/executions/${encodeURIComponent(id)}`;

export function executionShow(id: string): Call<JsonObject> {
  return get(executionUrl(id), object);
}

/** Without @follow the stream ends after the events so far. */
export function executionEvents(id: string, after: number, follow = true): Call<Uint8Array> {
  const query = { after, follow: follow ? null : false };
  return { ...get(`${executionUrl(id)}/events`, same, query), headers: NDJSON, waits: true };
}

export function executionResult(id: string): Call<Result> {
  return get(`${executionUrl(id)}/result`, result);
}

export function executionCancel(id: string): Call<JsonObject> {
  return post(`${executionUrl(id)}/cancel`, object, {}, { repeatable: true });
}

export function executionStdin(id: string, data: Data, end: boolean): Call<JsonObject> {
  return post(`${executionUrl(id)}/stdin`, object, { end, ...(data.length ? { data: encodeData("data", data) } : {}) });
}

/** Of the WebSocket to an execution. */
export function attachPath(id: string): string {
  return `${executionUrl(id)}/attach`;
}

// Files. Paths are those of the workspace; /workspace/x and x are the same file.

/** A path below the workspace, as the daemon wants it. */
export function filePath(path: string): string {
  const text = path.replace(/^\/workspace(?:\/+|$)/, "").replace(/^(?:\.\/+)+/, "");
  if (text.split("/").includes("..")) {
    throw new MilliboxError(`a path in a sandbox must not contain '..': ${JSON.stringify(text)}`);
  }
  return text === "." ? "" : text;
}

function fileUrl(id: string, path: string, query: Query = {}): string {
  const words = filePath(path).split("/").map(encodeURIComponent);
  return `${sessionUrl(id)}/files/${words.join("/")}${queryOf(query)}`;
}

export function fileRead(id: string, path: string, offset = 0, length?: number): Call<Uint8Array> {
  const call = get(fileUrl(id, path), same);
  if (!offset && length === undefined) return call;
  return { ...call, headers: { Range: `bytes=${offset}-${length === undefined ? "" : offset + length - 1}` } };
}

export function fileWrite(id: string, path: string, content: Content, mode?: number): Call<FileInfo> {
  const query = { mode: mode === undefined ? undefined : mode.toString(8).padStart(4, "0") };
  const headers = { "Content-Type": "application/octet-stream" };
  return { method: "PUT", path: fileUrl(id, path, query), parse: file, content, headers, repeatable: isWhole(content) };
}

/** Whether a body can be sent a second time. */
export function isWhole(content: Content | undefined): boolean {
  return content === undefined || content instanceof Uint8Array || content instanceof Blob;
}

export function fileStat(id: string, path: string): Call<FileInfo> {
  return get(fileUrl(id, path, { stat: true }), file);
}

export function fileList(id: string, path: string, recursive: boolean, after: string | null): Call<JsonObject> {
  return get(`${sessionUrl(id)}/files`, object, { path: filePath(path), recursive: recursive || null, after });
}

export function fileMove(id: string, path: string, to: string, replace: boolean): Call<FileInfo> {
  return post(`${sessionUrl(id)}/files/move`, file, { path: filePath(path), to: filePath(to), replace });
}

/** Without @parents, a directory that exists is an error: a repetition would fail. */
export function fileMkdir(id: string, path: string, parents: boolean): Call<FileInfo> {
  return post(`${sessionUrl(id)}/files/mkdir`, file, { path: filePath(path), parents }, { repeatable: parents });
}

export function fileRemove(id: string, path: string, recursive: boolean): Call<void> {
  const url = fileUrl(id, path, { recursive: recursive || null });
  return { method: "DELETE", path: url, parse: nothing, repeatable: true };
}

export function tarRead(id: string, path: string): Call<Uint8Array> {
  return get(fileUrl(id, path, { format: "tar" }), same);
}

export function tarWrite(id: string, path: string, content: Content): Call<JsonObject> {
  const url = fileUrl(id, path, { format: "tar" });
  return { method: "PUT", path: url, parse: object, content, headers: { "Content-Type": "application/x-tar" } };
}

// Ports.

export function sessionPorts(id: string): Call<PortInfo[]> {
  const parse = (body: Uint8Array): PortInfo[] =>
    (object(body)["ports"] ?? []).map((raw: JsonObject) => new PortInfo(raw));
  return get(`${sessionUrl(id)}/ports`, parse);
}

export function portPath(id: string, port: number): string {
  return `${sessionUrl(id)}/ports/${Math.trunc(port)}`;
}

// The rest of the daemon.

export function show(path: string): Call<JsonObject> {
  return get(path, object);
}

export function languages(template?: string, check?: string): Call<JsonObject> {
  return get("/api/v1/languages", object, { template_id: template, check });
}

export function page(path: string, limit: number, offset: number): Call<JsonObject> {
  return get(path, object, { limit, offset });
}

export function anyRequest(method: string, path: string, body?: JsonObject): Call<JsonObject> {
  return {
    method,
    path,
    parse: (answer) => (answer.length ? object(answer) : {}),
    ...(body === undefined ? {} : { content: encodeText(JSON.stringify(body)), headers: JSON_TYPE }),
    repeatable: ["GET", "HEAD", "PUT", "DELETE"].includes(method),
  };
}

/** The entries of a page. */
export function items(answer: JsonObject): JsonObject[] {
  return answer["items"] ?? [];
}
