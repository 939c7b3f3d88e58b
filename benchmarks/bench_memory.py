"""Memory and the start: resident memory with a million queued URLs and with a crawl of a plain web, and the time from
start to first fetch.

usage: python -m benchmarks.bench_memory --web DIR [--queued 1000000] [--hosts 1000] [--seeds FILE]

Targets: 600 MB with a million queued, 250 MB at the end of 6,000 pages, first fetch in under 1 s. The queue is filled
from a file of seeds on hosts that all lie on loopback. Their delay is longer than the crawl waits, so each host is
asked once and the crawl ends by itself with all the rest queued; run.json has their number.
"""

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import measure, plainweb, report


def write_seeds(path: Path, count: int, hosts: int, port: int) -> None:
    """A file of *count* URLs, host after host in turn, as long as real ones (about 70 characters)."""
    with path.open("w") as file:
        for n in range(count):
            file.write(
                f"http://q{n % hosts}.bench.test:{port}/archive/2026/{n % 12 + 1:02}/article-about-number-{n}.html\n"
            )


def watch(command: list[str], log: Path, requests: Callable[[], int], limit_s: float) -> dict[str, Any]:
    """Run a crawl and look at it every 20 ms: peak and last memory of its process, and when the server saw the first
    request.
    """
    before, started = requests(), time.monotonic()
    process = measure.start(command, measure.cores()[1], log=log)
    peak = last = first = 0.0
    while process.poll() is None and time.monotonic() - started < limit_s:
        last = measure.rss_mb(process.pid) or last
        peak = max(peak, last)
        if not first and requests() > before:
            first = time.monotonic() - started
        time.sleep(0.02)
    timed_out = process.poll() is None
    stop(process)
    return {
        "peak_rss_mb": round(peak, 1),
        "last_rss_mb": round(last, 1),
        "first_fetch_s": round(first, 3),
        "wall_s": round(time.monotonic() - started, 2),
        "code": process.returncode,
        "stopped_at_limit": timed_out,
    }


def stop(process: subprocess.Popen[bytes]) -> None:
    """End our own child, gently first."""
    for number in (signal.SIGINT, signal.SIGKILL):
        if process.poll() is None:
            process.send_signal(number)
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                continue


def crawl(program: list[str], out: Path, words: list[str]) -> list[str]:
    """The crawl with the words both cases share."""
    return [
        *program,
        "crawl",
        "--scope",
        "any",
        "--include",
        r"\.bench\.test",
        "--ignore-robots",
        "--allow-private",
        "--host-map",
        "*.bench.test=127.0.0.1",
        "--quiet",
        "--out",
        str(out),
        *words,
    ]


def parser() -> argparse.ArgumentParser:
    """The options."""
    options = argparse.ArgumentParser(
        prog="benchmarks.bench_memory", description="Memory with a full queue; time to the first fetch."
    )
    options.add_argument("--web", type=Path, required=True, help="a plain web on a free port")
    options.add_argument("--queued", type=int, default=1_000_000)
    options.add_argument("--hosts", type=int, default=1000)
    options.add_argument("--seeds", type=Path, help="a file of URLs instead of a made one")
    options.add_argument("--limit-s", type=float, default=420.0)
    options.add_argument("--nephila", default=f"{sys.executable} -m nephila")
    return options


def main(argv: list[str] | None = None) -> int:
    """The command line; exit 1 when a target is missed."""
    args = parser().parse_args(argv)
    web, program = plainweb.read(args.web), args.nephila.split()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        access = folder / "access.log"

        def requests() -> int:
            return access.read_bytes().count(b'"event":"request"') if access.exists() else 0

        with plainweb.Serving(web, folder / "server", log=access):
            seeds = args.seeds or folder / "seeds.txt"
            if args.seeds is None:
                write_seeds(seeds, args.queued, args.hosts, web.port)
            plain = crawl(program, folder / "plain", [web.start, "--delay", "0", "--concurrency", "100"])
            full = crawl(program, folder / "full", ["--seeds", str(seeds), "--delay", "3600", "--max-wait", "600"])
            found = {
                "plain crawl": watch(plain, folder / "plain.log", requests, args.limit_s),
                "queued": watch(full, folder / "full.log", requests, args.limit_s),
            }
            found["queued"]["left"] = left(folder / "full")
    return conclude(found, len(web.files))


def left(out: Path) -> int:
    """How many URLs were still queued at the end."""
    try:
        return int(json.loads((out / "run.json").read_text())["left"])
    except (OSError, ValueError, KeyError):
        return 0


def conclude(found: dict[str, dict[str, Any]], pages: int) -> int:
    """Print the figures beside their targets and keep the raw result."""
    plain, full = found.values()
    targets = [
        (f"peak MB at {pages} pages", plain["peak_rss_mb"], 250.0),
        ("seconds to the first fetch", plain["first_fetch_s"], 1.0),
        (f"peak MB with {full['left']} queued", full["peak_rss_mb"], 600.0),
    ]
    missed = [name for name, value, most in targets if not 0 < value <= most]
    ended = [name for name, run in found.items() if run["code"] != 0 and not run["stopped_at_limit"]]
    print(report.table(("figure", "is", "at most"), targets))
    for name in ended:
        print(f"WRONG  {name}: the crawl ended with {found[name]['code']}")
    path = report.save("memory", {"pages": pages, "runs": found})
    print(f"raw: benchmarks/results/{path.name}")
    return int(bool(missed or ended))


if __name__ == "__main__":
    raise SystemExit(main())
