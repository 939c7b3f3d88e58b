"""Firecrawl's API by its official client, unchanged, and by hostile requests."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from firecrawl import Firecrawl
from firecrawl.v2.utils import error_handler as errors
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.runtime.waits import Backoff
from nephila_control import job_types, rule_types
from nephila_control.access.authority import Authority, administrator, digest
from nephila_control.http.application import application
from nephila_control.http.server import tcp_server
from nephila_doors.firecrawl import webhooks
from nephila_doors.firecrawl.application import KEPT_S
from nephila_doors.firecrawl.clean_html import clean_html
from nephila_doors.firecrawl.kept_crawls import TABLES, KeptCrawl, KeptCrawls
from nephila_doors.firecrawl.options import id_of
from nephila_doors.firecrawl.server import FirecrawlServer
from nephila_doors.scrapes import MAX_WAITING
from nephila_harvest.webhooks.database import Database
from nephila_harvest.webhooks.transport import DeliveryAnswer

from tests.control.http.asgi import AsgiClient
from tests.doors.adapter_rig import SITEMAP, article, running
from tests.e2e.web import Reply
from tests.waits import until

KEY = "0123456789abcdef"
HEADERS = {"authorization": f"Bearer {KEY}", "host": "127.0.0.1:1"}


_THREADS = ThreadPoolExecutor(16)
"""Of the clients; the program reads its database in those of the loop."""


def called(work, *args, **given):
    """The call in a thread of its own."""
    return asyncio.get_running_loop().run_in_executor(_THREADS, partial(work, *args, **given))


def served(rig, transport=None):
    """The application with Firecrawl's API."""
    authority = Authority(rig.control, administrator(KEY))
    beside = FirecrawlServer(authority, rig.directory, transport=transport)
    return application(rig.control, authority=authority, beside=beside.routes)


async def test_the_official_client_scrapes_maps_and_crawls(tmp_path):
    """Each call in a thread, against a server on a port."""
    async with running(tmp_path) as rig:
        server = tcp_server(served(rig), "127.0.0.1", 0, "--api")
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
        assert {link.url.rpartition("/")[2] for link in mapped.links} == {"", "green", "black", "hidden"}
        assert (crawl.status, crawl.completed) == ("completed", 3)
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
        ("POST", "/v2/batch/scrape", b'{"urls": ["http://a.test/", "x"], "ignoreInvalidURLs": false}', 400),
        ("POST", "/v2/batch/scrape", b'{"urls": []}', 400),
        ("GET", "/v2/crawl/none", b"", 404),
        ("GET", "/v2/crawl/crawl-0123456789abcdef01234567-m", b"", 404),
        ("GET", "/v2/crawl/crawl-0123456789abcdef01234567-m?before=x", b"", 400),
        ("DELETE", "/v2/batch/scrape/crawl-0123456789abcdef01234567-m", b"", 404),
        ("POST", "/v2/search", b"{}", 400),
        ("POST", "/v2/search", b'{"query": "tea"}', 400),
        ("POST", "/v2/search", b'{"query": "tea host:a.test", "sources": ["images"]}', 400),
        ("POST", "/v2/search", b'{"query": "tea", "includeDomains": ["a b"]}', 400),
        ("POST", "/v2/extract", b"{}", 404),
        ("POST", "/v2/crawl", b'{"url": "http://a.test/", "webhook": "ftp://a.test/"}', 400),
        ("POST", "/v2/crawl", b'{"url": "http://a.test/", "webhook": {"url": "http://a.test/", "events": ["x"]}}', 400),
        (
            "POST",
            "/v2/batch/scrape",
            b'{"urls": ["http://a.test/"], "webhook": {"url": "http://a.test/", "headers": {"Host": "b"}}}',
            400,
        ),
    ],
)
async def test_a_wrong_request_is_one_line_with_a_status(tmp_path, method, path, body, status):
    async with running(tmp_path) as rig:
        client = AsgiClient(served(rig))
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
        client = AsgiClient(served(rig))
        old = id_of("crawl", now - KEPT_S - 5, "0" * 12, ("markdown",))
        today = id_of("crawl", now - 5, "0" * 12, ("markdown",))
        for name in (old, today, "news"):
            document = {
                "apiVersion": "nephila.dev/v1",
                "kind": "CrawlJob",
                "metadata": {"name": name},
                "spec": {"seeds": [f"http://{name[:5]}.test/"], "paused": True},
            }
            await rig.control.apply_job(job_types.ApplyJob(job=document))
        answer = await client._request("POST", "/v2/crawl", b'{"url": "http://z.test/", "limit": 1}', HEADERS)
        assert answer.status_code == 200
        names = {job.name for job in (await rig.control.list_jobs(job_types.ListJobs())).jobs}
        assert old not in names
        assert {today, "news"} < names


