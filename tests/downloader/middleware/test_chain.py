"""The chain: order, and which middleware is called for which requests."""

from __future__ import annotations

import pytest
from nephila.downloader.http.config import HttpConfig
from nephila.downloader.http.contract import HttpRequest, HttpResponse
from nephila.downloader.http.request import RequestHeads
from nephila.downloader.http.route import NO_ROUTE
from nephila.downloader.http.target import TargetUrl
from nephila.downloader.middleware.chain import MiddlewareChain
from nephila.downloader.middleware.contract import Middleware
from nephila.downloader.middleware.validators import Validators
from nephila.kernel import messages as m

from tests.jobs import crawl_job

TARGET = TargetUrl("http://a.test/")


class Recorder(Middleware):
    """Writes down the calls that it receives."""

    def __init__(self, name: str, calls: list[str], jobs: tuple[str, ...] | None = None) -> None:
        self._name = name
        self._calls = calls
        self._jobs = jobs

    def acts_on(self, job: m.CrawlJob | None) -> bool:
        """For some jobs, or for all requests."""
        return self._jobs is None or (job is not None and job.uid in self._jobs)

    def on_request(self, request: m.FetchRequest, http_request: HttpRequest) -> None:
        """See `Middleware`."""
        self._calls.append(f"{self._name} request")

    def on_response(self, request: m.FetchRequest, target: TargetUrl, response: HttpResponse) -> None:
        """See `Middleware`."""
        self._calls.append(f"{self._name} response")

    async def close(self) -> None:
        """See `Middleware`."""
        self._calls.append(f"{self._name} close")


def passes(chain: MiddlewareChain, job: str) -> None:
    """One request and its response."""
    request = m.FetchRequest(url="http://a.test/", host="a.test", job=job)
    chain.on_request(request, HttpRequest(TARGET, NO_ROUTE))
    chain.on_response(request, TARGET, HttpResponse())


def test_responses_pass_in_reverse() -> None:
    """As an onion: the last one to see the request is the first one to see the response."""
    calls: list[str] = []
    passes(MiddlewareChain([Recorder("a", calls), Recorder("b", calls)]), "j")
    assert calls == ["a request", "b request", "b response", "a response"]


def test_a_middleware_is_called_for_its_jobs_only() -> None:
    """From the job's announcement to its deletion; a request without a job passes those that act on all."""
    calls: list[str] = []
    chain = MiddlewareChain([Recorder("all", calls), Recorder("mine", calls, ("j",))])
    passes(chain, "j")
    chain.on_job(crawl_job("j"))
    chain.on_job(crawl_job("k"))
    passes(chain, "j")
    passes(chain, "k")
    passes(chain, "")
    chain.on_job(m.CrawlJob("j", deleted=True))
    passes(chain, "j")
    assert [call for call in calls if call.endswith("request")] == [
        "all request",
        *("all request", "mine request"),
        *("all request",) * 3,
    ]


async def test_all_are_closed() -> None:
    """Whatever they act on."""
    calls: list[str] = []
    await MiddlewareChain([Recorder("a", calls), Recorder("b", calls, ())]).close()
    assert calls == ["a close", "b close"]


@pytest.mark.parametrize(
    ("etag", "sent"),
    [('"a"', b'If-None-Match: "a"\r\n'), ('"a"\r\nEvil: 1', b""), ('"\u00e9"', b""), ("", b"")],
    ids=["plain", "two lines", "not ascii", "none"],
)
def test_validators_that_fit_on_a_line_are_sent(etag: str, sent: bytes) -> None:
    """A stored validator is text of a server: it cannot smuggle a header into a request."""
    http_request = HttpRequest(TARGET, NO_ROUTE)
    Validators().on_request(m.FetchRequest(url="http://a.test/", host="a.test", etag=etag), http_request)
    head = RequestHeads(HttpConfig()).make(http_request)
    assert head.endswith(sent + b"\r\n")
    assert b"Evil" not in head
    assert (b"If-None-Match" in head) is bool(sent)
