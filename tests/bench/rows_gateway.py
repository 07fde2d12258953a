# SPDX-License-Identifier: Apache-2.0
"""What a call of a tool costs through the gateway beyond the same call to the same server without one: a program in a box
against a program that has the server's pipes. Run alone: PYTHONPATH=tests python3 tests/bench/rows_gateway.py"""

import json
import subprocess
import sys

from measure import Failure, summary
from support.gateway import SPEAK, TOY, Gateway

#: Prints how long each call took, in milliseconds.
TIMED = """
import time
samples = []
for i in range(%d + 50):
    start = time.perf_counter()
    answer = call("t%%d" %% i)
    samples.append((time.perf_counter() - start) * 1000)
    assert answer["result"]["content"][0]["text"] == "t%%d" %% i, answer
print(json.dumps(samples[50:]))
"""
INSIDE = SPEAK + 'call = lambda text: ask("toy", "echo", {"text": text})\n' + TIMED
OUTSIDE = (
    """
import json, subprocess, sys
toy = subprocess.Popen([sys.executable, sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def call(text):
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": text}}}
    toy.stdin.write(json.dumps(message).encode() + b"\\n")
    toy.stdin.flush()
    return json.loads(toy.stdout.readline())
"""
    + TIMED
    + "toy.stdin.close()\ntoy.wait()\n"
)


def direct(rounds):
    done = subprocess.run(["/usr/bin/python3", "-c", OUTSIDE % rounds, TOY], capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise Failure(done.stderr[-300:])
    return json.loads(done.stdout)


def row_gateway(rounds=2000, turns=4):
    inside, outside = [], []
    with Gateway({"toy": "toy"}) as gateway:
        gateway.ask("toy", "echo", {"text": "warm"})
        for _ in range(turns):
            outside += direct(rounds // turns)
            inside += gateway.value(INSIDE % (rounds // turns), timeout=120)
    found = {"in a box": summary(inside), "direct": summary(outside)}
    return {"in_turns": found, "overhead_ms": round(found["in a box"]["p50_ms"] - found["direct"]["p50_ms"], 3)}


if __name__ == "__main__":
    print(json.dumps(row_gateway(*map(int, sys.argv[1:])), indent=1))
