"""One program, worker processes and services over Kafka make the same rows of the same web."""

from __future__ import annotations

import contextlib
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest

from benchmarks.plainweb import listening
from benchmarks.web.checks import no_row_lost, none_twice, outcomes_right
from benchmarks.web.evidence import Case, Row, ending, load_log
from tests.chaos import chaos_web
from tests.e2e.web import run
from tests.required import required
from tools.install import Missing
from tools.postgres import NoServer
from tools.system import SERVICES, System, free_port

COLUMNS = "url, url_key, outcome, reason, status, title, sha256, text_hash"
HASTE = {"NEPHILA_SCHEDULER__RETRY_DELAY_S": "0.1", "NEPHILA_SCHEDULER__BACKOFF_S": "0.1"}
PACE = {"per_address": 0, "address_gap_s": 0}
# No limit of depth or pages: which page finds a link first is a race, and a limit would make it count.
WORDS = ("--scope", "any", "--include", r"\.chaos\.test", "--delay", "0.05")


@pytest.fixture(scope="module")
def site():
    """Six hosts with faults, redirects and rules."""
    return chaos_web.build(11, 6, 15, crawl_delay_s=1, port=free_port(), haste=20)


@contextlib.contextmanager
def served(site, folder: Path, log: Path):
    """A server that has not seen anything yet: what a page does the first time it does for every way."""
    if not folder.exists():
        site.write(folder)
    words = [sys.executable, "-m", "benchmarks.web.serve", str(folder), "--port", str(site.port), "--log", str(log)]
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL, cwd=Path(__file__).parents[2])
    try:
        until = time.monotonic() + 60
        while not listening(site.port, "127.0.2.1"):
            assert server.poll() is None
            assert time.monotonic() < until
        yield
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(20)


def maps(site) -> list[str]:
    """Where each host lies."""
    return [f"{host.name}={host.address}" for host in site.hosts.values()]


def by_one_program(site, tmp_path: Path, workers: str) -> list[tuple]:
    """Rows of `nephila crawl`."""
    words = [word for one in maps(site) for word in ("--host-map", one)]
    out = f"out-{workers}"
    crawl = run(
        *("crawl", *site.seeds, *WORDS, "--allow-private", *words, "--workers", workers, "--out", out, "--quiet"),
        cwd=tmp_path,
        **HASTE,
        NEPHILA_SCHEDULER__PER_ADDRESS="0",
        NEPHILA_DOWNLOADER__LIMITS__PER_ADDRESS="0",
        timeout=100,
    )
    assert crawl.returncode == 0, crawl.stderr
    with contextlib.closing(sqlite3.connect(tmp_path / out / "nephila.db")) as db:
        return sorted(db.execute(f"SELECT {COLUMNS} FROM pages").fetchall())


def by_services(site, tmp_path: Path) -> list[tuple]:
    """Rows of a system over Kafka and PostgreSQL."""
    downloader = {"dns": {"allow_private": True, "host_map": maps(site)}, "limits": PACE}
    with required(NoServer, Missing):
        system = System(tmp_path / "system", {"scheduler": PACE, "downloader": downloader})
    system.environment |= HASTE
    try:
        system.open()
        members = [system.add(service) for service in SERVICES]
        for member in members:
            system.start(member)
        system.wait_ready(*members)
        system.nephila("crawl", *site.seeds, *WORDS, "--bootstrap", system.broker.address, "--quiet")
        with psycopg.connect(system.store) as link:
            return sorted(link.execute(f"SELECT {COLUMNS} FROM pages").fetchall())
    finally:
        system.close()


@pytest.mark.timeout(300)
def test_three_ways_bring_the_same_rows(site, tmp_path):
    """URLs, outcomes, statuses, titles, bodies and texts are those of one program, and those the web has."""
    ways = {
        "in process": lambda: by_one_program(site, tmp_path, "0"),
        "two workers": lambda: by_one_program(site, tmp_path, "2"),
        "over Kafka": lambda: by_services(site, tmp_path),
    }
    found = {}
    for name, way in ways.items():
        with served(site, tmp_path / "web", tmp_path / f"{name}.log"):
            found[name] = way()
    first = found.pop("in process")
    for name, rows in found.items():
        assert rows == first, name
    requests, closed = load_log(tmp_path / "in process.log")
    rows = [Row("job", url, key, ending(outcome, reason), title) for url, key, outcome, reason, _, title, _, _ in first]
    case = Case(site.manifest(), requests, closed, rows)
    for check in (no_row_lost, none_twice, outcomes_right):
        assert check(case).violations == []
