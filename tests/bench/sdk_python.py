#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the Python SDK adds to raw HTTP. Usage: MILLIBOX_BUILD=build-release sdk_python.py [ROUNDS]

Requests of the SDK and the same requests by http.client, one after the other, over one kept Unix connection each, so that
both meet the same load. The overhead is the difference of the medians; the goal is 0.5 ms. The processor time of the client
does not depend on what else the machine does, and decides.
"""

import asyncio
import json
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "sdk/python/src")]

import httpx  # noqa: E402
import millibox  # noqa: E402
from support.daemon import Daemon  # noqa: E402

GOAL_MS = 0.5
REFILL_S = 0.006


def _rest(seconds):
    """Until the pool has replaced the last box; otherwise the one that is quick after its answer delays the other. The
    processor stays awake: a sleep would be part of what is measured next."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def alternate(rounds, *works, rest=0):
    """Milliseconds of each work, in turns: by the clock, and of the processor."""
    times = [[] for _ in works]
    for number in range(rounds + 20):
        pairs = list(zip(works, times))
        for work, found in pairs if number % 2 else reversed(pairs):
            _rest(rest)
            begin, used = time.perf_counter(), time.process_time()
            work()
            if number >= 20:
                found.append(((time.perf_counter() - begin) * 1000, (time.process_time() - used) * 1000))
    return times


def report(name, raw, sdk):
    wall, used = ([statistics.median(each[kind] for each in times) for times in (raw, sdk)] for kind in (0, 1))
    over = used[1] - used[0]
    print(f"| {name} | {wall[0]:.3f} | {wall[1]:.3f} | {wall[1] - wall[0]:+.3f} | {over:+.3f} | {'yes' if over <= GOAL_MS else 'NO'} |",
          flush=True)
    return over


def raw_stream(raw, path, body):
    raw.connection.request("POST", path, body=json.dumps(body).encode(),
                           headers={"Content-Type": "application/json", "Accept": "application/x-ndjson"})
    return [json.loads(line) for line in raw.connection.getresponse().read().splitlines()]


async def raw_async(streams, path, body):
    """The same over asyncio's own streams."""
    reader, writer = streams
    data = json.dumps(body).encode()
    writer.write(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/x-ndjson\r\n"
                 f"Content-Length: {len(data)}\r\n\r\n".encode() + data)
    await reader.readuntil(b"\r\n\r\n")
    found = b""
    while size := int(await reader.readline(), 16):
        found += (await reader.readexactly(size + 2))[:-2]
    await reader.readexactly(2)
    return [json.loads(line) for line in found.splitlines()]


def main(rounds):
    daemon = Daemon(env={"MILLIBOX_POOLS_ENABLED": "true", "MILLIBOX_ZYGOTES_ENABLED": "true"}).start()
    loop = asyncio.new_event_loop()
    print(f"httpx {httpx.__version__}, Python {sys.version.split()[0]}, {rounds} rounds, medians in ms\n")
    print("| request | raw | SDK | overhead | of the processor | at most 0.5 |\n| --- | --- | --- | --- | --- | --- |")
    try:
        with daemon.client() as raw, millibox.Client(socket=daemon.socket) as client, millibox.Sandbox(client) as box:
            later = millibox.AsyncClient(socket=daemon.socket)
            async_box = loop.run_until_complete(millibox.AsyncSandbox.connect(box.id, later))
            streams = loop.run_until_complete(asyncio.open_unix_connection(daemon.socket))
            line = {"code": "1"}
            path = f"/api/v1/sessions/{box.id}/execute"
            box.files.write("f", b"x" * 1000)
            worst = max(
                report("health", *alternate(rounds, lambda: raw.get("/api/v1/health").json, client.health)),
                report("a fresh box", *alternate(rounds, lambda: raw.python("print(42)"), lambda: client.run_code("print(42)", language="python"),
                                                rest=REFILL_S)),
                report("a line in a sandbox", *alternate(rounds, lambda: raw_stream(raw, path, line), lambda: box.run_code("1"))),
                report("a line in a sandbox, async", *alternate(
                    rounds, lambda: loop.run_until_complete(raw_async(streams, path, line)), lambda: loop.run_until_complete(async_box.run_code("1")))),
                report("read a small file", *alternate(
                    rounds, lambda: raw.get(f"/api/v1/sessions/{box.id}/files/f").body, lambda: box.files.read("f"))),
            )
            loop.run_until_complete(later.aclose())
            streams[1].close()
    finally:
        loop.close()
        daemon.stop()
        daemon.remove()
    return 0 if worst <= GOAL_MS else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 500))
