"""The kill show: kill -9 a crawl again and again, resume it, and look for a lost, doubled or torn row in all it wrote.

usage: python -m benchmarks.bench_kill --web DIR [--kills 20] [--seed 7] [--format sqlite,jsonl,warc] [--window N]
       [--workers N] [--failpoint NAME[:nth] | --all-failpoints] [--extra '…words for nephila crawl…']

Each kill falls 0.2-1.0 s (seeded) after the first fetch of its run, seen in the server's log. A crawl that ends before
its kill is checked and a new one is begun, until all kills are done. Refetches = requests the server counted minus
pages; they may be at most window x kills. With --workers a worker is killed every other time (seeded) instead of
the whole program, which goes on without it.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nephila.kernel.runtime.failpoints import POINTS

from benchmarks import durable, measure, plainweb, report

# A crawl of some thousand pages would never reach its first snapshot; with this it makes one every few hundred pages.
SMALL_LOG = {"NEPHILA_SCHEDULER__SEGMENT_BYTES": "200000"}


@dataclass
class Show:
    """One show: the crawl, the server's log, and what happened so far."""

    web: plainweb.PlainWeb
    program: list[str]
    folder: Path
    formats: list[str]
    extra: list[str]
    rng: random.Random
    env: dict[str, str]
    workers: int = 0
    kills: int = 0
    worker_kills: int = 0
    rounds: int = 0
    complaints: list[str] = field(default_factory=list)
    refetches: list[dict[str, Any]] = field(default_factory=list)
    _seen: int = 0
    _worker_kills_seen: int = 0

    @property
    def out(self) -> Path:
        """The directory of the present crawl."""
        return self.folder / f"out-{self.rounds}"

    @property
    def access_log(self) -> Path:
        """The server's log."""
        return self.folder / "access.log"

    def command(self) -> list[str]:
        """The crawl; --resume where there is something to resume."""
        resume = ["--resume"] if self.out.exists() else []
        return [
            *self.program,
            "crawl",
            self.web.start,
            "--scope",
            "any",
            "--include",
            r"\.bench\.test",
            "--ignore-robots",
            "--allow-private",
            "--delay",
            "0",
            "--concurrency",
            "100",
            "--host-map",
            "*.bench.test=127.0.0.1",
            "--format",
            ",".join(self.formats),
            "--quiet",
            "--out",
            str(self.out),
            "--workers",
            str(self.workers),
            *self.extra,
            *resume,
        ]

    def requests(self) -> int:
        """Page requests the server has logged so far, over all rounds."""
        text = self.access_log.read_text() if self.access_log.exists() else ""
        return text.count('"path":"/p/')

    def run(self, kill_after_s: float | None, failpoint: str = "") -> int:
        """Run the crawl to its end, to its failpoint, or to a kill; returns the exit code (−9 = killed)."""
        env = {**os.environ, **self.env, **({"NEPHILA_FAILPOINT": failpoint} if failpoint else {})}
        time.sleep(0.2)  # until the server has logged what the last kill cut off
        before, started = self.requests(), time.monotonic()
        process = measure.start(self.command(), measure.cores()[1], log=self.folder / "crawl.log", env=env)
        if kill_after_s is not None:
            while process.poll() is None and self.requests() == before:
                time.sleep(0.02)
            while self._kill(process, time.monotonic() + kill_after_s):
                kill_after_s = self.rng.uniform(0.2, 1.0)
        process.wait()
        self.kills += process.returncode == -signal.SIGKILL
        print(
            f"  run of {time.monotonic() - started:.2f} s ended with {process.returncode}", file=sys.stderr, flush=True
        )
        return process.returncode

    def _kill(self, process: subprocess.Popen[bytes], deadline: float) -> bool:
        """Kill the program then, or one of its workers: true when it goes on without it."""
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)
        workers = measure.children(process.pid) if self.workers and self.rng.random() < 0.5 else []
        if process.poll() is not None:
            return False
        if not workers:
            process.send_signal(signal.SIGKILL)
            return False
        os.kill(self.rng.choice(workers), signal.SIGKILL)
        self.worker_kills += 1
        return True

    def check(self, window: int | None, kills: int) -> None:
        """Look at all a finished crawl wrote, and count its refetches."""
        time.sleep(0.2)  # the server writes its log in batches
        count = len(self.web.files)
        found = durable.table_complaints(self.out, self.web.urls, count)
        found += durable.jsonl_complaints(self.out, count) if "jsonl" in self.formats else []
        found += durable.warc_complaints(self.out, count) if "warc" in self.formats else []
        requests = self.requests() - self._seen
        self._seen += requests
        kills += self.worker_kills - self._worker_kills_seen
        self._worker_kills_seen = self.worker_kills
        window = window or said_window(self.out)
        again: dict[str, Any] = {
            "kills": kills,
            "requests": requests,
            "pages": count,
            "refetches": requests - count,
            "window": window,
        }
        if window is not None and again["refetches"] > window * kills:
            found.append(f"{again['refetches']} refetches, at most {window} x {kills}")
        self.refetches.append(again)
        self.complaints += [f"round {self.rounds}: {complaint}" for complaint in found]
        shutil.rmtree(self.out)
        self.rounds += 1


