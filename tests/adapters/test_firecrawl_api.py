"""Firecrawl's API by its official client, unchanged, and by hostile requests."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from firecrawl import Firecrawl
from firecrawl.v2.utils import error_handler as errors
from nephila.adapters.firecrawl.application import KEPT_S, routes
from nephila.adapters.firecrawl.options import id_of
from nephila.control import requests
from nephila.control.access.authority import Authority, administrator
from nephila.control.http.application import application
from nephila.control.http.server import tcp_server
from nephila.kernel.runtime.clock import SystemClock

from tests.adapters.adapter_rig import running
from tests.control.http.asgi import AsgiClient

KEY = "0123456789abcdef"
HEADERS = {"authorization": f"Bearer {KEY}", "host": "127.0.0.1:1"}


_THREADS = ThreadPoolExecutor(16)
"""Of the clients; the program reads its database in those of the loop."""


def called(work, *args, **given):
    """The call in a thread of its own."""
    return asyncio.get_running_loop().run_in_executor(_THREADS, partial(work, *args, **given))


def served(control):
    """The application with Firecrawl's API."""
    authority = Authority(control, administrator(KEY))
    return application(control, authority=authority, beside=routes(authority))


async def test_the_official_client_scrapes_maps_and_crawls(tmp_path):
    """Each call in a thread, against a server on a port."""
    async with running(tmp_path) as rig:
        server = tcp_server(served(rig.control), "127.0.0.1", 0, "--api")
        await server.open()
        client = Firecrawl(api_key=KEY, api_url=f"http://127.0.0.1:{server.port}")
        crawled = called(client.crawl, "http://c.test/", limit=10, poll_interval=1)
        batched = called(
            client.batch_scrape, ["http://d.test/green", "http://e.test/black"], formats=["links"], poll_interval=1
        )
        page, old, none, private, mapped, crawl, batch = await asyncio.gather(
            called(client.scrape, "http://a.test/", formats=["markdown", "links", "rawHtml"]),
            called(client.scrape, "http://b.test/old"),
            called(client.scrape, "http://f.test/none"),
            called(client.scrape, "http://g.test/private/x"),
            called(client.map, "http://h.test/"),
            crawled,
            batched,
            return_exceptions=True,
        )
        assert page.markdown.startswith("# Teas")
        assert "<h1>Teas</h1>" in page.raw_html
        assert page.links == ["http://a.test/green", "http://a.test/black"]
        assert (page.metadata.title, page.metadata.status_code, page.metadata.language) == ("Teas", 200, "en")
        assert (old.metadata.url, old.metadata.source_url) == ("http://b.test/green", "http://b.test/old")
        assert (none.metadata.status_code, none.markdown) == (404, "")
        assert isinstance(private, errors.WebsiteNotSupportedError)
        assert {link.url.rpartition("/")[2] for link in mapped.links} == {"green", "black", "hidden"}
        assert (crawl.status, crawl.completed) == ("completed", 4)
        assert {one.metadata.title for one in crawl.data} == {"Teas", "Green tea", "Black tea"}
        assert (batch.status, len(batch.data), batch.data[0].markdown) == ("completed", 2, None)
        started = await called(client.start_crawl, "http://i.test/", limit=5)
        active = await called(client.get_active_crawls)
        assert [one.id for one in active.crawls] == [started.id]
        assert await called(client.cancel_crawl, started.id)
        assert (await called(client.get_crawl_status, started.id)).status == "cancelled"
        failed = await called(client.get_crawl_errors, started.id)
        assert failed.errors == []
        await server.close()


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/v2/scrape", b"no json", 400),
        ("POST", "/v2/scrape", b"[]", 400),
        ("POST", "/v2/scrape", b"{" * 100_000, 400),
        ("POST", "/v2/scrape", b'{"url": 5}', 400),
        ("POST", "/v2/scrape", b'{"url": "file:///etc/passwd"}', 400),
        ("POST", "/v2/scrape", b'{"url": "http://a.test/", "mobile": true}', 400),
        ("POST", "/v2/scrape", b'{"url": "http://a.test/", "timeout": 1}', 408),
        ("POST", "/v2/scrape", b" " * (1 << 21), 413),
        ("POST", "/v2/map", b'{"url": "x"}', 400),
        ("POST", "/v2/crawl", b'{"url": "http://a.test/", "includePaths": ["("]}', 400),
        ("POST", "/v2/crawl", b'{"url": "http://a.test/", "ignoreRobotsTxt": true}', 400),
        ("POST", "/v2/batch/scrape", b'{"urls": ["http://a.test/", "x"]}', 400),
        ("POST", "/v2/batch/scrape", b'{"urls": []}', 400),
        ("GET", "/v2/crawl/none", b"", 404),
        ("GET", "/v2/crawl/crawl-0123456789abcdef01234567-m", b"", 404),
        ("GET", "/v2/crawl/crawl-0123456789abcdef01234567-m?before=x", b"", 400),
        ("DELETE", "/v2/batch/scrape/crawl-0123456789abcdef01234567-m", b"", 404),
        ("POST", "/v2/search", b"{}", 404),
    ],
)
async def test_a_wrong_request_is_one_line_with_a_status(tmp_path, method, path, body, status):
    async with running(tmp_path) as rig:
        client = AsgiClient(served(rig.control))
        answer = await client._request(method, path, body, HEADERS)
        assert answer.status_code == status, answer.text
        assert '"success":false' in answer.text
        assert "\\n" not in answer.text
        for wrong in ({}, {"authorization": "Bearer x"}, {"authorization": f"Basic {KEY}"}):
            refused = await client._request(method, path, body, {"host": "127.0.0.1:1", **wrong})
            assert refused.status_code == 401


async def test_crawls_of_yesterday_are_deleted_with_the_next_one(tmp_path):
    """Those that run and those of today stay."""
    async with running(tmp_path) as rig:
        now = SystemClock().now()
        client = AsgiClient(served(rig.control))
        old = id_of("crawl", now - KEPT_S - 5, "0" * 12, ("markdown",))
        today = id_of("crawl", now - 5, "0" * 12, ("markdown",))
        for name in (old, today, "news"):
            document = {
                "apiVersion": "nephila.dev/v1",
                "kind": "CrawlJob",
                "metadata": {"name": name},
                "spec": {"seeds": [f"http://{name[:5]}.test/"], "paused": True},
            }
            await rig.control.apply_job(requests.ApplyJob(job=document))
        answer = await client._request("POST", "/v2/crawl", b'{"url": "http://z.test/", "limit": 1}', HEADERS)
        assert answer.status_code == 200
        names = {job.name for job in (await rig.control.list_jobs(requests.Empty())).jobs}
        assert old not in names
        assert {today, "news"} < names
