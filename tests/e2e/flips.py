"""Flipped bits: a crawl that was killed, one bit of one of its files flipped, and resumed, again and again.

usage: python -m tests.e2e.flips [--places 200] [--seed 1] [--only NAME]

A resume has to refuse in one line, or to bring the crawl to its end with every row. Everything else is a fault: fewer
rows, a file that was cut, a traceback. Of `pages.jsonl`, WARC files and `raw` files a resume does not read the content
again: they must only keep all their bytes but the flipped one.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import json
import os
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.web import Reply, Request, Web, crawl, page, serve

PAGES = 80
SMALL = {
    "NEPHILA_SCHEDULER__SEGMENT_BYTES": "4000",
    "NEPHILA_STORAGE__WAL_BYTES": "200000",
    "NEPHILA_STORAGE__FLUSH_INTERVAL_S": "0.01",
}
"""Small, so that the directory has a file of every kind."""
FORMATS = "sqlite,jsonl,warc"
ATTEMPTS = 30
"""Crawls to kill until one leaves no uncommitted bytes; about one of four does."""


def answer(request: Request) -> Reply | None:
    """A web of some pages, each linking to two others."""
    if request.path == "/robots.txt":
        return None
    number = int(request.path[1:] or 0)
    return page(*[f"/{n}" for n in (2 * number + 1, 2 * number + 2) if n < PAGES]) if number < PAGES else None


@dataclass
class Tally:
    """What came of the flips."""

    ends: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(file, "refused" or "recovered") → how often."""
    faults: list[str] = field(default_factory=list)

    def show(self) -> None:
        """A line for each file, then the faults."""
        for name in sorted({name for name, _ in self.ends}):
            refused, recovered = (self.ends[name, end] for end in ("refused", "recovered"))
            print(f"{name:32} {refused:4} refused  {recovered:4} recovered")
        print("\n".join(self.faults) or "no fault")


@contextlib.contextmanager
def killed_crawl(folder: Path) -> Iterator[tuple[Web, Path]]:
    """The web, and the directory of a crawl of it that was killed in the middle.

    Repeats the crawl until the kill leaves files of exactly their committed length: a resume may cut longer ones.
    """
    with serve(answer) as web:
        for attempt in range(ATTEMPTS):
            (cwd := folder / f"{attempt}").mkdir()
            words = ("http://a.test/0", "--format", FORMATS, "--keep-raw", "--quiet", "--workers", "0")
            done = crawl(web, *words, cwd=cwd, NEPHILA_FAILPOINT="frontier_commit_after:45", **SMALL)
            assert done.returncode == -signal.SIGKILL, done.stderr
            if _committed(cwd / "o"):
                break
        else:
            raise AssertionError(f"{ATTEMPTS} killed crawls had files that were longer than committed")
        yield web, cwd / "o"


def _committed(out: Path) -> bool:
    """Whether every append-only file has its committed length, and some rows are there."""
    with contextlib.closing(sqlite3.connect(f"file:{out / 'nephila.db'}?mode=ro", uri=True)) as db:
        lengths = dict(db.execute("select name, length from sinks"))
    return bool(lengths) and all(0 < length == (out / name).stat().st_size for name, length in lengths.items())


def files_of(directory: Path) -> list[Path]:
    """What may be damaged, relative to the directory; an index of the write-ahead log is made anew."""
    found = (path for path in sorted(directory.rglob("*")) if path.is_file() and path.stat().st_size)
    return [path.relative_to(directory) for path in found if path.name not in (".lock", "nephila.db-shm")]