class Receiver:
    """Takes events; the first attempts fail."""

    def __init__(self, *first: DeliveryAnswer) -> None:
        self.answers = list(first)
        self.events: list[dict] = []
        self.signed: list[bool] = []
        self.headers: list[dict] = []

    async def post(self, url, headers, body):
        if self.answers:
            return self.answers.pop(0)
        digest = hmac.new(KEY.encode(), body, hashlib.sha256).hexdigest()
        self.signed.append(headers["X-Firecrawl-Signature"] == f"sha256={digest}")
        self.headers.append(dict(headers))
        self.events.append(json.loads(body))
        return DeliveryAnswer(204)

    async def close(self):
        """Nothing is open."""


async def test_events_of_a_crawl_are_delivered_signed_and_in_order(tmp_path, monkeypatch):
    monkeypatch.setattr(webhooks, "POLL_S", 0.05)
    monkeypatch.setattr(webhooks, "RETRY", Backoff(0.01, 0.01))
    async with running(tmp_path) as rig:
        receiver = Receiver(DeliveryAnswer(503), DeliveryAnswer(0, "no answer in 10 s"))
        client = AsgiClient(served(rig, receiver))
        hook = {"url": "http://hooks.test/x", "headers": {"X-Mine": "1"}, "metadata": {"team": "tea"}}
        asked = json.dumps({"url": "http://a.test/", "crawlEntireDomain": True, "webhook": hook})
        begun = (await client._request("POST", "/v2/crawl", asked.encode(), HEADERS)).json()
        await until(lambda: receiver.events and receiver.events[-1]["type"] == "crawl.completed")
        types = [one["type"] for one in receiver.events]
        assert types == ["crawl.started", *["crawl.page"] * 3, "crawl.completed"]
        assert {one["id"] for one in receiver.events} == {begun["id"]}
        assert {page["metadata"]["title"] for one in receiver.events for page in one["data"]} == {
            "Teas",
            "Green tea",
            "Black tea",
        }
        assert all(receiver.signed)
        assert receiver.headers[0]["X-Mine"] == "1"
        assert receiver.events[0]["metadata"] == {"team": "tea"}
        wanted = {"url": "http://hooks.test/x", "events": ["failed"]}
        asked = json.dumps({"urls": ["http://b.test/none"], "webhook": wanted})
        await client._request("POST", "/v2/batch/scrape", asked.encode(), HEADERS)
        await until(lambda: receiver.events[-1]["type"] == "batch_scrape.failed")
        assert receiver.events[-1]["success"] is False


@pytest.mark.full
async def test_a_thousand_parallel_scrapes_are_answered_and_more_are_told_to_come_again(tmp_path):
    async with running(tmp_path) as rig:
        client = AsgiClient(served(rig))

        async def scrape(number):
            body = json.dumps({"url": f"http://h{number}.test/green", "timeout": 120_000}).encode()
            return await client._request("POST", "/v2/scrape", body, HEADERS)

        answers = await asyncio.gather(*(scrape(number) for number in range(MAX_WAITING + 50)))
        assert Counter(one.status_code for one in answers) == {200: MAX_WAITING, 429: 50}
        assert all("# Green tea" in one.text for one in answers if one.status_code == 200)
        assert (await scrape(MAX_WAITING + 50)).status_code == 200


