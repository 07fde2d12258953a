// SPDX-License-Identifier: Apache-2.0
// Shell commands in a sandbox.
import { program, start } from "./calls.js";
import type { Execution } from "./execution.js";
import type { JsonObject, Result } from "./models.js";
import type { CallOptions, CommandOptions, Env, OutputCallbacks } from "./options.js";
import type { Runner } from "./runner.js";

/** A command line, or a program with its arguments. */
export type Command = string | readonly string[];

/** Shell commands in a sandbox. Its shell keeps variables and the working directory from one command to the next. */
export class Commands {
  readonly #runner: Runner;

  /** @internal */
  constructor(runner: Runner) {
    this.#runner = runner;
  }

  /** Run a command line, or a program with arguments, and wait for its end. A command that fails is a result; see
   * `Result.raiseForStatus`. */
  run(command: Command, options: CommandOptions & OutputCallbacks = {}): Promise<Result> {
    return this.#runner.run(shell(command, options), options, options.signal);
  }

  /** Start a command in the background and return a handle: `wait`, `events`, `output`, `sendStdin` (with `stdinOpen`),
   * `kill`; iterating over it yields its output. It runs in a shell of its own beside everything else, at most 16 at a
   * time, and ends with the sandbox. Without `timeout` it may run as long as the sandbox. */
  start(command: Command, options: CommandOptions & { stdinOpen?: boolean } = {}): Promise<Execution> {
    const body = { ...shell(command, options), ...start({ ...options, background: true }) };
    return this.#runner.start(body, options.signal);
  }

  /** Start a command that runs beside all others until it or the sandbox ends, as `start` does, but without a handle:
   * its output goes to the file `log`. Return: its process group, for `kill`. */
  async detach(command: Command, options: { log?: string; env?: Env } & CallOptions = {}): Promise<number> {
    const log = quote(options.log ?? "/dev/null");
    const line = `setsid bash -c ${quote(asLine(command))} >${log} 2>&1 </dev/null & echo $!`;
    const result = await this.#runner.run(shell(line, options), {}, options.signal);
    return Number(result.raiseForStatus().stdout);
  }

  /** Send a signal to a command of `detach` and all that it started. Return: whether it was there. */
  async kill(group: number, options: { signalNumber?: number } & CallOptions = {}): Promise<boolean> {
    const line = `kill -${Math.trunc(options.signalNumber ?? 9)} -- -${Math.trunc(group)}`;
    return (await this.#runner.run(shell(line, {}), {}, options.signal)).ok;
  }
}

/** Fields of a request that runs a command. */
export function shell(command: Command, options: CommandOptions): JsonObject {
  return program(asLine(command), { ...options, language: "shell" });
}

/** A command line; a sequence of words is quoted. */
function asLine(command: Command): string {
  return typeof command === "string" ? command : command.map(quote).join(" ");
}

function quote(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`;
}
