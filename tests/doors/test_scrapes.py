"""One page on request, by the crawl: exactly one fetch, robots.txt, redirects, ages, waits that end."""

from __future__ import annotations

import asyncio
import threading

import pytest
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila_control import job_types
from nephila_doors import scrapes
from nephila_doors.scrapes import Busy, NotStored, Scrapes, WaitTimeout
from nephila_doors.site_map import MapRequest, site_map

from tests.doors.adapter_rig import running, shop


async def test_a_page_is_fetched_once_for_all_who_ask_for_it(tmp_path):
    async with running(tmp_path) as rig:
        pages = Scrapes(rig.control, SystemClock())
        found = await asyncio.gather(*(pages.page("http://a.test/green") for _ in range(5)))
        assert {one.page.title for one in found} == {"Green tea"}
        assert rig.web.paths("a.test") == ["/robots.txt", "/green"]
        again = await pages.page("http://a.test/green", max_age_s=3600)
        assert again.page.fetched_at == found[0].page.fetched_at
        assert rig.web.paths("a.test").count("/green") == 1
        fresh = await pages.page("http://a.test/green")
        assert fresh.page.fetched_at > found[0].page.fetched_at
        assert rig.web.paths("a.test").count("/green") == 2
        await pages.close()


async def test_redirects_are_followed_and_refusals_are_named(tmp_path):
    async with running(tmp_path) as rig:
        pages = Scrapes(rig.control, SystemClock())
        redirected, private, missing, hidden = await asyncio.gather(
            pages.page("http://a.test/old"),
            pages.page("http://b.test/private/1"),
            pages.page("http://c.test/none"),
            pages.page("http://192.168.77.1:1/", wait_s=0.5),
            return_exceptions=True,
        )
        assert redirected.page.url == "http://a.test/green"
        assert isinstance(private, NotStored)
        assert private.row.reason == "robots"
        assert "b.test" not in [request.host for request in rig.web.requests if request.path != "/robots.txt"]
        assert isinstance(missing, NotStored)
        assert str(missing) == ("http://c.test/none: failed(http_404), status 404: the server answered 404 (not found)")
        assert isinstance(hidden, WaitTimeout | NotStored)
        with pytest.raises(UsageError, match="not a URL"):
            await pages.page("file:///etc/passwd")
        await pages.close()


async def test_a_wait_ends_and_says_what_the_url_waits_for(tmp_path, monkeypatch):
    """While robots.txt does not come, as many wait as may; each URL stays queued, and is fetched later."""
    monkeypatch.setattr(scrapes, "MAX_WAITING", 3)
    come = threading.Event()

    def slow(request):
        if request.path == "/robots.txt":
            come.wait(60)
        return shop(request)

    async with running(tmp_path, slow) as rig:
        pages = Scrapes(rig.control, SystemClock())
        asked = [pages.page(f"http://a.test/?{number}", wait_s=1.0) for number in range(5)]
        found = await asyncio.gather(*asked, return_exceptions=True)
        assert sorted(type(one).__name__ for one in found) == ["Busy", "Busy", *["WaitTimeout"] * 3]
        late = [str(one) for one in found if isinstance(one, WaitTimeout)]
        assert all("has not ended in time: Waiting: " in one for one in late), late
        assert any("robots.txt of a.test is fetched first" in one for one in late), late
        assert isinstance(next(one for one in found if isinstance(one, Busy)), UserError)
        come.set()
        waited = late[0].split()[0]
        with pytest.raises(NotStored, match="http_404"):
            await pages.page(waited, max_age_s=60)
        await pages.close()


async def test_the_map_of_a_site_fetches_one_page_and_the_sitemaps(tmp_path):
    """The same in a program that knows the host's robots.txt already."""
    async with running(tmp_path) as rig:
        expected = {f"http://a.test/{name}" for name in ("", "green", "black", "hidden")}
        for _ in range(2):
            found = await site_map(rig.control, SystemClock(), MapRequest(url="http://a.test/"))
            assert {one.url for one in found} == expected
        assert set(rig.web.paths("a.test")) == {"/robots.txt", "/", "/map.xml"}
        only = await site_map(rig.control, SystemClock(), MapRequest(url="a.test", search="GREEN", limit=1))
        assert [one.url for one in only] == ["http://a.test/green"]
        jobs = (await rig.control.list_jobs(job_types.ListJobs())).jobs
        assert [one.name[:4] for one in jobs] == ["map-"]