class Refusing(Receiver):
    """Accepts so many events, then none."""

    def __init__(self, accepted: int) -> None:
        super().__init__()
        self.accepted = accepted
        self.refused = 0

    async def post(self, url, headers, body):
        if len(self.events) == self.accepted:
            self.refused += 1
            return DeliveryAnswer(503)
        return await super().post(url, headers, body)


async def test_events_continue_after_a_restart_without_a_loss_or_a_repeat(tmp_path, monkeypatch):
    """The first program is killed, without an end of its lease; the second one is closed."""
    monkeypatch.setattr(webhooks, "POLL_S", 0.02)
    monkeypatch.setattr(webhooks, "LEASE_S", 0.06)
    monkeypatch.setattr(webhooks, "RETRY", Backoff(0.01, 0.01))
    monkeypatch.setattr(webhooks, "ATTEMPTS", 10**6)
    async with running(tmp_path) as rig:
        authority = Authority(rig.control, administrator(KEY))
        first, second, third = Refusing(2), Refusing(1), Receiver()
        servers = [FirecrawlServer(authority, tmp_path, transport=one) for one in (first, second, third)]
        client = AsgiClient(application(rig.control, authority=authority, beside=servers[0].routes))
        hook = {"url": "http://hooks.test/x", "headers": {"X-Mine": "1"}, "metadata": {"team": "tea"}}
        asked = json.dumps({"url": "http://a.test/", "crawlEntireDomain": True, "webhook": hook})
        begun = (await client._request("POST", "/v2/crawl", asked.encode(), HEADERS)).json()
        await until(lambda: first.refused)
        for task in servers[0]._webhooks._tasks.values():
            task.cancel()
        await servers[1].start()
        await until(lambda: second.refused)
        await servers[1].close()
        await servers[2].start()
        await until(lambda: third.events and third.events[-1]["type"] == "crawl.completed")
        events = first.events + second.events + third.events
        types = [one["type"] for one in events]
        assert types == ["crawl.started", *["crawl.page"] * 3, "crawl.completed"]
        titles = [page["metadata"]["title"] for one in events for page in one["data"]]
        assert sorted(titles) == ["Black tea", "Green tea", "Teas"]
        assert {one["id"] for one in events} == {begun["id"]}
        assert all(first.signed + second.signed + third.signed)
        assert third.headers[0]["X-Mine"] == "1"
        assert third.events[0]["metadata"] == {"team": "tea"}
        await until(lambda: not servers[2]._webhooks._tasks)
        await servers[2].close()
        assert KEY.encode() not in (tmp_path / "webhooks.db").read_bytes()
        assert (tmp_path / "webhooks.db").stat().st_mode & 0o077 == 0


async def test_a_webhook_whose_key_or_crawl_is_gone_is_given_up(tmp_path, caplog):
    async with running(tmp_path) as rig:
        hook = json.dumps({"url": "http://hooks.test/x"})
        names = [id_of("crawl", 1_700_000_000 + number, "0" * 12, ("markdown",)) for number in range(2)]
        keys = [digest("another key that was removed"), digest(KEY)]
        kept = KeptCrawls(Database(tmp_path, TABLES))
        for name, key in zip(names, keys, strict=True):
            kept.add(KeptCrawl(name, "", hook, key.hex()), "a program before", 0)
        server = FirecrawlServer(Authority(rig.control, administrator(KEY)), tmp_path, transport=Receiver())
        await server.start()
        await until(lambda: caplog.text.count("is given up") == 2)
        await until(lambda: not server._webhooks._tasks)
        assert f"{names[0]} is given up: its API key is not known any more" in caplog.text
        assert f"{names[1]} is given up: there is no crawl" in caplog.text
        assert kept.take("another program", 10**12, 10**12, 10) == []
        await server.close()
        kept.close()


