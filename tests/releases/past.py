"""Releases of before: which there are, their trees out of the project's own history, and what they have written.

Invariant: a past program runs from its own tree, with the pure-Python twins of its native core, whose files are the
same; no file of the present one is on its path. What it reads and writes is what its users had. Not here: what is
expected of it.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.web import Web, page, serve

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data" / "releases"
HOSTS, PAGES = 3, 240
QUICK = {
    "NEPHILA_SCHEDULER__ADDRESS_GAP_S": "0",
    "NEPHILA_DOWNLOADER__ADDRESS_GAP_S": "0",
    "NEPHILA_SCHEDULER__SEGMENT_BYTES": "4000",
    "NEPHILA_STORAGE__BATCH_ROWS": "8",
}
"""Small segments: there are snapshots, runs of queues and of seen URLs, and a log behind them. One server for all."""
SEED = "http://h0.test/0"
URLS = frozenset(f"http://h{n % HOSTS}.test/{n}" for n in range(PAGES))


@dataclass(frozen=True, slots=True)
class Release:
    """A row of RELEASES."""

    version: str
    commit: str

    @property
    def data(self) -> Path:
        """What was written by it."""
        return DATA / self.version


def releases() -> list[Release]:
    """All of them, the oldest first."""
    lines = (DATA / "RELEASES").read_text().splitlines()
    return [Release(*line.split()) for line in lines if line and not line.startswith("#")]


def known(commit: str) -> bool:
    """Whether the history here has a commit."""
    return shutil.which("git") is not None and not git("cat-file", "-e", f"{commit}^{{tree}}").returncode


def git(*words: str) -> subprocess.CompletedProcess[bytes]:
    """A question to the history."""
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, check=False)


def unpack_tree(commit: str, folder: Path) -> Path:
    """The sources of a commit; returns what is to stand in PYTHONPATH."""
    archive = git("archive", commit, "services")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        tar.extractall(folder, filter="data")
    return folder / "services"


def unpack_data(archive: Path, folder: Path) -> None:
    """A directory as it was left."""
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")


def environment(tree: Path | None = None, **env: str) -> dict[str, str]:
    """Of a program of a tree; None is the present one."""
    own = {} if tree is None else {"PYTHONPATH": str(tree), "NEPHILA_NATIVE": "python"}
    return {**os.environ, **QUICK, **own, **env}


def nephila(*words: str, cwd: Path, tree: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    """A command to its end."""
    return subprocess.run(
        [sys.executable, "-m", "nephila", *words],
        cwd=cwd,
        env=environment(tree, **env),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


FORMATS = "sqlite,jsonl,warc"
WITHOUT_WARC = "sqlite,jsonl"
"""WARC files are named by job and time since 0.1.0a2, whose program reads no such name."""


def crawl(
    web: Web, *words: str, cwd: Path, tree: Path | None = None, formats: str = FORMATS, **env: str
) -> subprocess.CompletedProcess[str]:
    """`nephila crawl … --out o` on the site below, all its hosts, without delay."""
    options = ("--out", "o", "--allow-private", "--host-map", web.host_map, "--delay", "0", "--quiet")
    return nephila("crawl", *words, *options, "--format", formats, "--scope", "any", cwd=cwd, tree=tree, **env)


@contextlib.contextmanager
def site() -> Iterator[Web]:
    """Pages on three hosts; each links to three others."""

    def answer(request):
        if not request.path[1:].isdigit() or int(request.path[1:]) >= PAGES:
            return None
        number = int(request.path[1:])
        links = [n for n in (2 * number + 1, 2 * number + 2, (number * 7 + 3) % PAGES) if n < PAGES]
        return page(*(f"http://h{n % HOSTS}.test/{n}" for n in links), title=f"Page {number}")

    with serve(answer) as web:
        yield web
