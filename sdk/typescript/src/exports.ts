// SPDX-License-Identifier: Apache-2.0
// What both entry points export.
export * as errors from "./errors.js";
export {
  ApiError,
  ConnectError,
  ConnectionLost,
  MilliboxError,
  ProgramCancelled,
  ProgramCrashed,
  ProgramError,
  ProgramFailed,
  ProgramTimeout,
  UnsafeArchive,
} from "./base_errors.js";
export type { Data } from "./bytes.js";
export type { Content } from "./calls.js";
export { Client, type ClientOptions } from "./client.js";
export { type Command, Commands } from "./commands.js";
export { Execution } from "./execution.js";
export { Files, type Writable } from "./files.js";
export {
  type Bundle,
  ErrorInfo,
  Event,
  type EventKind,
  FileInfo,
  type JsonObject,
  PortInfo,
  Result,
  SandboxInfo,
  type Status,
} from "./models.js";
export type {
  BoxOptions,
  CallOptions,
  CommandOptions,
  Env,
  HandlerOptions,
  InstallOptions,
  Limits,
  OneShotCallbacks,
  OneShotOptions,
  OutputCallbacks,
  ProgramOptions,
  SandboxOptions,
  Size,
  StartOptions,
  TerminalOptions,
} from "./options.js";
export type { EndpointOptions } from "./platform.js";
export { type Forward, type ForwardOptions, Port } from "./ports.js";
export { type ClientOption, Sandbox } from "./sandbox.js";
export { Terminal } from "./terminal.js";
export { VERSION } from "./version.js";