async def test_the_schema_of_a_crawl_survives_a_restart(tmp_path):
    async with running(tmp_path) as rig:
        rule = {
            "apiVersion": "nephila.dev/v1",
            "kind": "ParseRule",
            "metadata": {"name": "teas"},
            "spec": {"match": {"url": "^http://a.test/"}, "fields": {"heading": {"css": "h1"}}},
        }
        await rig.control.apply_rules(rule_types.ApplyRules(rules=[rule]))
        schema = {"type": "object", "properties": {"heading": {"type": "string"}}}
        asked = {"urls": ["http://a.test/green"], "formats": [{"type": "json", "schema": schema}]}
        client = AsgiClient(served(rig))
        begun = (await client._request("POST", "/v2/batch/scrape", json.dumps(asked).encode(), HEADERS)).json()
        restarted = AsgiClient(served(rig))

        async def status():
            return (await restarted._request("GET", f"/v2/batch/scrape/{begun['id']}", b"", HEADERS)).json()

        async def ended():
            return (await status())["status"] == "completed"

        await until(ended)
        assert (await status())["data"][0]["json"] == {"heading": "Green tea"}


async def test_a_webhook_to_a_private_address_is_not_dialled(tmp_path, caplog):
    async with running(tmp_path) as rig:
        client = AsgiClient(served(rig))
        hook = f"http://127.0.0.1:{rig.web.port}/hook"
        asked = json.dumps({"urls": ["http://a.test/green"], "webhook": hook})
        await client._request("POST", "/v2/batch/scrape", asked.encode(), HEADERS)
        await until(lambda: "is given up: refused" in caplog.text)
        assert "/hook" not in rig.web.paths()


async def test_pages_as_html_by_rule_and_by_search(tmp_path):
    """The official client; a page without a rule is an error that names the remedy."""
    async with running(tmp_path) as rig:
        server = tcp_server(served(rig), "127.0.0.1", 0, "--api")
        await server.open()
        client = Firecrawl(api_key=KEY, api_url=f"http://127.0.0.1:{server.port}")
        schema = {"type": "object", "properties": {"heading": {"type": "string"}}}
        wanted = [{"type": "json", "schema": schema}]
        with pytest.raises(errors.FirecrawlError, match="no rule extracts these fields"):
            await called(client.scrape, "http://a.test/green", formats=wanted)
        rule = {
            "apiVersion": "nephila.dev/v1",
            "kind": "ParseRule",
            "metadata": {"name": "teas"},
            "spec": {"match": {"url": "^http://a.test/"}, "fields": {"heading": {"css": "h1"}}},
        }
        await rig.control.apply_rules(rule_types.ApplyRules(rules=[rule]))
        page = await called(client.scrape, "http://a.test/green", formats=[*wanted, "html", "rawHtml"])
        assert page.json == {"heading": "Green tea"}
        assert "<h1>Green tea</h1>" in page.html
        await called(client.scrape, "http://b.test/black")
        found = await called(client.search, "tea", include_domains=["a.test", "b.test"])
        assert {one.url for one in found.web} == {"http://a.test/green", "http://b.test/black"}
        assert "tea" in found.web[0].description.lower()
        found = await called(client.search, "oxidised host:b.test", scrape_options={"formats": ["markdown"]})
        assert found.web[0].markdown.startswith("# Black tea")
        with pytest.raises(errors.FirecrawlError, match="no search of the web"):
            await called(client.search, "tea")
        await server.close()


@pytest.mark.parametrize(
    ("source", "cleaned"),
    [
        ("<p onclick=x() class=a>1 &lt; 2&nbsp;</p>", '<p class="a">1 &lt; 2&nbsp;</p>'),
        ("a<script>if (1 < 2) {}</script>b<style>x</style><!-- c -->", "ab"),
        ("<noscript><img src=x></noscript><svg><svg></svg><p>in</p></svg>out", "out"),
        ('<a href="javascript:x()" title="&quot;">t</a><br/>', '<a title="&quot;">t</a><br>'),
        ("<!doctype html><script>never closed", "<!doctype html>"),
    ],
)
def test_the_format_html_has_no_scripts(source, cleaned):
    assert clean_html(source) == cleaned


def endless(request):
    """A site whose pages lead to ten others, with a sitemap."""
    if request.path == "/robots.txt":
        return Reply(f"User-agent: *\nAllow: /\nSitemap: http://{request.host}/map.xml\n", type="text/plain")
    if request.path == "/map.xml":
        return Reply(SITEMAP.format(f"<url><loc>http://{request.host}/m</loc></url>"), type="application/xml")
    return article(request.path, *(f"/{request.path.strip('/')[:20]}{n}" for n in range(10)))


