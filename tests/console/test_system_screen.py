"""The screen of the system: figures with their history, events by kind, settings with words and defaults."""

from __future__ import annotations

import msgspec
import pytest
from lxml import html as parser
from nephila.downloader.config import DownloaderConfig
from nephila.kernel.runtime.config import replaced
from nephila_console.screens.system import history
from nephila_control.access.roles import Role
from nephila_control.screen_types import Sample

from tests.console.console_rig import console

SECRET = "hunter2-of-the-proxy"  # noqa: S105 - of a test


def sample(at, stored, failed=0, queued=5):
    return Sample(at=float(at), queued=queued, in_flight=1, stored=stored, denied=0, failed=failed, dropped=0)


def test_a_history_has_rates_between_samples():
    """A job that was deleted is no negative rate; a present sample that is too near says nothing."""
    figures = history([sample(0, 0), sample(10, 30, 10), sample(20, 10, 10), sample(20.5, 90, 10)])
    assert figures.ended == [4.0, 0.0]
    assert figures.failed == [1.0, 0.0]
    assert figures.queued == [5.0] * 4
    assert figures.failed_share == 0.25
    assert history([]).failed_share == 0.0


def note(rig):
    """Two minutes of history and some events."""
    backend = rig.control._backend
    start = backend.clock.now() - 120
    for at in range(0, 120, 10):
        backend.series.note(1e6 + at, start + at, lambda at=at: {"news": (5, 1, 3 * at, 0, at, 0)})
    for kind, subject in (("member_silent", "parser/p-2"), ("job_failed", "news")):
        backend.events._add(kind, subject, "the cause")


def configured(rig, config):
    backend = rig.control._backend
    backend._parts = msgspec.structs.replace(backend._parts, configs={"downloader": config})


async def test_figures_have_curves_over_the_chosen_time(tmp_path):
    async with console(tmp_path) as rig:
        note(rig)
        browser = await rig.opened()
        page = parser.fromstring((await browser.get("/console/system?range=15m")).text)
        labels = page.xpath("//ul[contains(@class, 'tiles')]//*[@role='img']/@aria-label")
        assert "Ends per second, last 15 min" in labels
        assert page.xpath("//*[@aria-current='true' and text()='15 min']")
        assert page.xpath("//a[text()='7 d']/@href") == ["/console/system?range=7d"]


async def test_events_are_filtered_by_their_kind(tmp_path):
    async with console(tmp_path) as rig:
        note(rig)
        browser = await rig.opened()

        async def rows(query):
            page = parser.fromstring((await browser.get(f"/console/system{query}")).text)
            return page.xpath("//section[@id='events']//tbody//th//text()")

        assert len(await rows("")) == 3
        assert await rows("?events=member") == ["a member became silent"]
        assert await rows("?events=store") == []
        assert len(await rows("?events=nonsense")) == 3


async def test_settings_have_words_and_defaults_and_no_secret(tmp_path):
    config = DownloaderConfig(concurrency=7)
    async with console(tmp_path) as rig:
        configured(rig, config)
        browser = await rig.opened()
        page = parser.fromstring((await browser.get("/console/system/settings?q=concurrency")).text)
        (row,) = [part for part in page.xpath("//tbody/tr") if part.xpath(".//code/text()")[0] == "concurrency"]
        assert "Simultaneous fetches" in row.text_content()
        assert row.xpath(".//td[@data-name='Value']//code/text()") == ["7"]
        assert row.xpath(".//td[@data-name='Default']//code/text()") == ["100"]
        assert row.get("class") == "set"


@pytest.mark.parametrize("path", ["/console/system/settings", "/console/system/settings?q=proxies"])
async def test_the_value_of_a_secret_is_nowhere(tmp_path, path):
    sources = (f"http://user:{SECRET}@proxy.test:8080",)
    config = replaced(DownloaderConfig(), {"proxies.sources": sources})
    async with console(tmp_path) as rig:
        configured(rig, config)
        answer = await (await rig.opened()).get(path)
        assert "set, and not shown" in answer.text
        assert SECRET not in answer.text


async def test_a_viewer_sees_no_settings_and_no_action(tmp_path):
    async with console(tmp_path) as rig:
        browser = rig.of_role(Role.VIEWER)
        page = parser.fromstring((await browser.get("/console/system")).text)
        assert page.xpath("//main//form") == []
        assert (await browser.get("/console/system/settings")).status_code == 403
