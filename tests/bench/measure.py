# SPDX-License-Identifier: Apache-2.0
"""Timing loops and percentiles. Absolute times of a shared machine mean little: rows are compared
within one run, and rounds of the contestants are interleaved so that a noisy moment hits them all."""

import os
import subprocess
import time


class Failure(Exception):
    """A wrong or missing answer, which fails the run."""


def percentile(samples, p):
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(len(ordered) * p / 100))]


def summary(samples):
    return {
        "n": len(samples),
        "p50_ms": round(percentile(samples, 50), 3),
        "p90_ms": round(percentile(samples, 90), 3),
        "p99_ms": round(percentile(samples, 99), 3),
        "min_ms": round(min(samples), 3),
    }


def timed(fn):
    start = time.perf_counter()
    fn()
    return (time.perf_counter() - start) * 1000


def interleave(contestants, rounds, warm=3):
    """{name: fn} -> {name: [ms]}; every round runs each once."""
    samples = {name: [] for name in contestants}
    for i in range(rounds + warm):
        for name, fn in contestants.items():
            ms = timed(fn)
            if i >= warm:
                samples[name].append(ms)
    return samples


def command(argv, expect, env=None):
    """A contestant that is a program: start it, wait, check its output."""

    def run():
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env or os.environ)
        if done.stdout.decode() != expect:
            output = (done.stderr.strip() or done.stdout.strip()).decode(errors="replace")
            raise Failure(f"exit status {done.returncode}: {output[:300] or 'no output'}")

    return run
