"""A person who follows any link of the console arrives at a screen, in each kind of program; what cannot work there is
greyed, with the reason and the remedy."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest
from lxml import html
from nephila_console.application import routes
from nephila_console.logins import Access
from nephila_control.access.authority import Authority, administrator
from nephila_control.access.read_only import read_only
from nephila_control.cluster import queries
from nephila_control.http.application import application
from nephila_control.local.backend import NoDeadLetters

from tests.console.console_rig import TOKEN, Browser
from tests.console.test_studio_use import stored_shop
from tests.control.cluster.test_cluster_control import System, report

LINKS = 120
"""Links that are followed."""


async def opened(control):
    """A browser with a session over a control API."""
    authority = Authority(control, administrator(TOKEN))
    access = Access(authority)
    browser = Browser(application(control, authority=authority, beside=routes(access)))
    await browser.get(f"/console/login?token={access.sessions.invite()}")
    return browser


@asynccontextmanager
async def up(directory):
    async with stored_shop(directory) as rig:
        yield rig.control


@asynccontextmanager
async def finished(directory):
    """A crawl that has ended, as `nephila console --out DIR` serves it."""
    async with stored_shop(directory) as rig:
        backend = rig.control._backend
        backend._once, backend._store, backend.kind = True, None, "crawl"
        yield read_only(rig.control, "end it and start nephila up", writes_items=True)


@asynccontextmanager
async def cluster(directory):
    """A system over Kafka whose API has no database of rows."""

    class NoTopics:
        async def rows(self):
            return []

    system = System()
    system.backend.letters, system.backend._topics = NoDeadLetters(), NoTopics()
    await system.apply()
    await system.report(1, queued=3, stored=451, failed=2)
    for member in ("scheduler/s", "downloader/d", "parser/p", "storage/t"):
        report(system, member, 1)
    yield system.control


@pytest.mark.parametrize("system", [up, finished, cluster])
async def test_every_link_leads_to_a_screen(tmp_path, system):
    async with system(tmp_path) as control:
        browser = await opened(control)
        seen, waiting = {"/console/"}, ["/console/"]
        for _ in range(LINKS):
            if not waiting:
                break
            address = waiting.pop(0)
            answer = await browser.get(address)
            assert answer.status_code == 200, address
            if not answer.headers["content-type"].startswith("text/html"):
                continue
            links = html.fromstring(answer.text).xpath(
                "//a/@href[starts-with(., '/console') and not(contains(., 'lang='))]"
            )
            waiting += [link for link in dict.fromkeys(links) if link not in seen]
            seen.update(links)
        assert len(seen) > 10


async def test_a_screen_that_cannot_work_is_greyed_and_says_why(tmp_path):
    async with cluster(tmp_path) as control:
        browser = await opened(control)
        page = html.fromstring((await browser.get("/console/")).text)
        absent = page.xpath("//nav//span[@class='absent']")
        assert [name.text for name in absent] == ["Items", "Pages", "Audit"]
        assert "api.store" in absent[0].get("title")
        text = (await browser.get("/console/items?job=j")).text
        assert "this program does not know where its rows are" in text
        assert "api.store" in text


async def test_hosts_over_kafka_without_a_scheduler_are_no_error_and_not_called_done(tmp_path, monkeypatch):
    monkeypatch.setattr(queries, "HOSTS_S", 0.02)
    async with cluster(tmp_path) as control:
        browser = await opened(control)
        for address in ("/console/hosts?job=j", "/console/jobs/j?tab=hosts"):
            answer = await browser.get(address)
            assert (answer.status_code, "0 of 16 partitions answered" in answer.text) == (200, True)
            assert "everything that was found has ended" not in answer.text


async def test_counts_without_reasons_are_not_called_nothing(tmp_path):
    """451 pages are stored; that their reasons cannot be read is another sentence."""
    async with cluster(tmp_path) as control:
        text = (await (await opened(control)).get("/console/")).text
    assert "No fetch has ended yet" not in text
    assert "The reasons of 453 fetches are not known here." in text


async def test_changes_of_a_finished_crawl_are_greyed(tmp_path):
    async with finished(tmp_path) as control:
        browser = await opened(control)
        page = html.fromstring((await browser.get("/console/jobs/news")).text)
        assert page.xpath("//form[contains(@action, '/jobs/')]") == []
        assert page.xpath("//span[@aria-disabled]/text()") == ["Pause", "Edit", "Delete job"]
        assert "end it and start nephila up" in page.xpath("string(//p[@id='read-only'])")
