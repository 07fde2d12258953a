# SPDX-License-Identifier: Apache-2.0
"""Grades 100 submissions, each in a fresh box, a few at a time. None sees answers, others or the grader."""

import asyncio
import collections
import random

import millibox

#: Inputs and answers stay outside: a box gets one input only.
CASES = [("3 4", "7"), ("-1 1", "0"), ("1000000 1", "1000001")]

KINDS = {
    "right": "a, b = map(int, input().split()); print(a + b)",
    "wrong": "a, b = map(int, input().split()); print(a - b)",
    "crashes": "raise RuntimeError('no idea')",
    "endless": "while True: pass",
    "greedy": "x = bytearray(1 << 30); print(7)",
    "cheats": "print(open('/proc/1/cwd/answers').read())",
    "forks": "import os\nwhile True: os.fork()",
    "floods": "while True: print('x' * 1000)",
}


def make_submissions(count=100):
    """Most are right; the rest are what graders meet."""
    numbers = random.Random(7)
    others = [kind for kind in KINDS if kind != "right"]
    return [(f"student{i:03}", "right" if i % 2 else numbers.choice(others)) for i in range(count)]


def judge(result, expected):
    if result.ok and not result.limit:
        return "passed" if result.stdout.strip() == expected else "wrong answer"
    if result.limit:
        return f"{result.limit} limit"
    return f"failed: {result.error.name if result.error else result.exit_code}"


async def grade(client, turns, name, kind):
    verdicts = []
    for given, expected in CASES:
        async with turns:
            result = await client.run_code(
                KINDS[kind], stdin=given, timeout=1, memory="64Mi", max_processes=16, max_output="64Ki"
            )
        verdicts.append(judge(result, expected))
        if verdicts[-1] != "passed":
            break
    return name, kind, verdicts[-1]


async def main():
    turns = asyncio.Semaphore(8)
    async with millibox.AsyncClient() as client:
        graded = await asyncio.gather(*(grade(client, turns, *each) for each in make_submissions()))
    for (kind, verdict), count in sorted(collections.Counter((kind, verdict) for _, kind, verdict in graded).items()):
        print(f"{count:3} {kind:8} {verdict}")
    passed = [name for name, _, verdict in graded if verdict == "passed"]
    print(f"{len(passed)} of {len(graded)} passed")


if __name__ == "__main__":
    asyncio.run(main())