async def ended(client, path):
    """The status of a crawl once it has ended."""
    answer = {}

    async def is_over():
        nonlocal answer
        answer = (await client._request("GET", path, b"", HEADERS)).json()
        return answer["status"] != "scraping"

    await until(is_over)
    return answer


@pytest.mark.parametrize("beside", [{}, {"sitemap": "skip"}])
async def test_a_crawl_that_has_reached_its_limit_has_completed(tmp_path, beside):
    """With as many documents: a sitemap is none."""
    async with running(tmp_path, endless) as rig:
        client = AsgiClient(served(rig))
        wanted = json.dumps({"url": "a.test", "limit": 4, "crawlEntireDomain": True, **beside}).encode()
        begun = (await client._request("POST", "/v2/crawl", wanted, HEADERS)).json()
        answer = await ended(client, f"/v2/crawl/{begun['id']}")
        assert (answer["status"], answer["completed"], len(answer["data"])) == ("completed", 4, 4)
        assert (await client._request("GET", "/v2/crawl/active", b"", HEADERS)).json()["crawls"] == []


async def test_a_crawl_whose_quota_is_used_up_has_completed(tmp_path):
    async with running(tmp_path, endless) as rig:
        client = AsgiClient(served(rig))
        begun = (await client._request("POST", "/v2/crawl", b'{"url": "a.test"}', HEADERS)).json()["id"]
        document = (await rig.control.get_job(job_types.JobName(name=begun))).document
        document["spec"]["quota"] = {"pages": 3, "per": "month"}
        await rig.control.apply_job(job_types.ApplyJob(job=document))
        assert (await ended(client, f"/v2/crawl/{begun}"))["status"] == "completed"


async def test_a_batch_leaves_out_what_is_no_url_and_names_it(tmp_path):
    async with running(tmp_path) as rig:
        client = AsgiClient(served(rig))
        wanted = b'{"urls": ["a.test/green", "bad url", "mailto:x@a.test", "http://a.test/black"]}'
        answer = (await client._request("POST", "/v2/batch/scrape", wanted, HEADERS)).json()
        assert answer["invalidURLs"] == ["bad url", "mailto:x@a.test"]
        done = await ended(client, f"/v2/batch/scrape/{answer['id']}")
        assert {page["metadata"]["sourceURL"] for page in done["data"]} == {
            "http://a.test/green",
            "http://a.test/black",
        }


async def test_a_map_has_the_urls_of_the_site_alone(tmp_path):
    def site(request):
        if request.path == "/":
            return article("Home", "/in", "http://sub.a.test/x", "http://other.example/y", "mailto:a@a.test")
        return endless(request)

    async with running(tmp_path, site) as rig:
        client = AsgiClient(served(rig))

        async def urls(**options):
            asked = json.dumps({"url": "a.test", **options}).encode()
            answer = (await client._request("POST", "/v2/map", asked, HEADERS)).json()
            return {link["url"].removeprefix("http://") for link in answer["links"]}

        assert await urls() == {"a.test/", "a.test/in", "sub.a.test/x", "a.test/m"}
        assert await urls(includeSubdomains=False) == {"a.test/", "a.test/in", "a.test/m"}
        assert await urls(sitemap="skip") == {"a.test/", "a.test/in", "sub.a.test/x"}
        assert await urls(sitemap="only") == {"a.test/m"}
        assert await urls(limit=1) == {"a.test/"}


async def test_a_warning_says_why_there_is_no_source(tmp_path):
    def files(request):
        if request.path == "/a.txt":
            return Reply("a text of some words", type="text/plain")
        return endless(request)

    async with running(tmp_path, files) as rig:
        client = AsgiClient(served(rig))
        asked = b'{"url": "http://a.test/a.txt", "formats": ["rawHtml"]}'
        data = (await client._request("POST", "/v2/scrape", asked, HEADERS)).json()["data"]
        assert (data["rawHtml"], "http://a.test/a.txt" in data["warning"]) == (None, True)
