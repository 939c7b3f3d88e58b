"""A member with a browser beside two plain ones over a real broker: kills lose nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from nephila_browser.process_tree import members_of

from tests.e2e.single_page_sites import answer as single_page
from tests.e2e.test_rendered_pages import browsers
from tests.e2e.test_services_over_kafka import System
from tests.e2e.web import NEPHILA, Reply, page, run, serve
from tests.waits import wait_until
from tools.kafka_broker import Broker

pytestmark = pytest.mark.usefixtures("chromium")
ROUTES, PLAIN = 24, 60
BROWSER = {"NEPHILA_DOWNLOADER__BROWSER__ENABLED": "true"}
MEMBERS = ("downloader-a", "downloader-b")


def answer(request):
    """plain.test is a tree of pages; app.test is an application whose routes are a tree."""
    if request.path == "/robots.txt":
        return None
    if request.host == "plain.test":
        number = int(request.path.removeprefix("/") or 0)
        children = [f"/{child}" for child in (2 * number + 1, 2 * number + 2) if child < PLAIN]
        return page(*children, title=f"Page {number}")
    if request.path.startswith("/api/page/"):
        name = request.path.rpartition("/")[2]
        number = 0 if name == "home" else int(name)
        links = [str(child) for child in (2 * number + 1, 2 * number + 2) if child < ROUTES]
        content = {"title": name, "text": f"Text of route {name}.", "links": links, "list": False}
        return Reply(json.dumps(content), type="application/json")
    request.host = "hash.test"
    return single_page(request)


def crawl(system: System, *words: str) -> subprocess.Popen[str]:
    """A crawl of the services, watched."""
    return subprocess.Popen(
        [*NEPHILA, "crawl", *words, "--bootstrap", system.broker.address, "--json"],
        cwd=system.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def until_rendered(system: System, count: int) -> None:
    """Wait until so many routes are stored."""
    wait_until(lambda: sum(url.startswith("http://app.test/") for url in system.stored()) >= count, 120.0)


def a_browser_of(pid: int) -> int:
    """The process group of a browser below a member, once there is one."""
    return wait_until(lambda: browsers(pid))[0]


@pytest.mark.timeout(400)
def test_kills_of_the_browser_member_and_of_chromium_lose_nothing(tmp_path: Path) -> None:
    """Every route and every plain page has one row with its content; no Chromium is left."""
    broker = Broker(tmp_path / "broker").start()
    system = None
    try:
        applied = run("service", "topics", "apply", "--bootstrap", broker.address, "--partitions", "16", cwd=tmp_path)
        assert applied.returncode == 0, applied.stderr
        with serve(answer) as web:
            system = System(tmp_path, broker, web, "sqlite")
            system.start("storage", "parser", *MEMBERS, "scheduler", NEPHILA_SCHEDULER__LEASE_S="30")
            system.start("downloader-browser", **BROWSER)
            rendered = crawl(system, "http://app.test/", "--render", "always", "--delay", "0.1")
            plain = crawl(system, "http://plain.test/0", "--delay", "0.1")
            groups = []
            until_rendered(system, 2)
            groups.append(a_browser_of(system.programs["downloader-browser"].pid))
            system.end("downloader-browser", number=signal.SIGKILL)
            system.start("downloader-browser", **BROWSER)
            for rendered_pages in (6, 10):
                until_rendered(system, rendered_pages)
                groups.append(a_browser_of(system.programs["downloader-browser"].pid))
                os.killpg(groups[-1], signal.SIGKILL)
            for one in (plain, rendered):
                _, problem = one.communicate(timeout=200)
                assert one.returncode == 0, problem
            assert system.stored() == (
                {"http://app.test/"}
                | {f"http://app.test/#/{number}" for number in range(1, ROUTES)}
                | {f"http://plain.test/{number}" for number in range(PLAIN)}
            )
            assert system.rows() == {"stored": ROUTES + PLAIN}
            last = browsers(system.programs["downloader-browser"].pid)
            assert system.end("downloader-browser", *MEMBERS) == [0, 0, 0]
            assert not any(members_of(group) for group in groups + last)
    finally:
        for program in system.programs.values() if system is not None else ():
            program.kill()
            program.wait(60)
        broker.stop()
