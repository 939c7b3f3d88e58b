"""CPU per page on webs of other shapes than that of bench_pages, as pairs between two checkouts.

usage: python -m benchmarks.bench_shapes [growing,https,https-closing,small,large,polite,bench] [--against DIR]
       [--repeat 5] [--workers 0] [--calls] [--spider BIN] [--save]

Work: as in bench_pages, everything on. The server is pinned to the first core, the crawler to the last (with workers:
to all). `--against DIR` runs another checkout in turn with this one and prints the ratio of each pair; user and system
time of the process tree is compared. `--calls` counts the Python and C calls per page of one more run: a figure that a
busy machine does not change. The shapes: benchmarks/web/shapes.py.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import bench_pages, bench_workers, measure, report
from benchmarks.peers import find
from benchmarks.web.shapes import SHAPES, Pages, Shape, make_certificate

ROOT = Path(__file__).resolve().parents[1]
_PROFILED = """
import cProfile, runpy, sys
profile = cProfile.Profile()
sys.argv[0] = "nephila"
try:
    profile.runcall(runpy.run_module, "nephila", run_name="__main__")
except SystemExit:
    pass
profile.dump_stats({path!r})
"""


@dataclass(frozen=True)
class Program:
    """One checkout."""

    name: str
    root: Path

    @property
    def command(self) -> list[str]:
        """How its nephila is called."""
        return [str(self.root / ".venv/bin/python"), "-m", "nephila"]


class Serving:
    """The server of a shape for the length of a `with` block, on the first core."""

    def __init__(self, shape: Shape, folder: Path) -> None:
        self.shape = shape
        self.authority: Path | None = None
        certificate = Path()
        if shape.scheme == "https":
            certificate, self.authority = make_certificate(folder)
        command = [sys.executable, "-m", "benchmarks.web.shapes", shape.name, "--certificate", str(certificate)]
        core = measure.cores()[0]
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, cwd=ROOT, preexec_fn=lambda: os.sched_setaffinity(0, {core})
        )

    def __enter__(self) -> "Serving":
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()


def options(shape: Shape, port: int, workers: int, extra: list[str]) -> list[str]:
    """The words of the crawl."""
    start = f"{shape.scheme}://h0.bench.test:{port}/p/0.html"
    words = ["crawl", start, "--scope", "any", "--include", r"\.bench\.test", "--ignore-robots", "--allow-private"]
    words += ["--delay", shape.delay, "--concurrency", str(shape.concurrency), "--workers", str(workers)]
    words += ["--host-map", "*.bench.test=127.0.0.1", "--max-pages", str(shape.crawled), "--quiet", *extra]
    return words


def environment(serving: Serving) -> dict[str, str]:
    """The environment of a crawl: the test authority is trusted; many names share the one address."""
    left_out = ("NEPHILA_", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
    env = {key: value for key, value in os.environ.items() if not key.startswith(left_out)}
    for service in ("SCHEDULER", "DOWNLOADER__LIMITS"):
        env |= {f"NEPHILA_{service}__PER_ADDRESS": "0", f"NEPHILA_{service}__ADDRESS_GAP_S": "0"}
    if serving.authority is not None:
        env["SSL_CERT_FILE"] = str(serving.authority)
    return env


def write_bytecode(program: Program, serving: Serving, folder: Path) -> None:
    """One crawl of a page, not measured. Afterwards the bytecode exists, as in an image or after `pip install`."""
    out = folder / "out"
    words = options(serving.shape, serving.port, 0, ["--max-pages", "1"])
    measure.run([*program.command, *words, "--out", str(out)], measure.cores()[1], env=environment(serving))
    shutil.rmtree(out, ignore_errors=True)


def once(program: Program, serving: Serving, folder: Path, workers: int, extra: list[str]) -> dict[str, Any]:
    """One crawl: cost and number of pages."""
    shape = serving.shape
    out, log = folder / "out", folder / "log"
    command = [*program.command, *options(shape, serving.port, workers, extra), "--out", str(out)]
    if workers:
        command = ["taskset", "-c", ",".join(map(str, sorted(os.sched_getaffinity(0)))), *command]
    started = time.monotonic()
    process = measure.start(command, measure.cores()[1], log=log, env=environment(serving))
    watch = bench_workers.Watch(process.pid)
    if workers:
        watch.start()
    cost = measure.wait(process, started)
    each = watch.stop() if workers else []
    urls = bench_pages.stored_urls(out)
    pages = Pages(shape, serving.port)
    known = {pages.url(n) for n in range(shape.pages)} if shape.pages == shape.crawled else set()
    wrong = abs(shape.crawled - len(set(urls))) + len(urls) - len(set(urls)) + (len(known - set(urls)) if known else 0)
    if cost.code or wrong:
        tail = log.read_text(errors="replace")[-600:]
        print(f"{program.name}: exit {cost.code}, {wrong} wrong rows: {tail}", file=sys.stderr)
    shutil.rmtree(out, ignore_errors=True)
    count = max(len(urls), 1)
    return {
        "program": program.name,
        "shape": shape.name,
        "workers": workers,
        "pages": len(urls),
        "wrong": wrong,
        "cpu_ms_per_page": round(cost.per_page(len(urls)), 4),
        "user_ms_per_page": round(cost.cpu_user_s / count * 1000, 4),
        "main_ms_per_page": round((cost.cpu_s - sum(each)) / count * 1000, 4),
        "pages_per_s": round(len(urls) / cost.wall_s, 1),
        "cost": cost.as_json(),
    }


def calls(program: Program, serving: Serving, folder: Path) -> tuple[float, float]:
    """(Python calls, C calls) per page of one run in one process."""
    import pstats

    stats = folder / "stats"
    code = _PROFILED.format(path=str(stats))
    words = [*options(serving.shape, serving.port, 0, []), "--out", str(folder / "out")]
    command = [program.command[0], "-c", code, *words]
    measure.run(command, measure.cores()[1], log=folder / "log", env=environment(serving))
    shutil.rmtree(folder / "out", ignore_errors=True)
    python = c = 0
    loaded: Any = pstats.Stats(str(stats))
    for (file, _, _), row in loaded.stats.items():
        if file == "~":
            c += row[1]
        else:
            python += row[1]
    return python / serving.shape.crawled, c / serving.shape.crawled


def summary(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each shape and program: medians, and the median ratio of the pairs."""
    rows = []
    for shape in dict.fromkeys(run["shape"] for run in runs):
        here = [run for run in runs if run["shape"] == shape and run["program"] == "here"]
        for name in dict.fromkeys(run["program"] for run in runs if run["shape"] == shape):
            of = [run for run in runs if run["shape"] == shape and run["program"] == name]
            pairs = [a["cpu_ms_per_page"] / b["cpu_ms_per_page"] for a, b in zip(here, of, strict=False)]
            row = {"shape": shape, "program": name, "runs": len(of)}
            for key in ("cpu_ms_per_page", "user_ms_per_page", "main_ms_per_page", "pages_per_s"):
                row[key] = round(median(run[key] for run in of), 4)
            row["lowest_ms"] = min(run["cpu_ms_per_page"] for run in of)
            row["here_to_this"] = round(median(pairs), 3) if pairs else None
            row["peak_rss_mb"] = round(max(run["cost"]["peak_rss_mb"] for run in of))
            row["wrong"] = sum(run["wrong"] for run in of)
            rows.append(row)
    return rows


