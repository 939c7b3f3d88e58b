"""Plots of docs/scale.md from the raw results: CPU of a page by partitions, pages/s by processes, memory by hosts.

usage: python -m benchmarks.plot_scale [--results DIR] [--to docs/growth.svg]

Each panel is a function of the result files that the directory has; a new result is in the next drawing.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks.report import RESULTS

PARTS = ("scheduler", "downloader", "parser", "storage", "broker")
STATES = {"waiting": "one URL waits", "fetched": "page fetched, nothing queued", "denied": "known by robots.txt alone"}


def results(folder: Path, what: str) -> list[dict[str, Any]]:
    """The results of a bench, the oldest first."""
    return [json.loads(path.read_text()) for path in sorted(folder.glob(f"*-{what}.json"))]


def by_partitions(folder: Path) -> dict[tuple[int, float], dict[str, float]]:
    """(partitions, delay) → CPU-ms of a page by part, the newest result of each."""
    return {
        (result["partitions"], result.get("delay_s", 0.0)): {part: result["rows"]["here"][part] for part in PARTS}
        for result in results(folder, "services")
    }


def by_processes(folder: Path) -> dict[str, float]:
    """Number of workers → pages/s, of the newest result."""
    return {row["workers"]: row["pages_per_s"] for row in results(folder, "workers")[-1]["rows"]}


def by_hosts(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """State → (hosts, MB of the process after a snapshot), the newest result of each number."""
    rows: dict[str, dict[int, float]] = {}
    for result in results(folder, "hosts"):
        for name, run in result["runs"].items():
            state, hosts = name.split(":")
            rows.setdefault(state, {})[int(hosts)] = run["after_snapshot"]["rss_mb"]
    return {state: sorted(sizes.items()) for state, sizes in rows.items()}


def draw(folder: Path, path: Path) -> None:
    """The three panels."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "nephila"
    from matplotlib import pyplot as plt

    figure, (partitions, processes, hosts) = plt.subplots(1, 3, figsize=(13, 3.8))
    costs = sorted(by_partitions(folder).items())
    places, below = range(len(costs)), [0.0] * len(costs)
    for part in PARTS:
        values = [cost[part] for _, cost in costs]
        partitions.bar(places, values, 0.5, bottom=below, label=part)
        below = [under + value for under, value in zip(below, values, strict=True)]
    partitions.set_xticks(places, [f"{count}, delay {delay:g} s" for (count, delay), _ in costs], fontsize=8)
    partitions.set_xlim(-1, max(len(costs), 1))
    partitions.set_title("CPU-ms of a page by partitions", fontsize=10)
    partitions.legend(fontsize=8, frameon=False)
    speeds = by_processes(folder)
    processes.bar([f"{name} workers" for name in speeds], list(speeds.values()), 0.5)
    processes.set_title("pages/s by processes, two cores", fontsize=10)
    for state, sizes in by_hosts(folder).items():
        hosts.loglog(*zip(*sizes, strict=True), "o-", label=STATES[state])
    hosts.set_title("MB of the frontier by idle hosts", fontsize=10)
    hosts.legend(fontsize=8, frameon=False)
    for axis in (partitions, processes, hosts):
        axis.grid(alpha=0.3, axis="y")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="benchmarks.plot_scale", description="Plots of docs/scale.md.")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--to", type=Path, default=Path("docs/growth.svg"))
    args = parser.parse_args(argv)
    draw(args.results, args.to)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
