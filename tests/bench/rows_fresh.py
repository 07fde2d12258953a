# SPDX-License-Identifier: Apache-2.0
"""Rows about fresh boxes: 1, 2, 3, 4, 6, 12, and what a saturated machine does."""

import time

import peers
import raw
from measure import Failure, command, interleave, percentile, summary, timed

PRINT_42 = raw.execution("python", "print(42)")
TRUE = raw.execution("shell", "true")
ANSWER = b'"stdout":"42\\n"'
SUCCESS = b'"status":"success"'


def caller(address, data, part):
    connection = raw.Connection(address)
    return lambda: connection.expect(data, part)


def row_peers(places, home, rounds):
    """Rows 1 and 6: a fresh box, pooled and made on demand, between bare python3 and the peers.

    Each round runs everyone once, so a noisy moment hits them all; what the others leave in the
    caches is part of it. @places: {name: address} of daemons.
    """
    contestants = {name: caller(address, PRINT_42, ANSWER) for name, address in places.items()}
    contestants |= {f"{name}, shell true": caller(address, TRUE, SUCCESS) for name, address in places.items()}
    absent, slow = {}, {}
    for name, make in peers.PEERS.items():
        try:
            run = command(make(home), "42\n")
            run()
            (slow if name == "runsc" else contestants)[name] = run
        except (peers.Absent, Failure) as e:
            absent[name] = str(e)
    samples = interleave(contestants, rounds)
    samples |= interleave(slow, max(5, rounds // 10), warm=1)
    try:
        with peers.dockerd(home) as sock:
            run = command(peers.docker(home, sock), "42\n")
            samples |= interleave({"docker run": run}, max(5, rounds // 10), warm=1)
    except (peers.Absent, Failure) as e:
        absent["docker run"] = str(e)
    return {"samples": {n: summary(s) for n, s in samples.items()}, "absent": absent}


def row_alone(address, rounds=1000, pause=0.004, warm=50):
    """Rows 1, 2, 3: one fresh box after another over one connection, with a short pause between them in which the pool
    refills."""
    connection = raw.Connection(address)
    samples = []
    for _ in range(rounds + warm):
        samples.append(connection.expect(PRINT_42, ANSWER))
        time.sleep(pause)
    connection.close()
    return summary(samples[warm:]) | {"samples": [round(s, 3) for s in samples[warm:]]}


def row_shell(address, rounds=300, warm=20):
    """`true` in a fresh box, one right after another."""
    run = caller(address, TRUE, SUCCESS)
    return summary([run() for _ in range(rounds + warm)][warm:])


def row_throughput(address, seconds=10, connections=(1, 2, 4, 8, 16, 32, 64)):
    """Row 4: fresh boxes per second with correct answers; 16 connections, and other numbers for the curve."""
    found = {}
    for count in connections:
        span = seconds if count == 16 else 2
        start = time.perf_counter()
        samples = raw.keep_busy(address, count, span, PRINT_42, ANSWER)
        found[str(count)] = summary(samples) | {"per_second": round(len(samples) / (time.perf_counter() - start))}
    return found


def row_burst(address, count=100, rounds=10):
    """Row 12: many at once, until the last answer."""
    samples = []
    for _ in range(rounds):
        samples.append(raw.all_at_once(address, count, PRINT_42, ANSWER))
        time.sleep(0.5)
    return {"count": count, **summary(samples)}


def row_saturated(address, seconds=60, connections=16):
    """All cores busy with fresh boxes: no wrong answer, no long tail, and the daemon still responds."""
    health = raw.Connection(address)
    probe = raw.request("GET", "/healthz")
    delays = []
    samples = raw.keep_busy(
        address, connections, seconds, PRINT_42, ANSWER, each=lambda: delays.append(health.expect(probe, b"ok"))
    )
    health.close()
    found = summary(samples) | {"seconds": seconds, "per_second": round(len(samples) / seconds)}
    return found | {"tail": round(percentile(samples, 99) / percentile(samples, 50), 1), "healthz_max_ms": round(max(delays), 1)}


IMPORT_PANDAS = raw.execution(
    "python", "import time\nt = time.perf_counter()\nimport pandas\nprint((time.perf_counter() - t) * 1000)", template_id="python-datascience")


def row_pandas(address, rounds=20):
    """Pandas in the template: what `import pandas` costs inside a fresh box."""
    connection = raw.Connection(address)
    status, body = connection.exchange(IMPORT_PANDAS)
    if status != 200 or SUCCESS not in body:
        return {"absent": body[:200].decode(errors="replace")}
    import json

    inside, whole = [], []
    for _ in range(rounds):
        time.sleep(0.05)
        whole.append(timed(lambda: inside.append(float(json.loads(connection.exchange(IMPORT_PANDAS)[1])["stdout"]))))
    return {"import": summary(inside), "whole": summary(whole)}
