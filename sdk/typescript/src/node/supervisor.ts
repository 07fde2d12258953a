// SPDX-License-Identifier: Apache-2.0
// Keeps a daemon for as long as the process that started it lives, however that ends. Usage: supervisor.js PROGRAM
// DIRECTORY
//
// Its standard input is a pipe from that process: when it closes, the daemon is stopped and the directory removed.
import { type ChildProcess, spawn } from "node:child_process";
import { openSync, rmSync, writeFileSync, writeSync } from "node:fs";

/** The first SIGTERM drains boxes, the second kills them; SIGKILL is for a daemon that hangs. */
const STEPS: readonly (readonly [NodeJS.Signals, number])[] = [["SIGTERM", 0], ["SIGTERM", 5000], ["SIGKILL", 7000]];

const [program = "", directory = ""] = process.argv.slice(2);

// Those of a terminal are for the process that started it.
for (const name of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"] as const) process.on(name, () => undefined);

const log = openSync(`${directory}/log`, "a");
const places = ["--listen", "", "--socket", `${directory}/sock`, "--state-dir", `${directory}/state`];
const words = [...places, "--log-level", "warn"];
const daemon = spawn(program, words, { stdio: ["ignore", log, log] });
let isLeft = false;

function finish(): void {
  rmSync(directory, { recursive: true, force: true });
  process.exit();
}

function stop(child: ChildProcess): void {
  for (const [name, delay] of STEPS) setTimeout(() => child.kill(name), delay);
}

/** The process that started it sees the file, and reads the log before it closes the pipe. */
function onEnd(): void {
  if (isLeft) finish();
  else writeFileSync(`${directory}/ended`, "");
}

daemon.on("error", (error: NodeJS.ErrnoException) => {
  writeSync(log, `${program}: ${error.code === "ENOENT" ? "No such file" : error.message}\n`);
  onEnd();
});
daemon.on("exit", onEnd);
process.stdin.on("close", () => {
  isLeft = true;
  if (daemon.pid === undefined || daemon.exitCode !== null || daemon.signalCode !== null) finish();
  else stop(daemon);
});
process.stdin.resume();
