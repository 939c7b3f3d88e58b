"""Two schedulers over a real broker, and many hosts on one address: one pace for all of them, by the server's log."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from itertools import pairwise

import pytest

from tests.e2e.test_services_over_kafka import System, system_broker  # noqa: F401
from tests.e2e.web import NEPHILA, page, run, serve

HOSTS, GAP_S, CONNECTIONS = 12, 0.25, 4
TOOK_S = 0.6
"""Longer than two gaps: fetches overlap, so that the count is tested as well."""
PAGES = 40


class Server:
    """Pages of a name that lead to each other; it notes when it was asked, and how many answers it owed."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        self.most = self._now = 0
        self._lock = threading.Lock()

    def __call__(self, request):
        if request.path == "/robots.txt":
            self._answer(0.0)
            return None
        self._answer(TOOK_S)
        number = int(request.path.removeprefix("/"))
        return page(f"/{number + 1}", title=f"Page {number} of {request.host}")

    def _answer(self, took_s: float) -> None:
        with self._lock:
            self.asked.append(time.monotonic())
            self._now += 1
            self.most = max(self.most, self._now)
        time.sleep(took_s)
        with self._lock:
            self._now -= 1


@pytest.fixture
def system(tmp_path, system_broker):  # noqa: F811
    """All services, the scheduler twice, with the pace that is the default."""
    applied = run(
        "service", "topics", "apply", "--bootstrap", system_broker.address, "--partitions", "16", cwd=tmp_path
    )
    assert applied.returncode == 0, applied.stderr
    server = Server()
    with serve(server) as web:
        system = System(tmp_path, system_broker, web)
        text = (tmp_path / "system.yaml").read_text()
        text = text.replace(" per_address: 0, address_gap_s: 0,", "").replace(
            "limits: {per_address: 0, address_gap_s: 0}", ""
        )
        (tmp_path / "system.yaml").write_text(text)
        system.start("storage", "parser", "downloader", "scheduler", "scheduler-b")
        system.until_held("scheduler-b", 8)
        yield system, server
        for program in system.programs.values():
            program.kill()
            program.wait(60)


def crawled(system, server, name: str) -> list[float]:
    """The gaps between all requests of a crawl of twelve hosts, which are in the partitions of both schedulers."""
    server.asked.clear()
    seeds = [f"http://{name}{number}.test/0" for number in range(HOSTS)]
    words = ("--bootstrap", system.broker.address, "--delay", "0.5", "--max-pages", str(PAGES), "--json")
    crawl = subprocess.run([*NEPHILA, "crawl", *seeds, *words], cwd=system.folder, capture_output=True, timeout=150)
    assert crawl.returncode == 0, crawl.stderr
    assert json.loads(crawl.stdout)["outcomes"]["stored"] == PAGES
    gaps = [later - earlier for earlier, later in pairwise(server.asked)]
    early = sum(gap < GAP_S - 0.005 for gap in gaps)
    print(f"{len(gaps) + 1} requests: gap {min(gaps):.3f} s at least, {sum(gaps) / len(gaps):.3f} s on average, "
          f"{early} early; {server.most} at once")  # fmt: skip
    return gaps


def test_one_address_is_asked_at_one_pace(system):
    """With one downloader and with two: the server is asked no more often than the gap allows, though single requests
    take a longer way than others, and never has a fifth to answer; both schedulers have their part."""
    system, server = system
    for name, more in (("a", ()), ("b", ("downloader-b",))):
        system.start(*more)
        gaps = crawled(system, server, name)
        assert sum(gaps) / len(gaps) >= 0.95 * GAP_S
    assert server.most <= CONNECTIONS
    for name in ("scheduler", "scheduler-b"):
        handed = float(system.metrics(name).split("\nnephila_scheduler_requests_total ")[1].split()[0])
        assert handed >= 10