def said_window(out: Path) -> int | None:
    """The window of unacked requests that the crawl prints in run.json, if it does."""
    try:
        run = json.loads((out / "run.json").read_text())
    except (OSError, ValueError):
        return None
    window = run.get("window")
    return int(window) if isinstance(window, int | float) else None


def by_time(show: Show, kills: int, window: int | None) -> None:
    """Kills at seeded moments."""
    in_round = 0
    while show.kills + show.worker_kills < kills:
        code = show.run(show.rng.uniform(0.2, 1.0))
        if code == -signal.SIGKILL:
            in_round += 1
            continue
        if not finished(show, code):
            return
        show.check(window, in_round)
        in_round = 0
    if in_round and finished(show, show.run(None)):
        show.check(window, in_round)


def finished(show: Show, code: int) -> bool:
    """Whether the crawl came to its end; anything else ends the show."""
    if code == 0:
        return True
    tail = (show.folder / "crawl.log").read_text(errors="replace").strip().splitlines()[-1:]
    show.complaints.append(f"round {show.rounds}: the crawl ended with {code}: {tail}")
    return False


def at_failpoint(show: Show, failpoint: str, window: int | None) -> None:
    """Die at a point inside the crawler, then resume to the end. `restore` needs something to restore: a kill comes
    first.
    """
    name, _, nth = failpoint.partition(":")
    killed = 0
    if name == "restore":
        killed, nth = int(show.run(show.rng.uniform(0.2, 0.6)) == -signal.SIGKILL), "1"
    for number in dict.fromkeys((nth or str(show.rng.randint(2, 6)), "1")):
        code = show.run(None, f"{name}:{number}")
        if code == -signal.SIGKILL:
            killed += 1
            break
        if not finished(show, code):
            return
        show.check(window, killed)
        killed = 0
    else:
        show.complaints.append(f"{name}: never reached")
        return
    if finished(show, show.run(None)):
        show.check(window, killed)


def parser() -> argparse.ArgumentParser:
    """The options."""
    options = argparse.ArgumentParser(prog="benchmarks.bench_kill", description="kill -9, resume, nothing lost.")
    options.add_argument(
        "--web",
        type=Path,
        required=True,
        help="a plain web on a free port (python -m benchmarks.web.plain DIR --port 8087)",
    )
    options.add_argument("--kills", type=int, default=20)
    options.add_argument("--workers", type=int, default=0, help="worker processes; one of them is killed now and then")
    options.add_argument("--seed", type=int, default=7)
    options.add_argument("--format", default="sqlite,jsonl,warc")
    options.add_argument("--window", type=int, help="unacked requests; default: that of run.json")
    options.add_argument("--failpoint", help="die at this point instead: " + ", ".join(POINTS))
    options.add_argument("--all-failpoints", action="store_true")
    options.add_argument(
        "--snapshots", action="store_true", help="take frontier snapshots often, also without failpoints"
    )
    options.add_argument("--nephila", default=f"{sys.executable} -m nephila")
    options.add_argument("--extra", default="", help="more words for `nephila crawl`")
    return options


def main(argv: list[str] | None = None) -> int:
    """The command line; exit 1 on a complaint."""
    args = parser().parse_args(argv)
    web = plainweb.read(args.web)
    points = list(POINTS) if args.all_failpoints else [args.failpoint] if args.failpoint else []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        show = Show(
            web,
            args.nephila.split(),
            folder,
            args.format.split(","),
            args.extra.split(),
            random.Random(args.seed),
            SMALL_LOG if points or args.snapshots else {},
            args.workers,
        )
        with plainweb.Serving(web, folder / "server", log=show.access_log):
            for point in points:
                print(f"failpoint {point}", file=sys.stderr)
                at_failpoint(show, point, args.window)
            if not points:
                by_time(show, args.kills, args.window)
    return conclude(show, points)


def conclude(show: Show, points: list[str]) -> int:
    """Print what was found and keep the raw result."""
    rows = [
        (f"crawl {i}", r["kills"], r["pages"], r["requests"], r["refetches"], r["window"])
        for i, r in enumerate(show.refetches)
    ]
    print(report.table(("", "kills", "pages", "requests", "refetches", "window"), rows))
    for complaint in show.complaints:
        print(f"WRONG  {complaint}")
    data = {
        "kills": show.kills,
        "workers": show.workers,
        "worker_kills": show.worker_kills,
        "failpoints": points,
        "formats": show.formats,
        "crawls": show.refetches,
        "complaints": show.complaints,
    }
    path = report.save("kill" if not points else "failpoints", data)
    killed = f"{show.kills} kills of the program, {show.worker_kills} of a worker"
    print(f"{killed}, {len(show.complaints)} complaints; raw: benchmarks/results/{path.name}")
    return int(bool(show.complaints))


if __name__ == "__main__":
    raise SystemExit(main())
