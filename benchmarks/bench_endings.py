"""How a crawl over the services ends: by itself, with the right count, also when a service is killed shortly before.

usage: python -m benchmarks.bench_endings --web DIR [--seed 7] [--within 5] [--save]

Three crawls of the plain web by `nephila crawl --bootstrap`, each on a system of its own with two schedulers: as it is;
with one of the schedulers (seeded) killed by kill -9 at an instant (seeded) within the last seconds of the crawl; and
with --max-pages 500. Each has to end by itself with exit code 0 and exactly as many rows, none twice. When the last
seconds begin is told by the rows in the database and how fast they come; how long before the last row the kill really
was is printed.
"""

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg

from benchmarks import plainweb, report
from benchmarks.bench_services import SERVICES, crawl, settings, stored
from tools.system import System

MAX_PAGES = 500
LOOK_S = 0.05
LIMIT_S = 900.0


class Watch:
    """The rows as they come, and when the last one came."""

    def __init__(self, store: str) -> None:
        self._link = psycopg.connect(store, autocommit=True)
        self.marks: list[tuple[float, int]] = []

    def look(self) -> int:
        """Rows by now; none before the table is there."""
        try:
            row = self._link.execute("SELECT count(*) FROM pages").fetchone()
        except psycopg.errors.UndefinedTable:
            row = None
        count = int(row[0]) if row else 0
        if not self.marks or count != self.marks[-1][1]:
            self.marks.append((time.monotonic(), count))
        return count

    def left_s(self, whole: int) -> float:
        """How long the rest takes if it comes as fast as what came in the last two seconds."""
        now, count = self.marks[-1]
        then, before = next(mark for mark in self.marks if mark[0] >= now - 2.0)
        return (whole - count) * (now - then) / (count - before) if count > before else float("inf")


def once(
    web: plainweb.PlainWeb, folder: Path, words: list[str], kill: Callable[[System, Watch], bool]
) -> dict[str, Any]:
    """One system, one crawl; `kill` is called repeatedly until it returns true."""
    system = System(folder, settings(100))
    try:
        system.open()
        members = [system.add(service) for service in SERVICES] + [system.add("scheduler", 1)]
        for member in members:
            system.start(member)
        system.wait_ready(*members)
        watch, killed_at = Watch(system.store), 0.0
        command = [sys.executable, "-m", "nephila", *crawl(web, system), *words]
        began = time.monotonic()
        process = subprocess.Popen(
            command, cwd=folder, env=system.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        while process.poll() is None and time.monotonic() < began + LIMIT_S:
            watch.look()
            if not killed_at and kill(system, watch):
                killed_at = time.monotonic()
            time.sleep(LOOK_S)
        process.kill()
        result, errors = process.communicate()
        return {
            "exit": process.returncode,
            "rows": watch.look(),
            "stored": len(stored(system)),
            "wall_s": round(time.monotonic() - began, 1),
            "killed_before_last_row_s": round(watch.marks[-1][0] - killed_at, 2) if killed_at else None,
            "said": json.loads(result).get("outcomes") if result else errors,
        }
    finally:
        system.close()


def in_the_last_seconds(web: plainweb.PlainWeb, rng: random.Random, within_s: float) -> Callable[[System, Watch], bool]:
    """Kill one of the schedulers so long, at most, before the end."""
    before_s, victim = rng.uniform(0.2, within_s), rng.choice((0, 1))

    def kill(system: System, watch: Watch) -> bool:
        if watch.left_s(len(web.urls)) > before_s:
            return False
        system.members[f"scheduler-{victim}"].send(signal.SIGKILL)
        return True

    return kill


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    options = argparse.ArgumentParser(prog="benchmarks.bench_endings", description="How crawls over services end.")
    options.add_argument("--web", type=Path, required=True, help="a plain web (python -m benchmarks.web.plain DIR)")
    options.add_argument("--seed", type=int, default=7)
    options.add_argument("--within", type=float, default=5.0, help="seconds before the end at which a scheduler dies")
    options.add_argument("--save", action="store_true", help="write the raw result")
    args = options.parse_args(argv)
    web, rng = plainweb.read(args.web), random.Random(args.seed)
    whole = len(web.urls)
    shows: list[tuple[str, list[str], Callable[[System, Watch], bool], int]] = [
        ("as it is", [], lambda system, watch: False, whole),
        ("a scheduler killed", [], in_the_last_seconds(web, rng, args.within), whole),
        (f"--max-pages {MAX_PAGES}", ["--max-pages", str(MAX_PAGES)], lambda system, watch: False, MAX_PAGES),
    ]
    results, bad = {}, 0
    with tempfile.TemporaryDirectory() as temporary, plainweb.Serving(web, Path(temporary) / "server"):
        for number, (name, words, kill, expected) in enumerate(shows):
            found = results[name] = once(web, Path(temporary) / str(number), words, kill)
            right = found["exit"] == 0 and found["stored"] == expected
            bad += not right
            print(json.dumps({"crawl": name, "expected": expected, "right": right, **found}), flush=True)
    if args.save:
        path = report.save("endings", {"seed": args.seed, "within_s": args.within, "crawls": results})
        print(f"raw: benchmarks/results/{path.name}")
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
