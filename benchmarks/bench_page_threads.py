"""Pages per second and CPU per page by the number of page threads, on all cores, with the server on them too.

usage: python -m benchmarks.bench_page_threads [bench,small] [--threads 1 2 4] [--repeat 3] [--plot FILE.svg] [--save]

The shapes: benchmarks/web/shapes.py. The numbers of threads run in turn; medians are printed. CPU is that of the
crawler with its start, threads included. Wall time is that of a machine without other load, or nothing.
"""

import argparse
import os
import shutil
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import bench_pages, measure, report
from benchmarks.bench_shapes import ROOT, Program, Serving, environment, options, write_bytecode
from benchmarks.web.shapes import SHAPES

THREADS = "NEPHILA_DOWNLOADER__PAGE_THREADS"
COLUMNS = ("shape", "threads", "runs", "pages_per_s", "cpu_ms_per_page", "lowest_ms", "peak_rss_mb", "wrong")


def once(serving: Serving, folder: Path, threads: int) -> dict[str, Any]:
    """One crawl."""
    out, shape = folder / "out", serving.shape
    command = [*Program("here", ROOT).command, *options(shape, serving.port, 0, []), "--out", str(out)]
    cores = ",".join(map(str, sorted(os.sched_getaffinity(0))))
    started = time.monotonic()
    env = environment(serving) | {THREADS: str(threads)}
    process = measure.start(["taskset", "-c", cores, *command], measure.cores()[1], log=folder / "log", env=env)
    cost = measure.wait(process, started)
    urls = bench_pages.stored_urls(out)
    shutil.rmtree(out)  # the next run would be refused, and the pages of this one counted as its own
    return {
        "shape": shape.name,
        "threads": threads,
        "pages_per_s": len(urls) / cost.wall_s,
        "cpu_ms_per_page": cost.per_page(len(urls)),
        "peak_rss_mb": cost.peak_rss_mb,
        "wrong": abs(shape.crawled - len(set(urls))) + len(urls) - len(set(urls)),
        "load": os.getloadavg()[0],
    }


def summary(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each shape and number of threads."""
    rows = []
    for shape, threads in dict.fromkeys((run["shape"], run["threads"]) for run in runs):
        of = [run for run in runs if (run["shape"], run["threads"]) == (shape, threads)]
        rows.append(
            {
                "shape": shape,
                "threads": threads,
                "runs": len(of),
                "pages_per_s": round(median(run["pages_per_s"] for run in of)),
                "cpu_ms_per_page": round(median(run["cpu_ms_per_page"] for run in of), 3),
                "lowest_ms": round(min(run["cpu_ms_per_page"] for run in of), 3),
                "peak_rss_mb": round(max(run["peak_rss_mb"] for run in of)),
                "wrong": sum(run["wrong"] for run in of),
            }
        )
    return rows


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Pages per second, and CPU per page, by threads."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "nephila"
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8.5, 3.6))
    for shape in dict.fromkeys(row["shape"] for row in rows):
        of = [row for row in rows if row["shape"] == shape]
        threads = [row["threads"] for row in of]
        for axis, key in zip(axes, ("pages_per_s", "cpu_ms_per_page"), strict=True):
            axis.plot(threads, [row[key] for row in of], "o-", label=f"{shape}, {SHAPES[shape].size / 1000:g} KB")
            axis.set_xticks(threads)
    for axis, title in zip(axes, ("pages/s", "CPU-ms per page, start included"), strict=True):
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("page threads", fontsize=8)
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize=8, frameon=False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main(argv: list[str] | None = None) -> int:
    """The command line; exit 1 when a run did not get exactly its pages."""
    parser = argparse.ArgumentParser(prog="benchmarks.bench_page_threads", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("shapes", nargs="?", default="bench,small")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--plot", type=Path, help="write a plot as SVG")
    parser.add_argument("--save", action="store_true", help="write the raw result")
    args = parser.parse_args(argv)
    runs: list[dict[str, Any]] = []
    for name in args.shapes.split(","):
        with tempfile.TemporaryDirectory() as folder, Serving(SHAPES[name], Path(folder)) as serving:
            write_bytecode(Program("here", ROOT), serving, Path(folder))
            for number in range(args.repeat):
                order = args.threads[:: -1 if number % 2 else 1]
                runs.extend(once(serving, Path(folder), threads) for threads in order)
    rows = sorted(summary(runs), key=lambda row: (row["shape"], row["threads"]))
    print(report.table(list(COLUMNS), [[row[key] for key in COLUMNS] for row in rows]))
    print(f"load of the machine: {min(run['load'] for run in runs):.1f} to {max(run['load'] for run in runs):.1f}")
    if args.save:
        path = report.save("page-threads", {"rows": rows, "runs": runs})
        print(f"raw: benchmarks/results/{path.name}")
    if args.plot:
        draw(rows, args.plot)
    return int(any(row["wrong"] for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
