#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""make bench-compare: compare two runs, by default the last two of bench/results."""

import argparse
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import verdict  # noqa: E402

RESULTS = pathlib.Path(__file__).resolve().parents[2] / "bench" / "results"


def load(path):
    try:
        return json.loads(pathlib.Path(path).read_text())
    except (OSError, ValueError) as e:
        sys.exit(f"bench-compare: {path}: {e}")


def change(before, after):
    return f"{(after / before - 1) * 100:+.0f} %" if before else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="*", help="the JSON of two runs, the older first")
    args = parser.parse_args()
    runs = args.runs or sorted(str(p) for p in RESULTS.glob("*.json"))[-2:]
    if len(runs) != 2:
        sys.exit(f"bench-compare: needs two runs, has {len(runs)}: run 'make bench' first, or name them")
    a, b = (load(run) for run in runs)
    if a["host"] != b["host"]:
        print("Not the same machine or versions: compare ratios only.\n")
    print(f"| # | what | {a['when']} | {b['when']} |\n| --- | --- | --- | --- |")
    for before, after in zip(verdict.judge(a), verdict.judge(b)):
        print(f"| {before[0]} | {before[1]} | {before[4]} {before[5]} | {after[4]} {after[5]} |")
    print("\n| in turns, p50 ms | before | after | |\n| --- | --- | --- | --- |")
    before, after = a["peers"]["samples"], b["peers"]["samples"]
    for name in before:
        if name in after:
            x, y = before[name]["p50_ms"], after[name]["p50_ms"]
            print(f"| {name} | {x:.2f} | {y:.2f} | {change(x, y)} |")


if __name__ == "__main__":
    main()
