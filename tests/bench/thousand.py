#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A thousand programs at once through each client. Usage: MILLIBOX_BUILD=build-release thousand.py [-n COUNT] [CLIENT...]

Starts a daemon with the default limits and, one after the other, each client: python-async, python-threads, typescript, c, cli.
Each sends COUNT programs at the same time (default: 1000) with a different result, and checks every result. Prints how many were
right, the seconds, and the memory of the daemon before and after. A client that takes longer than TIME_S is killed; the status is
1 if anything was lost.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.daemon import BUILD, Daemon  # noqa: E402

TIME_S = 600

PYTHON = """
import asyncio, sys
from concurrent.futures import ThreadPoolExecutor
import millibox

count = int(sys.argv[2])

async def gather():
    async with millibox.AsyncClient() as client:
        return await asyncio.gather(*(client.run_code(f"print({i} * 3)") for i in range(count)))

def in_threads():
    with millibox.Client() as client, ThreadPoolExecutor(count) as pool:
        return list(pool.map(lambda i: client.run_code(f"print({i} * 3)"), range(count)))

results = asyncio.run(gather()) if sys.argv[1] == "async" else in_threads()
print(sum(result.stdout == f"{i * 3}\\n" for i, result in enumerate(results)))
"""

TYPESCRIPT = """
import { Client } from "./index.js";

const client = new Client();
const numbers = Array.from({ length: Number(process.argv[2]) }, (_, i) => i);
const results = await Promise.all(numbers.map((i) => client.runCode(`print(${i} * 3)`)));
console.log(results.filter((result, i) => result.stdout === `${i * 3}\\n`).length);
await client.close();
"""

C = """
#include <millibox.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *work(void *number)
{
	struct millibox_client *client = millibox_client_new();
	struct millibox_result *result = NULL;
	struct millibox_request *request;
	char code[64], expected[32];
	size_t right;

	snprintf(code, sizeof(code), "print(%d * 3)", (int)(size_t)number);
	snprintf(expected, sizeof(expected), "%d\\n", (int)(size_t)number * 3);
	request = millibox_request_new(code);
	right = millibox_run(client, request, &result) == 0 &&
	        strcmp(millibox_result_stdout(result, NULL), expected) == 0;
	if (!right)
		fprintf(stderr, "%s: %s\\n", millibox_error_code(client), millibox_error_message(client));
	millibox_result_free(result);
	millibox_request_free(request);
	millibox_client_free(client);
	return (void *)right;
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 0;
	pthread_t *threads = calloc((size_t)count, sizeof(*threads));
	size_t sum = 0;
	void *right;

	for (int i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)(size_t)i) != 0)
			return 1;
	for (int i = 0; i < count; i++) {
		pthread_join(threads[i], &right);
		sum += (size_t)right;
	}
	printf("%zu\\n", sum);
	free(threads);
	return 0;
}
"""

#: The shell starts them as fast as it can.
CLI = """
for i in $(seq 0 $(($2 - 1))); do "$1/millibox" run -c "print($i * 3)" >"$3/$i" </dev/null & done
wait
right=0
for i in $(seq 0 $(($2 - 1))); do [ "$(cat "$3/$i")" = $((i * 3)) ] && right=$((right + 1)); done
echo $right
"""


def python(kind):
    return lambda place, count: [sys.executable, "-c", PYTHON, kind, str(count)]


def typescript(place, count):
    sdk = ROOT / "sdk/typescript"
    if not (sdk / "node_modules").exists():
        sys.exit("the compiler is not installed: tools/setup test")
    subprocess.run(["node", sdk / "node_modules/typescript/bin/tsc", "-p", sdk, "--outDir", place], check=True)
    (place / "package.json").write_text('{"type": "module"}')
    (place / "thousand.js").write_text(TYPESCRIPT)
    return ["node", place / "thousand.js", str(count)]


def c(place, count):
    (place / "thousand.c").write_text(C)
    subprocess.run(["gcc", "-O2", f"-I{ROOT / 'src/client'}", place / "thousand.c", "-o", place / "thousand", f"-L{BUILD / 'src/client'}",
                    "-lmillibox", f"-Wl,-rpath,{BUILD / 'src/client'}", "-pthread"], check=True)
    return [place / "thousand", str(count)]


def cli(place, count):
    return ["bash", "-c", CLI, "bash", BUILD, str(count), place]


CLIENTS = {"python-async": python("async"), "python-threads": python("threads"), "typescript": typescript, "c": c, "cli": cli}


def memory_mb(daemon):
    status = Path(f"/proc/{daemon.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def measure(name, count, daemon):
    """Return: whether every result was right."""
    env = {**os.environ, "MILLIBOX_SOCKET": daemon.socket, "PYTHONPATH": str(ROOT / "sdk/python/src")}
    with tempfile.TemporaryDirectory() as place:
        command = CLIENTS[name](Path(place), count)
        before, start = memory_mb(daemon), time.monotonic()
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=TIME_S)
        seconds = time.monotonic() - start
    right = int(done.stdout or 0) if done.returncode == 0 else 0
    print(f"{name:15} {right:5} of {count} right, {seconds:6.1f} s, daemon {before:.1f} -> {memory_mb(daemon):.1f} MB", flush=True)
    if right != count:
        print(done.stderr[-2000:], file=sys.stderr)
    return right == count


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-n", type=int, default=1000, dest="count")
    parser.add_argument("clients", nargs="*", choices=[*CLIENTS, []], default=[])
    args = parser.parse_args()
    daemon = Daemon(env={"MILLIBOX_POOLS_ENABLED": "true", "MILLIBOX_ZYGOTES_ENABLED": "true"}).start()
    try:
        return 0 if all([measure(name, args.count, daemon) for name in args.clients or CLIENTS]) else 1
    finally:
        daemon.stop()
        daemon.remove()


if __name__ == "__main__":
    sys.exit(main())
