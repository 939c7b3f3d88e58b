"""16 partitions become 32 and then 64 under a crawl over a real broker, and a scheduler is killed while they split."""

from __future__ import annotations

import contextlib
import json
import signal
import time
from collections import defaultdict

import pytest

from tests.e2e.test_services_over_kafka import DEEP, HOSTS, ManyHosts, System, result
from tests.e2e.web import run, serve
from tools.kafka_broker import Broker

PAGES = HOSTS * DEEP


class Site(ManyHosts):
    """It notes the pages that it was asked for as well."""

    def __init__(self) -> None:
        super().__init__()
        self.pages: dict[str, list[float]] = defaultdict(list)

    def __call__(self, request):
        if request.path != "/robots.txt":
            self.pages[request.host + request.path].append(time.monotonic())
        return super().__call__(request)

    def twice(self) -> dict[str, list[float]]:
        """Pages that were fetched again."""
        return {url: at for url, at in self.pages.items() if len(at) > 1}


@pytest.fixture
def growing(tmp_path):
    """All services, with two schedulers, over a broker of its own; its topics have 16 partitions."""
    broker = Broker(tmp_path / "broker").start()
    with contextlib.ExitStack() as after, serve(site := Site()) as web:
        after.callback(broker.stop)
        applied = run("service", "topics", "apply", "--bootstrap", broker.address, "--partitions", "16", cwd=tmp_path)
        assert applied.returncode == 0, applied.stderr
        system = System(tmp_path, broker, web, "sqlite")
        system.start("storage", "parser", "downloader", "scheduler-a", "scheduler-b")
        yield system, site
        for program in system.programs.values():
            program.kill()
            program.wait(60)


def grow(system: System, to: int) -> dict[str, int]:
    """By the command, beside the crawl."""
    ran = run(
        "service", "topics", "grow", "--bootstrap", system.broker.address, "--to", str(to), "--json", cwd=system.folder
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_partitions_grow_under_a_crawl(growing):
    """Judged by the site: no host is asked too early, no page twice but those in flight at the kill, each has a row."""
    system, site = growing
    crawl = result(system)
    try:
        system.until_rows(10)
        assert grow(system, 32) == {"partitions": 32, "new": 16, "begun": 16}
        system.until_rows(PAGES // 3)
        assert not site.twice()
        killed_at = time.monotonic()
        system.end("scheduler-a", number=signal.SIGKILL)
        assert grow(system, 64) == {"partitions": 64, "new": 32, "begun": 32}
        out, err = crawl.communicate(timeout=120)
    finally:
        crawl.kill()
        crawl.wait()
    assert crawl.returncode == 0, err
    assert json.loads(out)["outcomes"]["stored"] == PAGES
    assert system.rows() == {"stored": PAGES}
    site.check()
    again = site.twice()
    assert not again, (killed_at, again)
    refused = run("service", "topics", "grow", "--bootstrap", system.broker.address, "--to", "48", cwd=system.folder)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
