# SPDX-License-Identifier: Apache-2.0
"""The plots of a run: latency, throughput, memory of a box."""

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams.update({"svg.hashsalt": "millibox", "svg.fonttype": "none", "font.size": 9, "figure.figsize": (6.4, 3.4)})
from matplotlib import pyplot  # noqa: E402


def save(figure, path):
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
    path.write_text("".join(line.rstrip() + "\n" for line in path.read_text().splitlines()))  # no trailing spaces: it is committed


def latency(results, path):
    """Share of executions that took at most so long."""
    figure, axes = pyplot.subplots()
    curves = {
        "line in a live session": results["session"]["beside_few"]["samples"],
        "fresh box, pooled": results["pooled"]["samples"],
        "fresh box, empty pool": results["on_demand"]["samples"],
    }
    for name, samples in curves.items():
        ordered = sorted(samples)
        axes.plot(ordered, [(i + 1) / len(ordered) * 100 for i in range(len(ordered))], label=name)
    for name in ("bare python3", "bwrap"):
        if name in results["peers"]["samples"]:
            p50 = results["peers"]["samples"][name]["p50_ms"]
            axes.axvline(p50, linestyle=":", color="grey")
            axes.text(p50, 50, f" {name}, p50", rotation=90, va="center", color="grey")
    axes.set(xscale="log", xlabel="ms", ylabel="% of executions", title="Latency over REST, kept connection")
    axes.legend(loc="lower right")
    save(figure, path)


def throughput(results, path):
    counts = sorted(results["throughput"], key=int)
    figure, axes = pyplot.subplots()
    axes.plot([int(c) for c in counts], [results["throughput"][c]["per_second"] for c in counts], marker="o")
    axes.set(xscale="log", xlabel="connections", ylabel="fresh boxes per second", title=f"Throughput, {results['host']['cores']} cores")
    axes.set_xticks([int(c) for c in counts], labels=counts)
    axes.set_ylim(bottom=0)
    save(figure, path)


def memory(results, path):
    boxes = results["session"]["growth"]
    if not boxes:
        return False
    figure, axes = pyplot.subplots()
    axes.plot([n for n, _ in boxes], [mib for _, mib in boxes], marker="o")
    axes.set(xlabel="live Python boxes", ylabel="private memory of all, MiB", title="Memory of boxes, agents included")
    axes.set_ylim(bottom=0)
    save(figure, path)
    return True


def draw(results, folder):
    """Return: the files."""
    drawn = []
    for name, plot in {"latency": latency, "throughput": throughput, "memory": memory}.items():
        path = folder / f"{name}.svg"
        if plot(results, path) is not False:
            drawn.append(path)
    return drawn
