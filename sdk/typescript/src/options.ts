// SPDX-License-Identifier: Apache-2.0
// Options of requests. Times are seconds, as in the API; a size is a number of bytes or text such as "64Mi".
import type { Data } from "./bytes.js";
import type { Bundle } from "./models.js";

/** Bytes, or text such as `64Mi`. */
export type Size = string | number;

/** Every request takes a signal. */
export interface CallOptions {
  /** Ends the request when it is aborted. */
  signal?: AbortSignal | undefined;
}

/** What a program is given. */
export interface ProgramOptions extends CallOptions {
  /** Default: the sandbox's, or detected from the code; `python` where that is not certain. */
  language?: string | undefined;
  /** Its extension selects the language where `language` is not given; also its name in tracebacks. */
  fileName?: string | undefined;
  /** Its standard input. */
  stdin?: Data | undefined;
  /** Its arguments. */
  args?: readonly string[] | undefined;
  /** Files that are written first: path in the workspace to content. */
  files?: { readonly [path: string]: Data } | undefined;
  /** Environment variables. */
  env?: Env | undefined;
  /** Seconds after which it is ended. */
  timeout?: number | undefined;
  /** Options of the language, as `Client.languages` lists them. */
  options?: { readonly [name: string]: string | boolean } | undefined;
  /** `plain` for all of `Result.isolation`; `signed` for `Result.receipt` besides. */
  receipt?: "none" | "plain" | "signed" | undefined;
}

/** Environment variables. */
export type Env = { readonly [name: string]: string | number | boolean };

/** What a box may use. More than the policy allows is cut or refused. */
export interface Limits {
  /** Cores. */
  cpu?: Size | undefined;
  /** Memory. */
  memory?: Size | undefined;
  /** Files in the box. */
  disk?: Size | undefined;
  /** Processes at the same time. */
  maxProcesses?: number | undefined;
}

/** What a box is made of, and what it may reach. */
export interface BoxOptions extends Limits {
  /** Default: the root of the host. */
  template?: string | undefined;
  /** Packages of the language's registry, like `numpy==2.1`. What the box lacks is installed first; a failure is an
   * `InstallFailedError`, whose `log` has the last output of the package manager. */
  packages?: readonly string[] | undefined;
  /** Instead of packages: the text of a lock file. */
  lock?: string | undefined;
  /** Who makes the box: an engine's name, or `auto`. */
  engine?: string | undefined;
  /** Least grade of isolation: `namespace`, `gvisor` or `vm`. */
  minIsolation?: "namespace" | "gvisor" | "vm" | undefined;
  /** `none` or `allowlist`. */
  network?: string | undefined;
  /** The hosts that it reaches, and no others, like `api.example.com` or `pypi`. More than the policy grants or lets
   * requests name is refused. */
  allow?: readonly string[] | undefined;
  /** Names of secrets that the proxy adds to requests. */
  secrets?: readonly string[] | undefined;
  /** Tools of outside MCP servers that the code may call. */
  mcp?: readonly string[] | undefined;
  /** A policy to apply besides that of the tenant. */
  policy?: string | undefined;
}

/** Callbacks that get output while a program runs. A promise that they return is awaited. */
export interface OutputCallbacks {
  /** Gets text of standard output. */
  onStdout?: ((text: string) => unknown) | undefined;
  /** Gets text of standard error. */
  onStderr?: ((text: string) => unknown) | undefined;
  /** Gets rich results. */
  onResult?: ((bundle: Bundle) => unknown) | undefined;
}

/** One program in a new box. */
export interface OneShotOptions extends ProgramOptions, BoxOptions {
  /** Bytes of output that are kept. */
  maxOutput?: Size | undefined;
}

/** Callbacks of a single execution. */
export interface OneShotCallbacks extends OutputCallbacks {
  /** Gets the output of a package manager. */
  onInstall?: ((text: string) => unknown) | undefined;
}

/** How packages are installed into a sandbox. */
export interface InstallOptions extends CallOptions {
  /** Whose package manager is used; default: the sandbox's. */
  language?: string | undefined;
  /** Instead of packages: the text of a lock file. */
  lock?: string | undefined;
  /** Gets the output of the package manager. */
  onOutput?: ((text: string) => unknown) | undefined;
}

/** A shell command. */
export interface CommandOptions extends CallOptions {
  /** Its standard input. */
  stdin?: Data | undefined;
  /** Environment variables. */
  env?: Env | undefined;
  /** Seconds after which it is ended. */
  timeout?: number | undefined;
}

/** How a program is started that is not waited for. */
export interface StartOptions {
  /** Keep its standard input open, for `Execution.sendStdin`. */
  stdinOpen?: boolean | undefined;
  /** Start it at once, in a process of its own, beside the programs that wait for each other. */
  background?: boolean | undefined;
}

/** A terminal. */
export interface TerminalOptions extends CallOptions {
  /** Default: 24. */
  rows?: number | undefined;
  /** Default: 80. */
  cols?: number | undefined;
  /** Environment variables. */
  env?: Env | undefined;
  /** Seconds after which it is ended; default: the rest of the sandbox's lifetime. */
  timeout?: number | undefined;
}

/** A handler's call. */
export interface HandlerOptions extends CallOptions {
  /** Second argument of the handler. */
  context?: { readonly [name: string]: unknown } | undefined;
  /** Seconds after which it is ended. */
  timeout?: number | undefined;
}

/** A new sandbox. */
export interface SandboxOptions extends BoxOptions, CallOptions {
  /** Default: one that the daemon chooses. */
  id?: string | undefined;
  /** Of programs that name none. */
  language?: string | undefined;
  /** Environment variables of all programs. */
  env?: Env | undefined;
  /** Seconds without use after which it ends. */
  idleTimeout?: number | undefined;
  /** Seconds after which it ends in any case. */
  lifetime?: number | undefined;
}
