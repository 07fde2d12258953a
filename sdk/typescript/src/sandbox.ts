// SPDX-License-Identifier: Apache-2.0
// A sandbox: a box that stays, with its files, variables and processes.
import { ConnectionLost } from "./base_errors.js";
import * as calls from "./calls.js";
import { Client } from "./client.js";
import { type Command, Commands, shell } from "./commands.js";
import { asyncDispose } from "./dispose.js";
import { SessionNotFoundError } from "./errors.js";
import type { Execution } from "./execution.js";
import { Files } from "./files.js";
import { Cursor } from "./follow.js";
import { type Event, type JsonObject, type PortInfo, type Result, type SandboxInfo, parseEvent } from "./models.js";
import type {
  CallOptions,
  CommandOptions,
  HandlerOptions,
  InstallOptions,
  OutputCallbacks,
  ProgramOptions,
  SandboxOptions,
  StartOptions,
  TerminalOptions,
} from "./options.js";
import { localForward } from "./platform.js";
import { type Forward, type ForwardOptions, Port } from "./ports.js";
import { Runner } from "./runner.js";
import { Terminal } from "./terminal.js";

/** In a box without bash, its sh. The prompt is set here: a bash that runs a script drops it. */
const SHELL = "command -v bash >/dev/null && PS1='\\w\\$ ' exec bash -i\nPS1='$ ' exec sh -i";

/** Which daemon a sandbox belongs to. */
export interface ClientOption {
  /** Default: a client of its own, with the settings of the environment. */
  client?: Client | undefined;
}

/** A box that stays. `create` makes one and `close` ends it, as does `await using`. `connect` attaches to a sandbox
 * that exists; `close` leaves it alive then. */
export class Sandbox {
  readonly #runner: Runner;
  readonly #made: SandboxInfo;
  readonly #ownClient: Client | null;
  readonly #ownsSession: boolean;
  /** Its files. */
  readonly files: Files;
  /** Shell commands in it. */
  readonly commands: Commands;

  private constructor(client: Client, info: SandboxInfo, ownsClient: boolean, ownsSession: boolean) {
    // JavaScript lets a program call it.
    if (!(client instanceof Client)) throw new TypeError("a sandbox is made with: await Sandbox.create()");
    this.#runner = new Runner(client.transport, info.id);
    this.#made = info;
    this.#ownClient = ownsClient ? client : null;
    this.#ownsSession = ownsSession;
    this.files = new Files(client.transport, info.id);
    this.commands = new Commands(this.#runner);
  }

  /** Make a sandbox. */
  static create(options: SandboxOptions & ClientOption = {}): Promise<Sandbox> {
    return Sandbox.#open(calls.sessionCreate(options), options, true);
  }

  /** Attach to a sandbox that exists. `close` does not end it. */
  static connect(id: string, options: ClientOption & CallOptions = {}): Promise<Sandbox> {
    return Sandbox.#open(calls.sessionShow(id), options, false);
  }

  static async #open(
    call: calls.Call<SandboxInfo>,
    options: ClientOption & CallOptions,
    ownsSession: boolean,
  ): Promise<Sandbox> {
    const client = options.client ?? new Client();
    try {
      const info = await client.transport.call(call, options.signal);
      return new Sandbox(client, info, !options.client, ownsSession);
    } catch (error) {
      if (!options.client) await client.close();
      throw error;
    }
  }

