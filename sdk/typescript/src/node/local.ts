// SPDX-License-Identifier: Apache-2.0
// A daemon of this process, for hosts where none runs.
import { type ChildProcess, spawn } from "node:child_process";
import { accessSync, constants, chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createConnection } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { MilliboxError } from "../base_errors.js";
import { Client } from "../client.js";
import { asyncDispose } from "../dispose.js";
import { findEndpoint } from "./endpoint.js";

/** For sanitizers and emulated processors; a daemon that cannot start ends much sooner. */
const READY_MS = 60_000;
const POLL_MS = 5;
const STOP_MS = 30_000;
const LOG_MAX = 8192;
const FOLDERS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/** No later daemon reads this one's state. */
const SETTINGS = {
  MILLIBOX_SESSIONS_SURVIVE: "0",
  MILLIBOX_STORE_VOLATILE: "true",
  MILLIBOX_AUDIT_ENABLED: "false",
};
/** Its only client is its owner, who may name hosts; the environment or a setting may name another policy. */
const DEFAULTS = { MILLIBOX_POLICY_DEFAULT: "owner" };
/** For the client, not for the daemon. */
const OURS = ["API_KEY", "API_KEY_FILE", "URL", "SOCKET", "CA_FILE"].map((name) => `MILLIBOX_${name}`);

/** What daemon is started. */
export interface LocalOptions {
  /** Path of `milliboxd`; default: MILLIBOX_DAEMON, then the one in PATH. */
  program?: string | undefined;
  /** Settings by their names, such as `{"isolation": "best-effort", "limits.timeout": "10s"}`. */
  settings?: { readonly [name: string]: string } | undefined;
}

/** A daemon with a private socket. It ends with `stop`, or with this process, even if that is killed. */
export class LocalDaemon {
  /** Path of its Unix socket. */
  readonly socket: string;
  readonly #program: string;
  readonly #directory: string;
  readonly #supervisor: ChildProcess;

  private constructor(options: LocalOptions) {
    this.#program = options.program ?? findProgram();
    this.#directory = mkdtempSync(join(tmpdir(), "millibox-"));
    // A daemon of root gives up its ids and must reach its files; what it keeps there is closed to others.
    chmodSync(this.#directory, 0o711);
    this.socket = join(this.#directory, "sock");
    const script = fileURLToPath(new URL("./supervisor.js", import.meta.url));
    this.#supervisor = spawn(process.execPath, [script, this.#program, this.#directory], {
      stdio: ["pipe", "ignore", "ignore"],
      env: environment(options.settings ?? {}),
      detached: true,
      cwd: "/",
    });
    // It keeps no process alive, and need not.
    this.#supervisor.unref();
    (this.#supervisor.stdin as unknown as { unref(): void }).unref();
    this.#supervisor.stdin?.on("error", () => undefined);
  }

  /** Start a daemon, and wait until it is ready. */
  static async start(options: LocalOptions = {}): Promise<LocalDaemon> {
    const daemon = new LocalDaemon(options);
    try {
      await daemon.#waitUntilReady();
    } catch (error) {
      await daemon.stop();
      throw error;
    }
    return daemon;
  }

  async #waitUntilReady(): Promise<void> {
    const deadline = performance.now() + READY_MS;
    while (!(await accepts(this.socket))) {
      const ended = this.#supervisor.exitCode !== null || existsSync(join(this.#directory, "ended"));
      if (ended || performance.now() > deadline) {
        throw new MilliboxError(`${this.#program} did not start:\n${this.log()}`);
      }
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }

  /** What it has logged: warnings and errors. */
  log(): string {
    try {
      return readFileSync(join(this.#directory, "log"), "utf8").slice(-LOG_MAX);
    } catch {
      return "";
    }
  }

  /** End it and remove its files. */
  async stop(): Promise<void> {
    const supervisor = this.#supervisor;
    if (supervisor.exitCode === null && supervisor.signalCode === null) {
      const ended = new Promise((resolve) => supervisor.once("exit", resolve));
      supervisor.ref();
      supervisor.stdin?.end();
      const timer = setTimeout(() => supervisor.kill("SIGKILL"), STOP_MS);
      await ended;
      clearTimeout(timer);
    }
    rmSync(this.#directory, { recursive: true, force: true });
  }

  async [asyncDispose](): Promise<void> {
    await this.stop();
  }
}

function accepts(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createConnection(path);
    const finish = (answer: boolean): void => {
      probe.destroy();
      resolve(answer);
    };
    probe.once("connect", () => finish(true));
    probe.once("error", () => finish(false));
  });
}

function findProgram(): string {
  const named = process.env["MILLIBOX_DAEMON"];
  if (named) return resolve(named);
  for (const folder of `${process.env["PATH"] ?? ""}:${FOLDERS}`.split(":").filter(Boolean)) {
    try {
      accessSync(join(folder, "milliboxd"), constants.X_OK);
      return resolve(folder, "milliboxd");
    } catch {
      // The next one.
    }
  }
  throw new MilliboxError("milliboxd is not installed: neither MILLIBOX_DAEMON nor PATH has it");
}

function environment(settings: { readonly [name: string]: string }): NodeJS.ProcessEnv {
  const isKept = (name: string): boolean =>
    name === "HOME" || name === "XDG_RUNTIME_DIR" || (name.startsWith("MILLIBOX_") && !OURS.includes(name));
  const kept = Object.entries(process.env).filter(([name]) => isKept(name));
  const given = Object.entries(settings).map(([name, value]) => [settingName(name), value]);
  return { PATH: FOLDERS, ...DEFAULTS, ...Object.fromEntries(kept), ...SETTINGS, ...Object.fromEntries(given) };
}

function settingName(name: string): string {
  return `MILLIBOX_${name.replaceAll(".", "_").toUpperCase()}`;
}

/** One for the whole process. */
let shared: Promise<LocalDaemon> | null = null;

/** A client of the daemon at the default socket, or, where none runs, of one that this process starts and that ends
 * with it. With `program` or `settings` it is always a new one, which ends with the client. Where MILLIBOX_SOCKET or
 * MILLIBOX_URL names a daemon, that one is used. */
export async function local(options: LocalOptions = {}): Promise<Client> {
  if (options.program !== undefined || options.settings !== undefined) {
    const daemon = await LocalDaemon.start(options);
    const client = new Client({ socket: daemon.socket });
    client.onClose.push(() => daemon.stop());
    return client;
  }
  const { socket } = findEndpoint({});
  const isChosen = process.env["MILLIBOX_SOCKET"] || process.env["MILLIBOX_URL"];
  if (isChosen || (socket !== null && (await accepts(socket)))) return new Client();
  shared ??= LocalDaemon.start();
  shared.catch(() => (shared = null));
  return new Client({ socket: (await shared).socket });
}
