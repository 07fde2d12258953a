# SPDX-License-Identifier: Apache-2.0
"""One table: what a run must reach, what it should, and what it measured."""


def compared(peer, us):
    return f"{peer / us:.1f}x faster" if peer >= us else f"{us / peer:.1f}x slower"


class Figures:
    """A run's results under the names that the rows need; KeyError where something was not measured."""

    def __init__(self, results):
        self.r = results
        self.bare = results["peers"]["samples"]["bare python3"]["p50_ms"]

    def peer(self, name):
        return self.r["peers"]["samples"][name]["p50_ms"] / self.pooled()

    def pooled(self):
        return self.r["peers"]["samples"]["millibox"]["p50_ms"]


def at_least(value, must, aim, unit="x faster"):
    return f"{value:.1f}{unit}", value >= must, value >= aim


def at_most(value, must, aim, unit, digits=2):
    return f"{value:.{digits}f}{unit}", value <= must, value <= aim


def both(*parts):
    """Several figures in one row, reached when all are."""
    return " / ".join(p[0] for p in parts), all(p[1] for p in parts), all(p[2] for p in parts)


def against_peers(f):
    found = [("bwrap", 10, 20), ("runsc", 100, 200), ("docker run", 150, 250)]
    return both(*(at_least(f.peer(name), must, aim) for name, must, aim in found if name in f.r["peers"]["samples"]))


def pool_hit(f):
    alone = f.r["pooled"]["p50_ms"]
    times = f.bare / alone
    return f"{alone:.2f} ms, {times:.1f}x faster", times >= 12, times >= 25 and alone <= 0.5


def on_demand(f):
    alone = f.r["on_demand"]["p50_ms"]
    times = f.bare / alone
    return f"{alone:.2f} ms, {times:.1f}x faster", times >= 4, times >= 6 and alone <= 2.2


def javascript(f):
    fresh = (f.r["javascript"] or {})["fresh"]
    times = fresh["bare node"]["p50_ms"] / fresh["millibox"]["p50_ms"]
    text, *line = at_most(f.r["javascript"]["line"]["p50_ms"], 1, 0.5, " ms")
    return f"{fresh['millibox']['p50_ms']:.2f} ms, {times:.1f}x faster / {text}", times > 1 and line[0], times >= 10 and line[1]


def over_rest(f):
    over = f.r["mcp"]["overhead_ms"]
    text, *judged = both(*(at_most(over[k], 0.3, 0.3, " ms") for k in ("http", "websocket")))
    return f"{text} ({over['stdio']:.2f} ms)", *judged


def proxy_cost(f):
    e = f.r["egress"]
    return both(at_most(e["added_ms"], 1, 0.3, " ms"), at_least(e["stream_mb_s"], 500, 1000, " MB/s"), at_most(e["idle_mib"], 20, 20, " MiB", 1))


