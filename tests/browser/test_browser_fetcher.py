"""A rendered page as a response: what comes of the document that the gateway saw and of the page of the browser."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from nephila.downloader.http.contract import Exchange, HttpRequest, HttpResponse
from nephila.downloader.http.route import NO_ROUTE
from nephila.downloader.http.target import TargetUrl
from nephila.kernel import messages as m
from nephila.kernel.documents.browser_schema import Browser, Budget, Step
from nephila.kernel.documents.job_schema import Parse
from nephila.kernel.process.memory_budget import unlimited
from nephila.kernel.runtime.clock import ManualClock
from nephila_browser.budget import BrowserBudget
from nephila_browser.contract import DocumentResponse, GatewayResult
from nephila_browser.engine import RenderedPage, RenderError
from nephila_browser.fetcher import BrowserFetcher
from nephila_browser.instructions import Instructions
from nephila_browser.pool import BrowserPool

from tests.browser.fake_engine import FakeEngine, FakeGateway, FakeProcess
from tests.browser.test_browser_pool import settle
from tests.downloader_settings import downloader_config
from tests.jobs import crawl_job


class Rig:
    """A fetcher over a fake browser and a fake gateway."""

    def __init__(self, **settings: Any) -> None:
        self.config = downloader_config(**settings)
        self.gateway, self.engine, self.clock = FakeGateway(), FakeEngine(), ManualClock()
        self.instructions = Instructions()
        self.pool = BrowserPool(self.engine, self.clock, processes=1, pages=4, max_uses=0, max_memory_bytes=0)
        self.fetcher = BrowserFetcher(
            self.config.http,
            self.config.browser,
            self.clock,
            self.gateway,
            self.pool,
            self.instructions,
            BrowserBudget(),
            unlimited(),
        )
        self.responses: list[HttpResponse] = []

    def serve(self, url: str, status: int = 200, body: bytes = b"", **headers: str) -> None:
        """What the gateway sees of the document."""
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        document = DocumentResponse(status=status, headers=names, body=body, address="8.8.8.8")
        self.gateway.results[url] = GatewayResult(document=document, requests=3, wire_bytes=10, blocked={"media": 2})

    async def begin(self, url: str) -> Any:
        """Start a fetch."""
        request = HttpRequest(
            TargetUrl(url), NO_ROUTE, origin=m.FetchRequest("j", b"k" * 16, url, "a.test", fetch_no=1)
        )
        handle = self.fetcher.fetch(request, self.responses.append)
        await settle()
        return handle

    @property
    def browser(self) -> FakeProcess:
        """The browser that runs."""
        return self.engine.started[-1]


async def test_the_body_is_the_document_of_the_browser_and_the_rest_is_that_of_the_server() -> None:
    rig = Rig()
    rig.serve("http://a.test/p", content_type="text/html; charset=latin-1", etag='"1"')
    await rig.begin("http://a.test/p#/route")
    assert rig.browser.urls == ["http://a.test/p#/route"], "the scripts need the route, the server does not"
    assert rig.gateway.registered[0].document_url == "http://a.test/p"
    rig.browser.pages[0].set_result(RenderedPage(html="<p>häßlich".encode(), url="http://a.test/p#/route"))
    await settle()
    (response,) = rig.responses
    assert (response.status, response.reason, response.rendered) == (200, "", True)
    assert (response.body.decode(), response.charset, response.headers["etag"]) == ("<p>häßlich", "utf-8", '"1"')
    assert (response.address, response.wire_bytes) == ("8.8.8.8", 10)
    assert rig.fetcher.blocked == {"media": 2}
    assert not rig.gateway.open


async def test_the_size_limit_of_a_job_holds_for_the_document_and_for_the_rendered_page() -> None:
    """A small document may build a large page."""
    rig = Rig()
    url = "http://a.test/p"
    rig.serve(url, content_type="text/html")
    request = HttpRequest(
        TargetUrl(url), NO_ROUTE, origin=m.FetchRequest("j", b"k" * 16, url, "a.test", fetch_no=1), max_bytes=1000
    )
    rig.fetcher.fetch(request, rig.responses.append)
    await settle()
    assert rig.gateway.registered[0].max_document_bytes == 1000
    rig.browser.pages[0].set_result(RenderedPage(html=b"x" * 1001, url=url))
    await settle()
    (response,) = rig.responses
    assert (response.reason, response.detail) == ("too_large", "rendered: 1,001 bytes")


async def test_a_redirect_and_an_error_end_as_without_a_browser() -> None:
    rig = Rig()
    rig.serve("http://a.test/r", status=301, location="http://b.test/")
    rig.serve("http://a.test/e", status=404, content_type="text/html")
    for path in "re":
        await rig.begin(f"http://a.test/{path}")
        rig.browser.complete(b"<p>error page of the browser")
        await settle()
    redirect, missing = rig.responses
    assert (redirect.status, redirect.headers["location"]) == (301, "http://b.test/")
    assert (missing.status, missing.rendered, missing.body) == (404, False, b"")


async def test_a_document_that_is_no_html_keeps_its_own_bytes_and_an_unwanted_type_is_refused() -> None:
    rig = Rig()
    rig.serve("http://a.test/pdf", body=b"%PDF", content_type="application/pdf")
    rig.serve("http://a.test/zip", body=b"PK", content_type="application/zip")
    for path in ("pdf", "zip"):
        await rig.begin(f"http://a.test/{path}")
        rig.browser.complete()
        await settle()
    document, unwanted = rig.responses
    assert (document.body, document.content_type, document.rendered) == (b"%PDF", "application/pdf", False)
    assert unwanted.reason == "content_type"


async def test_the_reason_of_the_gateway_counts_when_there_is_no_document() -> None:
    rig = Rig()
    rig.gateway.results["http://a.test/"] = GatewayResult(reason="address", detail="private")
    await rig.begin("http://a.test/")
    rig.browser.complete()
    await settle()
    assert (rig.responses[0].reason, rig.responses[0].detail) == ("address", "private")


async def test_a_script_that_leaves_the_host_is_a_redirect() -> None:
    rig = Rig()
    rig.serve("http://a.test/", content_type="text/html")
    await rig.begin("http://a.test/")
    rig.browser.pages[0].set_result(RenderedPage(html=b"<p>other site", url="http://b.test/x"))
    await settle()
    assert (rig.responses[0].status, rig.responses[0].headers["location"]) == (302, "http://b.test/x")
    assert rig.responses[0].body == b""


async def test_an_aborted_page_has_no_response_and_its_credentials_end() -> None:
    rig = Rig()
    handle = await rig.begin("http://a.test/")
    handle.abort()
    await settle()
    assert (rig.responses, rig.gateway.open) == ([], {})


async def test_when_the_browser_seconds_of_a_host_are_spent_its_pages_fail_without_a_browser() -> None:
    rig = Rig()
    browser = Browser(budget=Budget(host="10s"))
    rig.instructions.on_job(crawl_job(uid="j", browser=browser))
    rig.serve("http://a.test/", content_type="text/html")
    await rig.begin("http://a.test/")
    rig.clock.advance(11.0)
    rig.browser.pages[0].set_result(RenderedPage(html=b"<p>", url="http://a.test/"))
    await settle()
    await rig.begin("http://a.test/")
    assert [response.reason for response in rig.responses] == ["", "browser_budget"]
    assert len(rig.gateway.registered) == 1


async def test_the_steps_of_a_matching_rule_replace_those_of_the_job() -> None:
    instructions = Instructions()
    own = Browser(steps=[Step(click="a.job")])
    instructions.on_job(crawl_job(uid="j", browser=own, rules=["one", "two"]))
    for name, priority in (("one", 0), ("two", 5), ("other", 9)):
        spec = {"match": {"url": ["/list"]}, "priority": priority, "steps": [{"click": f"a.{name}"}]}
        document = msgspec.json.encode({"spec": {**spec, "fields": {"a": "h1"}}}).decode()
        instructions.on_rule(m.ParseRule(name=name, document=document))
    assert instructions.of("j", "http://a.test/list").steps == (Step(click="a.two"),)
    assert instructions.of("j", "http://a.test/page").steps == (Step(click="a.job"),)
    instructions.on_rule(m.ParseRule(name="two", deleted=True))
    assert instructions.of("j", "http://a.test/list").steps == (Step(click="a.one"),)


async def test_a_page_in_flight_does_not_delay_the_end_of_the_program() -> None:
    rig = Rig()
    await rig.begin("http://a.test/")
    await asyncio.wait_for(rig.fetcher.close(), 60)
    await settle()
    assert (rig.engine.closed, rig.gateway.closed, rig.gateway.open, rig.responses) == (True, True, {}, [])


async def test_what_the_browser_received_is_kept_for_archives_where_the_job_says_so() -> None:
    """With raw capture; a page that failed keeps nothing."""
    url = "http://a.test/p"
    for parse, capture in ((Parse(requisites=9), True), (None, True), (Parse(requisites=9), False)):
        rig = Rig(raw_capture=capture)
        rig.instructions.on_job(crawl_job(uid="j", parse=parse))
        rig.serve(url, content_type="text/html")
        exchange = Exchange(TargetUrl("http://a.test/x"), HttpResponse(), 1.0, 2.0)
        rig.gateway.results[url].exchanges.append(exchange)
        await rig.begin(url)
        assert rig.gateway.registered[0].keep_exchanges is (parse is not None and capture)
        rig.browser.pages[0].set_result(RenderedPage(html=b"<p>", url=url))
        await settle()
        assert list(rig.responses[0].exchanges) == [exchange]
    rig = Rig(raw_capture=True)
    rig.serve(url, content_type="text/html")
    rig.gateway.results[url].exchanges.append(exchange)
    await rig.begin(url)
    rig.browser.pages[0].set_exception(RenderError("step", "no element"))
    await settle()
    assert (rig.responses[0].reason, rig.responses[0].exchanges) == ("step", ())
