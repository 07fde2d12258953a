#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""make bench: Millibox beside its peers, in one run on one machine.

Prints Markdown tables, writes JSON and plots to bench/results/. A wrong answer anywhere makes the
whole run a failure.
"""

import argparse
import contextlib
import datetime
import json
import os
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import peers  # noqa: E402
import plot  # noqa: E402
import rows_cost  # noqa: E402
import rows_egress  # noqa: E402
import rows_fresh  # noqa: E402
import rows_gateway  # noqa: E402
import rows_javascript  # noqa: E402
import rows_mcp  # noqa: E402
import rows_session  # noqa: E402
import verdict  # noqa: E402
from measure import Failure  # noqa: E402
from support.daemon import ROOT, Daemon  # noqa: E402


def say(text):
    print(text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def running(**settings):
    daemon = Daemon(**settings).start()
    try:
        yield daemon
        daemon.stop()
    finally:
        daemon.remove()


def daemons():
    """Daemons as shipped; without pools; without pools and zygotes, as boxes with an imported root are."""
    on, off = "true", "false"
    pooled, single, cold = (
        running(tcp=True, env={"MILLIBOX_POOLS_ENABLED": pools, "MILLIBOX_ZYGOTES_ENABLED": zygotes})
        for pools, zygotes in ((on, on), (off, on), (off, off))
    )
    return pooled, single, cold


def measure(args):
    results = {"when": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), "host": peers.versions()}
    shipped, without_pools, without_both = daemons()
    with shipped as pooled, without_pools as single, without_both as cold, tempfile.TemporaryDirectory(prefix="mbxbench-") as home:
        say(f"fresh boxes and peers, {args.rounds} rounds ...")
        places = {"millibox": pooled.socket, "millibox, empty pool": single.socket, "millibox, cold": cold.socket}
        results["peers"] = rows_fresh.row_peers(places, pathlib.Path(home), args.rounds)
        say("fresh boxes alone ...")
        results["pooled"] = rows_fresh.row_alone(pooled.socket)
        results["on_demand"] = rows_fresh.row_alone(single.socket)
        results["cold"] = rows_fresh.row_alone(cold.socket, rounds=200)
        results["shell"] = rows_fresh.row_shell(cold.socket)
        say("throughput, bursts, saturation ...")
        results["throughput"] = rows_fresh.row_throughput(pooled.socket)
        results["burst"] = rows_fresh.row_burst(pooled.socket)
        results["saturated"] = rows_fresh.row_saturated(pooled.socket, args.saturate)
        results["pandas"] = rows_fresh.row_pandas(pooled.socket)
        results["javascript"] = rows_javascript.row_javascript(pooled)
        time.sleep(2)  # until the pools are full again
        results["memory"] = rows_cost.row_memory(pooled)
        say("programs inside and outside, files ...")
        results["inside"] = rows_cost.row_inside()
        results["files"] = rows_cost.row_files(pooled)
        say(f"sessions, {args.sessions} ...")
        results["session"] = rows_session.row_session(single, many=args.sessions)
        say("tools beside REST ...")
        results["mcp"] = rows_mcp.row_mcp(single)
        say(f"{args.boxes} boxes ...")
        results["many"] = rows_cost.row_many(single, args.boxes, 16)
    say("proxy of boxes ...")
    results["egress"] = rows_egress.row_egress()
    say("tools of MCP servers ...")
    results["gateway"] = rows_gateway.row_gateway()
    say("daemon start ...")
    results["start"] = rows_cost.row_start()
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60, help="rounds of the interleaved comparison")
    parser.add_argument("--boxes", type=int, default=10000, help="boxes of the leak test")
    parser.add_argument("--sessions", type=int, default=1000, help="live sessions beside the one that is measured")
    parser.add_argument("--saturate", type=int, default=60, help="seconds of saturation")
    parser.add_argument("--out", default=str(ROOT / "bench" / "results"), help="where JSON and plots go")
    args = parser.parse_args()
    start = time.monotonic()
    try:
        results = measure(args)
    except Failure as e:
        say(f"bench failed: {e}")
        return 1
    results["took_s"] = round(time.monotonic() - start)
    out = pathlib.Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{datetime.datetime.now():%Y%m%d-%H%M%S}.json"
    path.write_text(json.dumps(results, indent=1))
    print(verdict.rows_table(results), verdict.peers_table(results), verdict.programs_table(results), sep="\n\n")
    host = results["host"]
    print(f"\n{host['cpu']}, {host['cores']} cores, Linux {host['kernel']}, {host.get('python3', '')}; `make bench`, {results['when']}, {results['took_s']} s")
    say(f"written: {os.path.relpath(path)} " + " ".join(os.path.relpath(p) for p in plot.draw(results, out)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
