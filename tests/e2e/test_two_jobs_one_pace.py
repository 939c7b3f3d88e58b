"""Two jobs over the same hosts at once: each has all its rows, and the servers see the pace of one crawler."""

from __future__ import annotations

import contextlib
import json
import signal
import sqlite3
import subprocess
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from benchmarks.web import judge as judging
from benchmarks.web.site import Site
from benchmarks.web.town import Town
from tests.e2e.program import job
from tests.e2e.test_hostile_web import ROOT, bench, wait_for
from tools.system import free_port

HOSTS, PAGES, ADDRESSES = 20, 4, 5
DELAY_S, GAP_S, AT_ONCE, LATENCY_S = 0.2, 0.1, 2, 0.15
SLACK_S = 0.05
"""What a busy machine may keep the server from seeing a request."""
PACE = {
    f"NEPHILA_{service}__{name}": str(value)
    for service in ("SCHEDULER", "DOWNLOADER__LIMITS")
    for name, value in (("ADDRESS_GAP_S", GAP_S), ("PER_ADDRESS", AT_ONCE))
}


def build(folder: Path, port: int) -> Site:
    """Twenty hosts on five addresses: pages, a diary that robots.txt forbids, a page that is not there."""
    site = Site(seed=5, port=port, max_depth=4)
    town = Town(site)
    for number in range(1, HOSTS):
        robots = b"User-agent: *\nDisallow: /private/\n"
        host = town.host("plain", robots=robots, address=f"127.0.1.{number % ADDRESSES + 1}", latency_s=LATENCY_S)
        for page in range(PAGES - 1):
            town.page(host, f"/page/{page}", "ordinary", size=3000)
        town.page(host, "/private/diary", "private", accept=("denied(robots)",), disallowed=True)
    missing = {"do": "body", "status": 404}
    town.page(host, "/gone", "404", accept=("failed(http_404)",), action=missing)
    site.write(folder)
    return site


@pytest.fixture
def web(tmp_path):
    """The site, served, with the server's log."""
    port = free_port()
    site = build(tmp_path / "web", port)
    words = bench("benchmarks.web.serve", str(tmp_path / "web"), "--port", str(port), "--log", str(tmp_path / "log"))
    server = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.DEVNULL)
    try:
        wait_for(port, server)
        yield site
    finally:
        server.terminate()
        server.wait(60)


def rows(path: Path) -> dict[str, dict[str, tuple[str, str]]]:
    """URL → outcome and instant of the fetch, by job."""
    found: dict[str, dict[str, tuple[str, str]]] = {}
    with contextlib.closing(sqlite3.connect(path / "nephila.db")) as db:
        query = "select job, url, outcome || iif(reason = '', '', '(' || reason || ')'), fetched_at from pages"
        for name, url, ending, at in db.execute(query):
            found.setdefault(name, {})[url] = (ending, at)
    return found


def test_two_jobs_over_the_same_hosts(tmp_path, web, up, capsys):
    """Applied together, another weight each; robots.txt once per host, a gap and one connection per host over both."""
    maps = [word for host in web.hosts.values() for word in ("--host-map", f"{host.name}={host.address}")]
    program = up(None, *maps, **PACE)
    scope = {"mode": "any", "include": [r"\.web\.test"]}
    spec = {"seeds": web.seeds, "scope": scope, "politeness": {"delay": f"{DELAY_S}s"}}
    program.apply(job("a", **spec) + job("b", **spec, weight=3))
    program.until(lambda jobs: {one["state"] for one in jobs.values()} == {"idle"})
    assert program.end(signal.SIGTERM) == (0, "", "")

    found = rows(tmp_path / "o")
    due = {page.url: page.accept[0] for page in web.pages.values()}
    for name in ("a", "b"):
        assert {url: ending for url, (ending, _) in found[name].items()} == due
    log, out = str(tmp_path / "log"), str(tmp_path / "o")
    pace = ["--delay", str(DELAY_S), "--address-gap", str(GAP_S), "--per-address", str(AT_ONCE)]
    pace += ["--slack", str(SLACK_S)]
    code = judging.main(["--log", log, "--manifest", str(tmp_path / "web"), "--db", out, *pace])
    assert code == 0, capsys.readouterr().out

    asked = [json.loads(line) for line in Path(log).read_text().splitlines()]
    rules = Counter(event["host"] for event in asked if event["event"] == "request" and event["path"] == "/robots.txt")
    assert rules == dict.fromkeys(web.hosts, 1)
    assert together(found) > HOSTS // 2


def together(found: dict[str, dict[str, tuple[str, str]]]) -> int:
    """Hosts on which the two jobs fetched in the same seconds, not one after the other."""
    count = 0
    for host in {urlsplit(url).netloc for url in found["a"]}:
        # A denied URL was never fetched: it has no instant.
        spans = [
            [at for url, (_, at) in found[name].items() if urlsplit(url).netloc == host and at] for name in ("a", "b")
        ]
        count += max(map(min, spans)) < min(map(max, spans))
    return count
