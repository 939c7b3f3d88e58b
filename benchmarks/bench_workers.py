"""CPU per page and pages per second by worker processes: main process, each other one, web server apart.

usage: python -m benchmarks.bench_workers --web DIR [--workers 0,1,2] [--repeat 3] [--concurrency 100] [--cores 0,1]

Work: as in bench_pages, everything on. All processes share the cores given; the server is on the first. A run of one
page is the cost of the start; figures per page are printed with it and without. CPU of a process is read from /proc
every 20 ms while it runs, so the last of a worker is missed by that much at most.
"""

import argparse
import os
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import bench_pages, measure, plainweb, report
from tools.system import cpu_s

EVERY_S = 0.02


class Watch(threading.Thread):
    """Reads the CPU of a program's workers until it has ended."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.workers: dict[int, float] = {}
        self._pid = pid
        self._over = threading.Event()

    def run(self) -> None:
        """Look again and again."""
        while not self._over.wait(EVERY_S):
            for child in measure.children(self._pid):
                self.workers[child] = max(cpu_s(child), self.workers.get(child, 0.0))

    def stop(self) -> list[float]:
        """Seconds of each worker, the busiest first."""
        self._over.set()
        self.join()
        return sorted(self.workers.values(), reverse=True)


def once(
    web: plainweb.PlainWeb, args: argparse.Namespace, workers: str, folder: Path, limit: int = 0
) -> dict[str, Any]:
    """One crawl; `limit` pages, or all."""
    out = folder / "out"
    extra = ["--workers", workers, *(("--max-pages", str(limit)) if limit else ())]
    command = bench_pages.nephila(web, args.nephila.split(), args.concurrency, extra).command(out)
    servers = args.server_pids or measure.named("nginx")
    served = sum(map(cpu_s, servers))
    started = time.monotonic()
    process = measure.start(["taskset", "-c", args.cores, *command], measure.cores()[0], log=folder / "log")
    watch = Watch(process.pid)
    watch.start()
    cost = measure.wait(process, started)
    each = watch.stop()
    urls = bench_pages.stored_urls(out)
    wanted = limit or len(web.urls)
    if cost.code or len(urls) != wanted or not set(urls) <= web.urls:
        tail = (folder / "log").read_text(errors="replace")[-500:]
        raise SystemExit(f"--workers {workers}: exit {cost.code}, {len(urls)} of {wanted} pages: {tail}")
    shutil.rmtree(out)
    return {
        "workers": workers,
        "pages": len(urls),
        "wall_s": cost.wall_s,
        "cpu_s": cost.cpu_s,
        "main_s": cost.cpu_s - sum(each),
        "workers_s": each,
        "server_s": sum(map(cpu_s, servers)) - served,
    }


def summary(runs: list[dict[str, Any]], starts: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each number of workers, medians of its runs."""
    rows = []
    for workers, start in starts.items():
        of = [run for run in runs if run["workers"] == workers]
        pages = of[0]["pages"]

        def per_page(name: str, less: float = 0.0, of: list[dict[str, Any]] = of, pages: int = pages) -> float:
            return float(round((median(run[name] for run in of) - less) / pages * 1000, 4))

        rows.append(
            {
                "workers": workers,
                "cpu_ms": per_page("cpu_s"),
                "cpu_ms_without_start": per_page("cpu_s", start["cpu_s"]),
                "main_ms": per_page("main_s"),
                "main_ms_without_start": per_page("main_s", start["main_s"]),
                "each_worker_ms": [
                    round(median(of_one) / pages * 1000, 4)
                    for of_one in zip(*(run["workers_s"] for run in of), strict=False)
                ],
                "server_ms": per_page("server_s"),
                "pages_per_s": round(median(pages / run["wall_s"] for run in of), 1),
                "start_cpu_s": round(start["cpu_s"], 3),
            }
        )
    return rows


def print_table(rows: list[dict[str, Any]]) -> None:
    """The table, with the ratios to the first row."""
    first = rows[0]
    head = (
        "workers",
        "CPU-ms/page",
        "x",
        "without start",
        "x",
        "main",
        "w/o start",
        "workers",
        "server",
        "pages/s",
        "x",
    )
    print(
        report.table(
            head,
            [
                (
                    row["workers"],
                    row["cpu_ms"],
                    f"{row['cpu_ms'] / first['cpu_ms']:.2f}",
                    row["cpu_ms_without_start"],
                    f"{row['cpu_ms_without_start'] / first['cpu_ms_without_start']:.2f}",
                    row["main_ms"],
                    row["main_ms_without_start"],
                    " ".join(str(each) for each in row["each_worker_ms"]),
                    row["server_ms"],
                    row["pages_per_s"],
                    f"{row['pages_per_s'] / first['pages_per_s']:.2f}",
                )
                for row in rows
            ],
        )
    )


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    options = argparse.ArgumentParser(
        prog="benchmarks.bench_workers", description="What worker processes cost and gain."
    )
    options.add_argument("--web", type=Path, required=True, help="a plain web (python -m benchmarks.web.plain DIR)")
    options.add_argument("--workers", default="0,1,2", help="numbers of workers")
    options.add_argument("--repeat", type=int, default=3)
    options.add_argument("--concurrency", type=int, default=100)
    options.add_argument("--cores", default=",".join(map(str, sorted(os.sched_getaffinity(0)))), help="cores to run on")
    options.add_argument("--nephila", default=f"{sys.executable} -m nephila", help="how nephila is called")
    options.add_argument("--save", action="store_true", help="write the raw result")
    args = options.parse_args(argv)
    web = plainweb.read(args.web)
    counts = args.workers.split(",")
    runs: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name, plainweb.Serving(web, Path(name) / "server") as server:
        folder = Path(name)
        args.server_pids = [server.pid] if server.pid else []
        starts = {count: once(web, args, count, folder, limit=1) for count in counts}
        for _ in range(args.repeat):
            for count in counts:
                runs.append(run := once(web, args, count, folder))
                per_page = 1000 / run["pages"]
                print(
                    f"  --workers {count}: {run['cpu_s'] * per_page:.3f} CPU-ms/page, main"
                    f" {run['main_s'] * per_page:.3f}, {run['pages'] / run['wall_s']:.0f} pages/s",
                    file=sys.stderr,
                    flush=True,
                )
        kind = server.kind
    rows = summary(runs, starts)
    print_table(rows)
    if args.save:
        data = {"concurrency": args.concurrency, "cores": args.cores, "server": kind}
        path = report.save("workers", {**data, "rows": rows, "runs": runs, "starts": list(starts.values())})
        print(f"raw: benchmarks/results/{path.name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