#: (number, what, must reach, aim, how it is judged)
ROWS = [
    ("1", "fresh isolated Python, `print(42)`, from a pool, p50 against bare `python3 -c`", "12x faster", "25x, ≤ 0.5 ms", pool_hit),
    ("2", "the same: p99", "below bare p50", "≤ 3 ms", lambda f: at_most(f.r["pooled"]["p99_ms"], f.bare, 3, " ms")),
    ("3", "the same with an empty pool, p50", "4x faster", "6x, ≤ 2.2 ms", on_demand),
    ("4", "fresh boxes per second, 16 connections", "400", "1000", lambda f: at_least(f.r["throughput"]["16"]["per_second"], 400, 1000, "/s")),
    ("5", "a line in a live Python session, p50", "≤ 0.5 ms", "≤ 0.25 ms", lambda f: at_most(f.r["session"]["beside_few"]["p50_ms"], 0.5, 0.25, " ms")),
    ("6", "against bubblewrap / runsc / `docker run`", "10x / 100x / 150x", "20x / 200x / 250x", against_peers),
    ("7", "private memory of an idle warm Python box", "≤ 3 MiB", "≤ 1 MiB", lambda f: at_most(f.r["memory"]["private_mib"], 3, 1, " MiB")),
    ("8", "row 5 beside 1,000 live sessions against beside 10", "≤ 1.5x", "≤ 1.1x", lambda f: at_most(f.r["session"]["ratio"], 1.5, 1.1, "x")),
    ("9", "daemon start to first answer / its own memory", "≤ 100 ms / ≤ 25 MiB", "≤ 30 ms / ≤ 10 MiB",
     lambda f: both(at_most(f.r["start"]["first_answer"]["p50_ms"], 100, 30, " ms", 1), at_most(f.r["start"]["memory_mib"], 25, 10, " MiB", 1))),
    ("10", "CPU-bound / system-call-bound program inside against outside", "≤ 2 % / ≤ 10 %", "1 % / 5 %",
     lambda f: both(at_most(f.r["inside"]["cpu"]["slower_percent"], 2, 1, " %", 1), at_most(f.r["inside"]["syscall"]["slower_percent"], 10, 5, " %", 1))),
    ("11", "upload / download of 256 MiB on loopback", "≥ 300 MB/s", "≥ 1 GB/s",
     lambda f: both(*(at_least(f.r["files"][k], 300, 1000, " MB/s") for k in ("upload_mb_s", "download_mb_s")))),
    ("12", "100 fresh boxes asked for at once: all answered", "≤ 300 ms", "≤ 120 ms", lambda f: at_most(f.r["burst"]["p50_ms"], 300, 120, " ms", 0)),
    ("13", "left behind after 10,000 boxes", "0", "0", lambda f: at_most(f.r["many"]["left_behind"], 0, 0, "", 0)),
    ("14", "daemon memory after 10,000 executions against after 1,000", "≤ +5 %", "flat", lambda f: at_most(f.r["many"]["growth_percent"], 5, 1, " %", 1)),
    ("19", "proxy of boxes: added to a request, p50 / a tunnel / 1,000 idle connections", "≤ 1 ms / ≥ 500 MB/s / ≤ 20 MiB", "≤ 0.3 ms / ≥ 1 GB/s", proxy_cost),
    ("16", "fresh JavaScript from a pool against bare `node -e` / a line in a live JavaScript session, p50", "faster / ≤ 1 ms", "10x / ≤ 0.5 ms", javascript),
    ("", "the same as row 1, cold: no pool, no warm interpreter, p50 against bare Python", "≤ 1.5x", "≤ 1x",
     lambda f: at_most(f.r["cold"]["p50_ms"] / f.bare, 1.5, 1, "x")),
    ("", "`true` in a fresh shell, cold, one after another, p50", "≤ 4 ms", "", lambda f: at_most(f.r["shell"]["p50_ms"], 4, 4, " ms")),
    ("", "60 s of saturation: p99 against p50 / slowest `/healthz`", "≤ 10x / ≤ 50 ms", "",
     lambda f: both(at_most(f.r["saturated"]["tail"], 10, 10, "x", 1), at_most(f.r["saturated"]["healthz_max_ms"], 50, 50, " ms", 1))),
    ("", "`import pandas` in a fresh box of a template that has it", "≤ 1 ms", "", lambda f: at_most(f.r["pandas"]["import"]["p50_ms"], 1, 1, " ms")),
    ("", "private memory of a warm box that has pandas against a plain one", "≤ 3x", "", lambda f: at_most(f.r["memory"]["pandas_times"], 3, 3, "x")),
    ("", "a tool called over MCP, p50 beyond the same call over REST: HTTP / WebSocket (stdio, one more process, for information)", "≤ 0.3 ms", "", over_rest),
    ("", "a tool of an outside MCP server called in a box, p50 beyond the same call without a gateway", "≤ 1 ms", "",
     lambda f: at_most(f.r["gateway"]["overhead_ms"], 1, 1, " ms")),
]  # fmt: skip


def judge(results):
    """[(number, what, must, aim, measured, 'aim' | 'reached' | 'missed' | 'not measured')]"""
    figures = Figures(results)
    found = []
    for number, what, must, aim, how in ROWS:
        try:
            text, reached, aimed = how(figures)
            verdict = "aim" if aimed else "reached" if reached else "missed"
        except KeyError as e:
            text, verdict = f"not measured ({e})", "not measured"
        found.append((number, what, must, aim, text, verdict))
    return found


def rows_table(results):
    lines = ["| # | what | must reach | aim | measured | |", "| --- | --- | --- | --- | --- | --- |"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in judge(results)])


def programs_table(results):
    """The part of row 10 that is for information."""
    lines = ["| inside against outside | outside | slower by |", "| --- | --- | --- |"]
    for name, found in results["inside"].items():
        lines.append(f"| {name} | {found['outside_s'] * 1000:.0f} ms | {found['slower_percent']:.1f} % |")
    return "\n".join(lines)


def peers_table(results):
    samples = results["peers"]["samples"]
    base, us = samples["bare python3"]["p50_ms"], samples["millibox"]["p50_ms"]
    lines = ["| in turns | p50 ms | p90 ms | p99 ms | against bare python3 | Millibox is |", "| --- | --- | --- | --- | --- | --- |"]
    for name, s in sorted(samples.items(), key=lambda item: item[1]["p50_ms"]):
        times = "" if name.startswith("millibox") else compared(s["p50_ms"], us)
        lines.append(f"| {name} | {s['p50_ms']:.2f} | {s['p90_ms']:.2f} | {s['p99_ms']:.2f} | {s['p50_ms'] / base:.2f}x | {times} |")
    for name, why in results["peers"]["absent"].items():
        lines.append(f"| {name} | not measured: {' '.join(why.split())[:120].replace('|', '/')} | | | | |")
    return "\n".join(lines)
