#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""make bench: what it costs, beside what the reader could use instead, in one run on one machine.

Writes JSON to bench/results/ and prints a Markdown table. A wrong answer anywhere makes the whole
run a failure: speed of wrong answers is not reported.
"""

import argparse
import datetime
import json
import os
import pathlib
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import peers  # noqa: E402
from measure import Failure, command, interleave, percentile, summary, timed  # noqa: E402
from support import host  # noqa: E402
from support.daemon import ROOT, Daemon  # noqa: E402
from support.sessions import Session  # noqa: E402

def say(text):
    print(text, file=sys.stderr, flush=True)


def execution(client, language, code, expect):
    def run():
        result = client.execute(language, code)
        if result["stdout"] != expect or result["status"] != "success":
            raise Failure(f"{language}: {result}")

    return run


def row_cold(daemon, home, rounds):
    """Row 6 and the cold path: a fresh box against bare python3 and the peers."""
    absent, contestants = {}, {}
    with daemon.client() as c:
        contestants["millibox"] = execution(c, "python", "print(42)", "42\n")
        contestants["millibox shell true"] = execution(c, "shell", "true", "")
        for name, make in peers.PEERS.items():
            try:
                run = command(make(home), "42\n")
                run()
                contestants[name] = run
            except (peers.Absent, Failure) as e:
                absent[name] = str(e)
        samples = interleave({n: f for n, f in contestants.items() if n not in ("runsc",)}, rounds)
        if "runsc" in contestants:
            samples.update(interleave({"runsc": contestants["runsc"]}, max(5, rounds // 10), warm=1))
        try:
            with peers.dockerd(home) as sock:
                samples.update(interleave({"docker run": command(peers.docker(home, sock), "42\n")}, max(5, rounds // 10), warm=1))
        except (peers.Absent, Failure) as e:
            absent["docker run"] = str(e)
    return {"samples": {n: summary(s) for n, s in samples.items()}, "absent": absent}


def row_shell(daemon, rounds=300, warm=20):
    """The cold path with next to nothing at its end: `true` in a fresh box, one after another."""
    with daemon.client() as c:
        run = execution(c, "shell", "true", "")
        return summary([timed(run) for _ in range(rounds + warm)][warm:])


def row_start(rounds=10):
    """Row 9: from exec of the daemon to its first answer, and its own memory."""
    first, memory = [], []
    for _ in range(rounds):
        d = Daemon()
        start = time.perf_counter()
        d.start(ready=False)
        while True:
            try:
                with d.client() as c:
                    if c.get("/healthz").status == 200:
                        break
            except OSError:
                time.sleep(0.0005)
        first.append((time.perf_counter() - start) * 1000)
        memory.append(host.rss_kib(d.pid) / 1024)
        d.stop()
        d.remove()
    return {"first_answer": summary(first), "memory_mib": round(percentile(memory, 50), 1)}


CPU = "import time\nt=time.perf_counter()\nn=0\nfor i in range(4_000_000): n+=i*i\nprint(time.perf_counter()-t)"
# A call that does nothing shows the filter alone; opening, reading and closing a file is what
# programs bound by system calls do.
NOTHING = "import os,time\nt=time.perf_counter()\nfor i in range(300_000): os.getppid()\nprint(time.perf_counter()-t)"
FILES = "import os,time\nt=time.perf_counter()\nfor i in range(60_000):\n  f=os.open('/etc/passwd',0); os.fstat(f); os.read(f,4096); os.close(f)\nprint(time.perf_counter()-t)"
INSIDE = {"cpu": CPU, "syscall": FILES, "nothing": NOTHING}


def row_inside(daemon, rounds=9):
    """Row 10: the same program inside and outside, timed by itself, interleaved."""
    import subprocess

    found = {}
    with daemon.client() as c:
        for name, code in INSIDE.items():
            inside, outside = [], []
            for _ in range(rounds):
                outside.append(float(subprocess.run(["/usr/bin/python3", "-c", code], capture_output=True, check=True).stdout))
                inside.append(float(c.python(code)["stdout"]))
            found[name] = {
                "inside_s": round(min(inside), 4), "outside_s": round(min(outside), 4),
                "slower_percent": round((min(inside) / min(outside) - 1) * 100, 1),
            }  # fmt: skip
    return found


def count_up(session, rounds, warm=20):
    """x += 1, over and over, each answer checked. Return: ms of each after the first few."""
    session.run("x = 0")
    samples = []
    for i in range(1, rounds + warm + 1):
        start = time.perf_counter()
        result = session.run("x += 1\nx")
        samples.append((time.perf_counter() - start) * 1000)
        if result["result"] != i:
            raise Failure(f"{i} in a session: {result}")
    return samples[warm:]


def row_session(daemon, rounds=500, many=200):
    """Rows 5 and 8: one line in a live Python session over a kept connection; alone, and beside others."""
    with daemon.client() as c:
        sessions = [Session(c, mode="persistent")]
        alone = count_up(sessions[0], rounds)
        sessions += [Session(c, mode="persistent") for _ in range(many)]
        for session in sessions:
            session.run("y = 1")
        beside = count_up(sessions[many // 2], rounds)
        for session in sessions:
            if c.request("DELETE", session.path).status >= 300:
                raise Failure(f"delete {session.id}")
    daemon.settle(60)
    return {"alone": summary(alone), "many": many, "beside": summary(beside)}


def row_many(daemon, count, parallel):
    """Row 13: many boxes, one after another and @parallel at a time; all right, nothing left."""
    def look():
        """Mounts, groups, processes (and so namespaces), descriptors of both programs, files."""
        return (
            len(host.mounts()), daemon.groups(), host.strays(Daemon.instances), host.fd_count(daemon.pid),
            host.fd_count(daemon.engine_pid), sorted(str(p) for p in daemon.home.rglob("*")),
        )  # fmt: skip

    daemon.settle()
    before = look()
    memory = []
    found = {"boxes": count, "parallel": parallel}
    wrong = []

    def work(share):
        with daemon.client() as c:
            for i in range(share):
                if c.shell(f"echo {i}")["stdout"] != f"{i}\n":
                    wrong.append(i)

    memory.append(host.rss_kib(daemon.pid))
    found["one_after_another_s"] = round(timed(lambda: work(count)) / 1000, 2)
    memory.append(host.rss_kib(daemon.pid))

    def all_at_once():
        threads = [threading.Thread(target=work, args=(count // parallel,)) for _ in range(parallel)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()

    found["at_a_time_s"] = round(timed(all_at_once) / 1000, 2)
    daemon.settle()
    memory.append(host.rss_kib(daemon.pid))
    after = look()
    found.update(
        per_second_sequential=round(count / found["one_after_another_s"]),
        per_second_parallel=round(count / found["at_a_time_s"]),
        daemon_rss_kib=memory,
        left_behind=0 if before == after else f"{before} -> {after}",
    )
    if wrong or before != after:
        raise Failure(f"wrong answers: {len(wrong)}, host before and after: {before} {after}")
    return found


def compared(peer, us):
    return f"{peer / us:.1f}x faster" if peer >= us else f"{us / peer:.1f}x slower"


def table(results):
    cold = results["cold"]["samples"]
    base, us = cold["bare python3"]["p50_ms"], cold["millibox"]["p50_ms"]
    lines = ["| what | p50 ms | p90 ms | p99 ms | against bare python3 | Millibox is |", "| --- | --- | --- | --- | --- | --- |"]
    for name, s in sorted(cold.items(), key=lambda item: item[1]["p50_ms"]):
        times = compared(s["p50_ms"], us) if not name.startswith("millibox") else ""
        lines.append(f"| {name} | {s['p50_ms']:.2f} | {s['p90_ms']:.2f} | {s['p99_ms']:.2f} | {s['p50_ms'] / base:.2f}x | {times} |")
    for name, why in results["cold"]["absent"].items():
        lines.append(f"| {name} | not measured: {why[:80]} | | | | |")
    start, inside, many, session = results["start"], results["inside"], results["many"], results["session"]
    lines += [
        "",
        "| what | measured |",
        "| --- | --- |",
        f"| `true` in a fresh box, one after another, p50 / p99 | {results['shell']['p50_ms']:.2f} / {results['shell']['p99_ms']:.2f} ms |",
        f"| a line in a live Python session, p50 / p99 | {session['alone']['p50_ms']:.2f} / {session['alone']['p99_ms']:.2f} ms |",
        f"| the same beside {session['many']} other live sessions | {session['beside']['p50_ms']:.2f} / {session['beside']['p99_ms']:.2f} ms |",
        f"| daemon start to first answer, p50 | {start['first_answer']['p50_ms']:.1f} ms |",
        f"| daemon's own memory | {start['memory_mib']} MiB |",
        f"| CPU-bound program inside against outside | {inside['cpu']['slower_percent']:+.1f} % |",
        f"| system-call-bound program (files) inside against outside | {inside['syscall']['slower_percent']:+.1f} % |",
        f"| a system call that does nothing, inside against outside | {inside['nothing']['slower_percent']:+.1f} % |",
        f"| boxes per second, one after another / {many['parallel']} at a time | {many['per_second_sequential']} / {many['per_second_parallel']} |",
        f"| left behind after {2 * many['boxes']} boxes (processes, namespaces, mounts, cgroups, descriptors, files) | {many['left_behind']} |",
    ]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60, help="rounds of the interleaved comparison")
    parser.add_argument("--boxes", type=int, default=5000, help="boxes of each half of the leak test")
    parser.add_argument("--out", default=str(ROOT / "bench" / "results"), help="where the JSON goes")
    args = parser.parse_args()
    daemon = Daemon().start()
    results = {"when": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), "host": peers.versions()}
    try:
        with tempfile.TemporaryDirectory(prefix="mbxbench-") as home:
            say(f"cold path and peers, {args.rounds} rounds ...")
            results["cold"] = row_cold(daemon, pathlib.Path(home), args.rounds)
        results["shell"] = row_shell(daemon)
        say("programs inside and outside ...")
        results["inside"] = row_inside(daemon)
        say("sessions ...")
        results["session"] = row_session(daemon)
        say(f"{2 * args.boxes} boxes ...")
        results["many"] = row_many(daemon, args.boxes, 16)
        daemon.stop()
        say("daemon start ...")
        results["start"] = row_start()
    except Failure as e:
        say(f"bench failed: {e}")
        return 1
    finally:
        daemon.remove()
    out = pathlib.Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{datetime.datetime.now():%Y%m%d-%H%M%S}.json"
    path.write_text(json.dumps(results, indent=1))
    print(table(results))
    host_ = results["host"]
    print(f"\n{host_['cpu']}, {host_['cores']} cores, Linux {host_['kernel']}, {host_.get('python3', '')}; `make bench`, {results['when']}")
    say(f"written: {os.path.relpath(path)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
