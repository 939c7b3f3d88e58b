"""Cookies: which requests carry them."""

from __future__ import annotations

from pathlib import Path

import pytest
from nephila.downloader.http.contract import SiteCookie
from nephila.downloader.middleware.cookie_jar import CookieJar
from nephila.downloader.middleware.cookies import JarOfSite
from nephila.kernel import messages as m
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.topics import JOBS

from tests.downloader.downloader_room import Room, answer
from tests.jobs import crawl_job


def test_cookies_of_a_browser_reach_the_jar_of_its_site() -> None:
    """New and changed ones of the site are stored, deleted ones deleted; a renewed one of another page stays."""
    jar, clock = CookieJar(), ManualClock()
    now = clock.now()
    jar.set_all(["old=1", "gone=1", "renewed=1"], "www.a.test", "/", secure=True, now=now)
    access = JarOfSite(jar, "www.a.test", "", clock)
    before = access.read()
    jar.set_all(["renewed=2"], "www.a.test", "/", secure=True, now=now)
    names = {one.name: one for one in before}
    after = [
        names["old"]._replace(value="2"),
        names["renewed"],
        SiteCookie("new", "1", "a.test", False, "/", True, now + 60),
        SiteCookie("tracker", "1", "ads.test", False, "/", True, now + 60),
        SiteCookie("wide", "1", "test", False, "/", True, now + 60),
    ]
    access.write(before, after)
    jar.check()
    assert jar.header("www.a.test", "/", True, now) == "old=2; renewed=2; new=1"
    assert jar.header("api.a.test", "/", True, now) == "new=1"
    assert jar.header("ads.test", "/", True, now) == ""


async def test_cookies_of_a_job_without_login() -> None:
    """Stored for a job that enables them, not for another, and deleted with the job."""
    room = Room()
    await room.downloader.start()
    room.bus.publish(JOBS, 0, crawl_job(uid="j", cookies=True))
    for job in ("j", "k"):
        for _ in range(2):
            room.request("http://a.test/", job=job)
            await room.settle()
            made = answer(200, b"x", set_cookie="a=1; path=/\nb=2; Expires=Fri, 07 Aug 2037 08:04:19 GMT; path=/")
            room.fetcher.fetches[-1].on_done(made)
    assert [fetch.request.own_headers() for fetch in room.fetcher.fetches] == [{}, {"Cookie": "a=1; b=2"}, {}, {}]
    room.bus.publish(JOBS, 0, m.CrawlJob(uid="j", deleted=True))
    room.bus.publish(JOBS, 0, crawl_job(uid="j", cookies=True))
    room.request("http://a.test/")
    await room.settle()
    assert room.fetcher.fetches[-1].request.own_headers() == {}


async def test_cookies_of_a_file_and_headers_of_hosts(tmp_path: Path) -> None:
    """Each goes to the hosts it names, and no further."""
    (tmp_path / "c.txt").write_text("a.test\tFALSE\t/\tFALSE\t0\tsid\t1\n")
    headers = ("a.test Authorization: Bearer x", "*.b.test X-Key: y", "c.test:8080 X-Key: z", "Accept-Language: de")
    room = Room(cookies=str(tmp_path / "c.txt"), headers=headers, allow_private=True, per_address=0)
    await room.downloader.start()
    for host in ("a.test", "w.b.test", "b.test", "c.test", "c.test:8080"):
        room.request(f"http://{host}/", host=host)
        await room.settle()
    assert [fetch.request.own_headers() for fetch in room.fetcher.fetches[:5]] == [
        {"Authorization": "Bearer x", "Cookie": "sid=1"},
        {"X-Key": "y"},
        {},
        {},
        {"X-Key": "z"},
    ]


def test_a_cookie_file_that_is_missing() -> None:
    """Said at the start, in one line."""
    with pytest.raises(UsageError, match="cannot read the cookies /none"):
        Room(cookies="/none")