def flip(web: Web, original: Path, name: Path, bit: int, folder: Path, tally: Tally) -> None:
    """Flip one bit of one file in a copy of the directory, resume, and judge."""
    out = folder / "flipped"
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(original, out, ignore=shutil.ignore_patterns("control.sock"))
    data = bytearray((out / name).read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    (out / name).write_bytes(data)
    sizes = {path: (out / path).stat().st_size for path in files_of(out)}
    code, text = resumed(web, out)
    end, fault = judged(out, name, bytes(data), sizes, code, text)
    tally.ends[str(name), end] += 1
    if fault:
        tally.faults.append(f"{name}, byte {bit // 8} of {len(data)}, bit {bit % 8}: {fault}")


def resumed(web: Web, out: Path) -> tuple[int, str]:
    """Resume in a child of this process, which saves the start of an interpreter; exit code and standard error."""
    errors = out.with_name("stderr")
    child = os.fork()
    if not child:
        code = 99
        try:
            descriptor = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(descriptor, 1)
            os.dup2(descriptor, 2)
            code = _resume(web, out)
        finally:
            sys.stderr.flush()
            os._exit(code)
    signal_or_code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return signal_or_code, errors.read_text()


def _resume(web: Web, out: Path) -> int:
    from nephila.cli.main import main

    signal.alarm(60)
    sys.stderr = io.TextIOWrapper(os.fdopen(2, "wb", buffering=0), write_through=True)
    words = ["crawl", "--resume", "--out", str(out), "--allow-private", "--host-map", web.host_map, "--quiet"]
    try:
        return int(main(words) or 0)
    except SystemExit as end:
        return int(end.code or 0)


def judged(out: Path, name: Path, flipped: bytes, sizes: dict[Path, int], code: int, text: str) -> tuple[str, str]:
    """What came of it, and what is wrong with that."""
    lines = [line for line in text.splitlines() if line.startswith("nephila: ")]
    if code in (1, 2):
        if "Traceback" in text or len(lines) != 1:
            return "refused", f"exit code {code}, not in one line: {text[-300:]!r}"
        shorter = [str(path) for path, size in sizes.items() if _kept(path) and (out / path).stat().st_size < size]
        return "refused", f"refused, and cut {shorter}" if shorter else ""
    if code:
        return "recovered", f"exit code {code}: {text[-300:]!r}"
    return "recovered", _lacking(out, name, flipped)


def _kept(path: Path) -> bool:
    return path.name == "pages.jsonl" or path.name.endswith(".gz") or path.name == "nephila.db"


def _lacking(out: Path, name: Path, flipped: bytes) -> str:
    """What a crawl that has ended well lacks."""
    with contextlib.closing(sqlite3.connect(out / "nephila.db")) as db:
        rows = dict(db.execute("select url, outcome from pages"))
    wanted = {f"http://a.test/{n}": "stored" for n in range(PAGES)}
    if rows.keys() != wanted.keys():
        return f"{len(wanted.keys() - rows.keys())} rows are missing, {len(rows.keys() - wanted.keys())} are strange"
    lines = (out / "pages.jsonl").read_bytes().splitlines()
    if name.name == "pages.jsonl":
        whole = (out / name).read_bytes()
        return "" if whole.startswith(flipped[: len(flipped) // 2]) and len(whole) > len(flipped) / 2 else "it was cut"
    if sorted(json.loads(line)["url"] for line in lines) != sorted(wanted):
        return f"pages.jsonl has {len(lines)} lines"
    return ""


def run(places: int, seed: int = 1, only: str = "") -> Tally:
    """Flip so many bits of every file."""
    for module in ("cli.crawl.run", "cli.progress", "cli.crawl.summary", "programs.crawl", "storage.read.reader"):
        importlib.import_module(f"nephila.{module}")  # once, for all the children
    rng, tally = random.Random(seed), Tally()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        with killed_crawl(folder) as (web, original):
            for name in files_of(original):
                if only in str(name):
                    size = (original / name).stat().st_size
                    for _ in range(places):
                        flip(web, original, name, rng.randrange(size * 8), folder, tally)
    return tally


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="tests.e2e.flips", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--places", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="only files with this in their path")
    args = parser.parse_args(argv)
    tally = run(args.places, args.seed, args.only)
    tally.show()
    return 1 if tally.faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