  /** Leave it: end it if `create` made it, and close a client of its own. */
  async close(): Promise<void> {
    try {
      if (this.#ownsSession) await this.kill();
    } finally {
      await this.#ownClient?.close();
    }
  }

  async [asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Id of the session, for `connect`. */
  get id(): string {
    return this.#runner.id;
  }

  /** What the daemon granted or understood otherwise than requested. */
  get warnings(): string[] {
    return this.#made.raw["warnings"] ?? [];
  }

  /** Run code and wait for its end. Variables stay for the next call. Callbacks get output while the program runs. If
   * the signal is aborted, the program is cancelled. A broken connection is made again; a daemon that is killed loses
   * the program, see `startCode`. */
  runCode(code: string, options: ProgramOptions & OutputCallbacks = {}): Promise<Result> {
    return this.#runner.run(calls.program(code, options), options, options.signal);
  }

  /** Run a shell command; the same as `commands.run`. */
  run(command: Command, options: CommandOptions & OutputCallbacks = {}): Promise<Result> {
    return this.commands.run(command, options);
  }

  /** Run code and yield its events. A broken connection is made again without a loss. A reader that stops early does
   * not end the program. */
  async *stream(code: string, options: ProgramOptions = {}): AsyncGenerator<Event, void, void> {
    yield* this.#runner.stream(calls.program(code, options), new Cursor(), options.signal);
  }

  /** Start code and return a handle once the daemon has written it down: the program survives a daemon that is killed
   * and started again. With `stdinOpen`, `sendStdin` of the handle writes to its input. */
  startCode(code: string, options: ProgramOptions & StartOptions = {}): Promise<Execution> {
    return this.#runner.start({ ...calls.program(code, options), ...calls.start(options) }, options.signal);
  }

  /** Start a command on a terminal, beside everything else; by default a shell. It can be left and attached to
   * again. */
  async pty(command: Command = SHELL, options: TerminalOptions = {}): Promise<Terminal> {
    const { rows = 24, cols = 80 } = options;
    const execution = await this.#runner.start({ ...shell(command, options), tty: { rows, cols } }, options.signal);
    return Terminal.attach(this.#runner.transport, execution.id, options);
  }

  /** Attach to a program that runs on a terminal, or to any other execution: its output from the start on. */
  attach(id: string, options: CallOptions = {}): Promise<Terminal> {
    return Terminal.attach(this.#runner.transport, id, options);
  }

  /** Call `handler(event)` or `handler(event, context)` that the code defines. Return: its value. An exception of the
   * handler is a `ProgramError`. */
  async call(code: string, event: JsonObject, options: HandlerOptions = {}): Promise<any> {
    const result = await this.#runner.run(calls.handler(code, event, options), {}, options.signal);
    return result.raiseForStatus().value;
  }

  /** The latest executions, newest first. */
  async executions(options: { limit?: number } & CallOptions = {}): Promise<JsonObject[]> {
    const call = calls.sessionExecutions(this.id, options.limit ?? 50, 0);
    return calls.items(await this.#runner.transport.call(call, options.signal));
  }

  /** Copy a local file or directory into the sandbox; the same as `files.upload`. */
  upload(local: string, path?: string, options: CallOptions = {}): Promise<void> {
    return this.files.upload(local, path, options);
  }

  /** Copy a file or directory out of the sandbox; the same as `files.download`. */
  download(path: string, local: string, options: CallOptions = {}): Promise<void> {
    return this.files.download(path, local, options);
  }

  /** Install packages into the running sandbox, like `numpy==2.1`, or what `lock` names. Programs find them at once,
   * also in interpreters that run; what a program has already imported stays as it is. Return: `manager`, `packages`,
   * `lock` and `path`; the latter two are null if the box had all of them. A failure is an `InstallFailedError`, whose
   * `log` has the last output of the package manager. */
  async install(packages: string | readonly string[] = [], options: InstallOptions = {}): Promise<JsonObject> {
    const names = typeof packages === "string" ? [packages] : packages;
    const call = calls.sessionInstall(this.id, names, options);
    let installed: JsonObject | null = null;
    for await (const line of this.#runner.transport.lines(call, options.signal)) {
      const event = parseEvent(line);
      if (event.kind === "install") await options.onOutput?.(event.text);
      else if (event.kind === "end") installed = event.raw["result"];
    }
    if (!installed) throw new ConnectionLost("the daemon ended a stream before the packages were installed");
    return installed;
  }

  /** The sandbox as the daemon has it now. */
  info(options: CallOptions = {}): Promise<SandboxInfo> {
    return this.#runner.transport.call(calls.sessionShow(this.id), options.signal);
  }

  /** What it uses: `memory_mb`, `cpu_time_ms`, `executions` ... */
  stats(options: CallOptions = {}): Promise<JsonObject> {
    return this.#runner.transport.call(calls.sessionStats(this.id), options.signal);
  }

  /** TCP ports on which its programs listen, by number. */
  ports(options: CallOptions = {}): Promise<PortInfo[]> {
    return this.#runner.transport.call(calls.sessionPorts(this.id), options.signal);
  }

  /** Connect to a program that listens on its own loopback, also if it has no network. Nothing listens there:
   * `NotFoundError`. */
  async openPort(port: number, options: CallOptions = {}): Promise<Port> {
    return new Port(await this.#runner.transport.socket(calls.portPath(this.id, port), options.signal), port);
  }

  /** Listen on a local port, a free one by default, and forward each connection to `port` of the sandbox. Not in
   * browsers. */
  forward(port: number, options: ForwardOptions = {}): Promise<Forward> {
    return localForward()(() => this.openPort(port), options);
  }

  /** Freeze it: nothing runs, and time limits stand still. */
  pause(options: CallOptions = {}): Promise<SandboxInfo> {
    return this.#act("pause", options);
  }

  /** Let a paused sandbox continue. */
  resume(options: CallOptions = {}): Promise<SandboxInfo> {
    return this.#act("resume", options);
  }

  /** Send SIGINT to the running program; variables stay. */
  interrupt(options: CallOptions = {}): Promise<SandboxInfo> {
    return this.#act("interrupt", options);
  }

  /** Start its idle time again. */
  keepalive(options: CallOptions = {}): Promise<SandboxInfo> {
    return this.#act("keepalive", options);
  }

  #act(verb: Parameters<typeof calls.sessionAct>[1], options: CallOptions): Promise<SandboxInfo> {
    return this.#runner.transport.call(calls.sessionAct(this.id, verb), options.signal);
  }

  /** End it and delete what is in it. Return: false if it had ended before. */
  async kill(options: CallOptions = {}): Promise<boolean> {
    try {
      await this.#runner.transport.call(calls.sessionDelete(this.id), options.signal);
      return true;
    } catch (error) {
      if (error instanceof SessionNotFoundError) return false;
      throw error;
    }
  }
}
