"""Spiders of Scrapy, unchanged but for their settings, over a frontier: SIGKILL, two processes, robots.txt."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.e2e.web import Reply, Request, page, serve
from tests.waits import wait_until

pytestmark = pytest.mark.full
PAGES = 40
SPIDER = """
import os
import scrapy

class Tree(scrapy.Spider):
    name = "tree"
    custom_settings = {
        "SCHEDULER": "nephila_doors.scrapy.scheduler.Scheduler",
        "NEPHILA_FRONTIER": "frontier",
        "DOWNLOAD_DELAY": float(os.environ["DELAY"]),
        "ROBOTSTXT_OBEY": True,
        "LOG_LEVEL": "WARNING",
        "TELNETCONSOLE_ENABLED": False,
    }

    async def start(self):
        yield scrapy.Request(os.environ["SITE"], dont_filter=True)

    def parse(self, response):
        yield from response.follow_all(css="a", callback=self.parse_page, cb_kwargs={"parent": response.url})
        yield from self.parse_page(response, parent="")

    def parse_page(self, response, parent):
        with open("rows", "a") as rows:
            rows.write((response.url.rpartition("/")[2] or "root") + "\\n")
        yield from response.follow_all(css="a", callback=self.parse_page, cb_kwargs={"parent": response.url})
"""


def tree(request: Request) -> Reply | None:
    if request.path == "/robots.txt":
        return Reply("User-agent: *\nDisallow: /private\n", type="text/plain")
    at = int(request.path[1:] or 0) if request.path[1:].isdigit() or request.path == "/" else None
    if at is None:
        return None
    return page(
        *(f"/{child}" for child in (2 * at + 1, 2 * at + 2) if child < PAGES),
        f"{request.path}?utm_source=x",
        "/private",
    )


def spider(directory: Path, port: int, delay_s: float) -> subprocess.Popen[bytes]:
    (directory / "spider.py").write_text(SPIDER)
    settings = {**os.environ, "SITE": f"http://127.0.0.1:{port}/", "DELAY": str(delay_s)}
    command = [sys.executable, "-m", "scrapy", "runspider", "spider.py"]
    return subprocess.Popen(command, cwd=directory, env=settings)


def rows(directory: Path) -> Counter[str]:
    path = directory / "rows"
    return Counter(path.read_text().split()) if path.exists() else Counter()


EVERY = Counter(["root", *map(str, range(1, PAGES))])


@pytest.fixture(autouse=True)
def no_frontier_stays(tmp_path):
    yield
    lock = tmp_path / "frontier" / ".lock"
    if lock.exists() and lock.read_text().strip():
        try:
            os.kill(int(lock.read_text()), signal.SIGTERM)
        except ProcessLookupError:
            pass


def test_a_killed_spider_resumes_with_every_page_once(tmp_path):
    with serve(tree) as web:
        killed = spider(tmp_path, web.port, 0.05)
        wait_until(lambda: sum(rows(tmp_path).values()) >= 10)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        before = sum(rows(tmp_path).values())
        assert before < PAGES
        assert spider(tmp_path, web.port, 0.0).wait(60) == 0
        # What the killed process was at may come twice: one request of a host at a time.
        extra = rows(tmp_path) - EVERY
        assert set(rows(tmp_path)) == set(EVERY)
        assert sum(extra.values()) <= 1
        asked = Counter(web.paths())
        assert asked["/robots.txt"] == 1
        assert asked["/private"] == 0
        assert sum(asked.values()) <= PAGES + 2


def test_a_killed_frontier_is_started_again_and_continues(tmp_path):
    with serve(tree) as web:
        going = spider(tmp_path, web.port, 0.05)
        wait_until(lambda: sum(rows(tmp_path).values()) >= 10)
        os.kill(int((tmp_path / "frontier" / ".lock").read_text()), signal.SIGKILL)
        assert going.wait(60) == 0
        extra = rows(tmp_path) - EVERY
        assert set(rows(tmp_path)) == set(EVERY)
        assert sum(extra.values()) <= 1


def test_two_processes_share_the_pages_and_the_pause_of_a_host(tmp_path):
    began: list[float] = []

    def timed(request: Request) -> Reply | None:
        began.append(time.monotonic())
        return tree(request)

    with serve(timed) as web:
        both = [spider(tmp_path, web.port, 0.2) for _ in range(2)]
        assert [one.wait(90) for one in both] == [0, 0]
        assert rows(tmp_path) == EVERY
        assert len(began) == PAGES + 1
        assert min(later - before for before, later in itertools.pairwise(began)) >= 0.2