def spider_run(binary: Path, serving: Serving, folder: Path) -> dict[str, Any] | None:
    """One run of spider-rs on a finite web over plain HTTP; None for others."""
    shape = serving.shape
    if shape.scheme != "http" or shape.pages != shape.crawled or shape.delay != "0":
        return None
    peer = next(peer for peer in find(None, None, binary) if peer.name == "spider-rs")
    out = folder / "spider"
    start = f"http://h0.bench.test:{serving.port}/p/0.html"
    command = [*peer.command, start, bench_pages.PART, str(out), str(shape.concurrency)]
    cost = measure.run(command, measure.cores()[1], log=folder / "log")
    urls = bench_pages.line_urls(out)
    per_page = round(cost.per_page(len(urls)), 4)
    return {
        "program": "spider-rs",
        "shape": shape.name,
        "workers": 0,
        "pages": len(urls),
        "wrong": abs(shape.crawled - len(set(urls))),
        "cpu_ms_per_page": per_page,
        "user_ms_per_page": round(cost.cpu_user_s / max(len(urls), 1) * 1000, 4),
        "main_ms_per_page": per_page,
        "pages_per_s": round(len(urls) / cost.wall_s, 1),
        "cost": cost.as_json(),
    }


def main(argv: list[str] | None = None) -> int:
    """The command line; exit 1 when a run did not get exactly its pages."""
    parser = argparse.ArgumentParser(prog="benchmarks.bench_shapes", description="CPU per page by the shape of a web.")
    parser.add_argument("shapes", nargs="?", default=",".join(name for name in SHAPES if name != "bench"))
    parser.add_argument("--against", type=Path, help="root of another checkout with its .venv, run in turn with this")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--calls", action="store_true", help="count the calls per page, too")
    parser.add_argument("--spider", type=Path, help="spider-rs; the names of the web have to be in the hosts file")
    parser.add_argument("--extra", default="", help="more words for `nephila crawl`")
    parser.add_argument("--save", action="store_true", help="write the raw result")
    args = parser.parse_args(argv)
    programs = [Program("here", ROOT)] + ([Program("against", args.against.resolve())] if args.against else [])
    runs: list[dict[str, Any]] = []
    counted: dict[str, dict[str, list[float]]] = {}
    for name in args.shapes.split(","):
        with tempfile.TemporaryDirectory() as folder, Serving(SHAPES[name], Path(folder)) as serving:
            for program in programs:
                write_bytecode(program, serving, Path(folder))
            for number in range(args.repeat):
                for program in programs if number % 2 else programs[::-1]:
                    runs.append(run := once(program, serving, Path(folder), args.workers, args.extra.split()))
                    short = {key: run[key] for key in ("shape", "program", "cpu_ms_per_page", "pages_per_s")}
                    print(json.dumps(short), file=sys.stderr, flush=True)
                if args.spider and (peer := spider_run(args.spider, serving, Path(folder))):
                    runs.append(peer)
            if args.calls:
                counted[name] = {p.name: [round(n, 1) for n in calls(p, serving, Path(folder))] for p in programs}
    rows = summary(runs)
    print(report.table(list(rows[0]), [list(row.values()) for row in rows]))
    for name, found in counted.items():
        print(f"{name}: (Python, C) calls per page: {found}")
    if args.save:
        data = {"workers": args.workers, "rows": rows, "calls": counted, "runs": runs}
        path = report.save("shapes", {"versions": report.versions("uvloop", "msgspec", "nephila"), **data})
        print(f"raw: benchmarks/results/{path.name}")
    return int(any(run["wrong"] or run["cost"]["code"] for run in runs if run["program"] != "spider-rs"))


if __name__ == "__main__":
    raise SystemExit(main())
