"""Settings of one member, changed at running services over a real broker: they count at once and after a restart."""

from __future__ import annotations

import json
import threading
import time
from itertools import pairwise

import pytest

from tests.e2e.test_services_over_kafka import SERVICES, System
from tests.e2e.web import page, run, serve
from tools.kafka_broker import Broker

DOWNLOADER = "downloader-one"
PAGES = 6
SPEED = 4.0


class Site:
    """One page per host; it notes the starts and the largest number of requests at once."""

    def __init__(self) -> None:
        self.guard = threading.Lock()
        self.starts: list[float] = []
        self.open = self.most = 0

    def answer(self, request):
        """Some time passes, so that fetches overlap where they may."""
        with self.guard:
            self.starts.append(time.monotonic())
            self.open += 1
            self.most = max(self.most, self.open)
        time.sleep(0.3)
        with self.guard:
            self.open -= 1
        return None if request.path == "/robots.txt" else page()

    def take(self) -> tuple[float, int]:
        """The smallest gap between two starts, and the most requests at once, since the last call."""
        gap = min(after - before for before, after in pairwise(self.starts))
        found, self.starts, self.most = (gap, self.most), [], 0
        return found


@pytest.fixture
def site():
    """See `Site`."""
    return Site()


@pytest.fixture
def system(tmp_path, tmp_path_factory, site):
    """All services, ready; the downloader has a name."""
    broker = Broker(tmp_path_factory.mktemp("broker")).start()
    with serve(site.answer) as web:
        applied = run("service", "topics", "apply", "--bootstrap", broker.address, "--partitions", "16", cwd=tmp_path)
        assert applied.returncode == 0, applied.stderr
        system = System(tmp_path, broker, web)
        system.start(*(DOWNLOADER if name == "downloader" else name for name in SERVICES))
        yield system
        for program in system.programs.values():
            program.kill()
            program.wait(60)
    broker.stop()


def crawl(system, name):
    """Pages of hosts that no crawl before had; each host costs two requests."""
    seeds = [f"http://{name}{number}.test/" for number in range(PAGES)]
    done = run("crawl", *seeds, "--bootstrap", system.broker.address, "--delay", "0", "--json", cwd=system.folder)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["outcomes"]["stored"] == PAGES


def change(system, *changes, code=0):
    """`nephila service settings` of the downloader; returns what it prints."""
    words = ("service", "settings", *changes, "--member", DOWNLOADER, "--bootstrap", system.broker.address)
    done = run(*words, cwd=system.folder)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def test_speed_and_connections_of_a_member_count_at_once_and_after_a_restart(system, site):
    """Without them starts are dense and fetches overlap; taken back, they do so again."""
    crawl(system, "a")
    gap, most = site.take()
    assert gap < 0.5 / SPEED
    assert most > 1
    assert "4" in change(system, f"speed={SPEED:g}", "connections=1")
    crawl(system, "b")
    gap, most = site.take()
    assert gap > 0.5 / SPEED
    assert most == 1
    assert system.end(DOWNLOADER) == [0]
    system.start(DOWNLOADER)
    crawl(system, "c")
    gap, most = site.take()
    assert gap > 0.5 / SPEED
    assert most == 1
    change(system, "speed=", "connections=")
    crawl(system, "d")
    gap, most = site.take()
    assert gap < 0.5 / SPEED
    assert most > 1
    assert "depth is a setting of scheduler" in change(system, "depth=1", code=2)
