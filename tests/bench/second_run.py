#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How much faster the second run of an unchanged compiled program is than the first.

    MILLIBOX_BUILD=build tests/bench/second_run.py [PAIRS]

Writes the table "second runs" of docs/languages.md. A pair is a program that the daemon has not seen, and the same request again; the
languages take turns. Processor time is that of the daemon and all it started, compiler and box included; the clock counts what other work
of the machine delays, too.
"""

import os
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from integration import test_languages as programs  # noqa: E402
from support import host  # noqa: E402
from support.daemon import Daemon  # noqa: E402

LANGUAGES = ("c", "cpp", "go", "rust", "java", "csharp")
TITLES = ("language", "first ms", "second ms", "times faster", "lowest of the pairs", "first, processor ms", "second, processor ms", "times less")
TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")


def processor_ms(root):
    """Of a process, its descendants and those of them that ended."""
    stats = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            words = path.read_text().rsplit(") ", 1)[1].split()
        except OSError:
            continue  # it ended
        stats[int(path.parent.name)] = (int(words[1]), sum(int(word) for word in words[11:15]))

    def belongs(pid):
        while pid in stats and pid != root:
            pid = stats[pid][0]
        return pid == root

    return sum(ticks for pid, (_, ticks) in stats.items() if belongs(pid)) * TICK_MS


def measure(daemon, client, language, files):
    """Clock and processor time of one request, once its boxes are gone."""
    used, begin = processor_ms(daemon.pid), time.perf_counter()
    result = programs.run(client, language, "hello", timeout=120, files=files)
    clock = (time.perf_counter() - begin) * 1000
    assert result["stdout"] == "hello 42\n", result
    host.wait_until(lambda: not daemon.box_pids(), 20, "the boxes are gone")
    return clock, processor_ms(daemon.pid) - used, result["compile"]["cached"]


def row(language, pairs):
    firsts, seconds = zip(*pairs)
    faster = [first[0] / second[0] for first, second in pairs]
    clock, used = ([statistics.median(one[i] for one in runs) for runs in (firsts, seconds)] for i in (0, 1))
    # A run of a few milliseconds may cost no tick: the sum of all has better resolution than their median.
    total = [sum(one[1] for one in runs) for runs in (firsts, seconds)]
    return (language, f"{clock[0]:.0f}", f"{clock[1]:.0f}", f"{statistics.median(faster):.0f}", f"{min(faster):.1f}",
            f"{used[0]:.0f}", f"{total[1] / len(pairs):.0f}", f"{total[0] / max(total[1], TICK_MS):.0f}")  # fmt: skip


def main(count):
    pairs = {language: [] for language in LANGUAGES}
    daemon = Daemon().start()
    try:
        with daemon.client(timeout=300) as client:
            for i in range(count):
                for language in LANGUAGES:
                    files = {**programs.request(language, "hello")["files"], "salt.txt": f"{i} {time.time()}"}
                    first, second = (measure(daemon, client, language, files) for _ in range(2))
                    assert (first[2], second[2]) == (False, True)
                    pairs[language].append((first, second))
    finally:
        daemon.stop()
        daemon.remove()
    rows = [TITLES, ["---"] * len(TITLES), *(row(language, pairs[language]) for language in LANGUAGES)]
    programs.write_block("second runs", ["| " + " | ".join(words) + " |" for words in rows])


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
