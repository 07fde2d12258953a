#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What one tenant's load does to another tenant's print(42) in a fresh box.

    MILLIBOX_BUILD=build tests/bench/fair.py [--seconds 10] [--pause 0.004] [--load NAME] [--unlimited]

Prints for each load p90 without and beside it, how many times the p90 grew, p50, and how many of the boxes
were ready in a pool. The machine may do other work: each load is measured in rounds, right after a time
without it. The load is made by processes of their own, so that it does not delay the one that measures.
"""

import argparse
import contextlib
import multiprocessing
import pathlib
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from measure import percentile, timed  # noqa: E402
from support import host, oci  # noqa: E402
from support.daemon import Daemon  # noqa: E402
from support.identity import V1, KeyClient, make_key, make_tenant  # noqa: E402

ROUNDS = 3
#: Between two requests of the neighbour. 4 ms, as in row 1, is about a hundred boxes a second, which takes
#: a core by itself; 50 ms is a neighbour well within its share.
PAUSES = (0.004, 0.05)
WARM = {"MILLIBOX_POOLS_ENABLED": "true", "MILLIBOX_ZYGOTES_ENABLED": "true"}


def executions(begun, address, key, code, resources=None):
    client = KeyClient(address, key, timeout=600)
    begun.release()
    while True:
        client.post(f"{V1}/execute", {"language": "python", "code": code, "timeout": 600, "resources": resources or {}})


def creators(begun, address, key):
    def create():
        client = KeyClient(address, key, timeout=600)
        while True:
            made = client.post(f"{V1}/sessions", {"language": "python", "mode": "persistent"})
            if made.status == 201:
                client.request("DELETE", f"{V1}/sessions/{made.json['id']}")
            else:
                time.sleep(0.1)

    threads = [threading.Thread(target=create, daemon=True) for _ in range(30)]
    for thread in threads:
        thread.start()
    begun.release()
    threads[0].join()


def imports(begun, address, key):
    image = oci.Image([[*oci.busybox_layer(), *(oci.entry(f"data/{i}", b"x" * 20000) for i in range(4000))]]).bytes()
    client = KeyClient(address, key, timeout=600)
    begun.release()
    while True:
        client.request("POST", f"{V1}/templates/import?id=load", body=image, headers={"Content-Type": "application/x-tar"})
        client.request("DELETE", f"{V1}/templates/load")


SLEEP, SPIN = "import time; time.sleep(600)", "while True: pass"
#: Two loads of an attack: 8 processes each that compute for 2 ms and sleep for half a millisecond, or that fork.
BURSTS = """
import os, time
for _ in range(7):
    if os.fork() == 0:
        break
while True:
    end = time.monotonic() + 0.002
    while time.monotonic() < end:
        pass
    time.sleep(0.0005)
"""
FORKS = """
import os
for _ in range(7):
    if os.fork() == 0:
        break
while True:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
"""
LOADS = {
    "16 sleepers": [(executions, SLEEP)] * 16,
    "16 spinners": [(executions, SPIN)] * 16,
    "2 boxes of bursts": [(executions, BURSTS)] * 2,
    "2 boxes of forks": [(executions, FORKS)] * 2,
    "30 session creators": [(creators,)],
    "an import": [(imports,)],
    "2 boxes of 0.01 core": [(executions, "print(42)", {"cpu": "0.01"})] * 2,
    "four at once": [  # what the aim names: sleepers, spinners, creators and an import
        *[(executions, SLEEP)] * 16, *[(executions, SPIN)] * 16, (creators,), (imports,)],
}


@contextlib.contextmanager
def load(address, key, parts):
    # Not forked: a connection of this process must not stay open in them.
    context = multiprocessing.get_context("spawn")
    begun = context.Semaphore(0)
    processes = [context.Process(target=fn, args=(begun, address, key, *args), daemon=True) for fn, *args in parts]
    for process in processes:
        process.start()
    try:
        for _ in processes:
            begun.acquire()
        yield
    finally:
        for process in processes:
            process.kill()
            process.join()


def measure(client, seconds, pause):
    """[(ms, whether the box came from a pool)]"""
    samples, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        results = []
        ms = timed(lambda: results.append(client.python("print(42)")))
        samples.append((ms, results[0]["isolation"]["pooled"]))
        time.sleep(pause)
    return samples


def is_idle(client):
    state = client.get("/readyz").json
    return state["running"] == 0 and state["queued"] == 0


def show(name, alone, beside):
    (alone50, alone90), (p50, p90) = ([percentile([ms for ms, _ in found], p) for p in (50, 90)] for found in (alone, beside))
    pooled = sum(pooled for _, pooled in beside) / len(beside)
    print(f"{name:22} {len(beside):5} {alone50:9.2f} {p50:8.2f} {alone90:9.2f} {p90:8.2f} {p90 / alone90:6.1f} {pooled:7.0%}", flush=True)


def compare(daemon, admin, quiet, loud, name, seconds, pause):
    """Rounds of the neighbour alone and beside a load."""
    alone, beside = [], []
    for _ in range(ROUNDS):
        alone += measure(quiet, seconds / ROUNDS, pause)
        with load(daemon.socket, loud, LOADS[name]):
            beside += measure(quiet, seconds / ROUNDS, pause)
        host.wait_until(lambda: is_idle(admin), 60, "the load is gone")
    show(name, alone, beside)


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=10, help="for each load (default 10)")
    parser.add_argument("--pause", type=float, action="append", help="seconds between two requests (default: 0.004, then 0.05)")
    parser.add_argument("--load", choices=LOADS, action="append", help="default: all")
    parser.add_argument("--unlimited", action="store_true", help="the load has no quota of requests per second instead of the default one")
    return parser.parse_args()


def main():
    options = read_options()
    daemon = Daemon(env=WARM).start()
    try:
        with daemon.client() as admin:
            make_tenant(admin, "loud", quotas={"requests_per_second": 0} if options.unlimited else {})
            make_tenant(admin, "quiet", quotas={"requests_per_second": 0})
            loud, quiet = make_key(admin, "loud"), KeyClient(daemon.socket, make_key(admin, "quiet"))
            for pause in options.pause or PAUSES:
                measure(quiet, 2, pause)
                print(f"a request every {pause * 1e3:g} ms")
                print(f"{'beside':22} {'n':>5} {'p50 alone':>9} {'p50':>8} {'p90 alone':>9} {'p90':>8} {'times':>6} {'pooled':>7}")
                for name in options.load or LOADS:
                    compare(daemon, admin, quiet, loud, name, options.seconds, pause)
            quiet.close()
        daemon.stop()
    finally:
        daemon.remove()


if __name__ == "__main__":
    main()
