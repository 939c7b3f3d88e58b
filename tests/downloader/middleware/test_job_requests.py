"""Language, Referer and size limit of a job in its requests."""

from __future__ import annotations

import pytest
from nephila.downloader.http.config import HttpConfig
from nephila.downloader.http.contract import HttpRequest
from nephila.downloader.http.route import NO_ROUTE
from nephila.downloader.http.target import TargetUrl
from nephila.downloader.middleware.host_headers import JobRequests
from nephila.kernel.documents.job_document import from_json
from nephila.kernel.messages import FetchKind, FetchRequest
from nephila.kernel.runtime.errors import UsageError

from tests.jobs import crawl_job

JOB = crawl_job(uid="j", language="de", referer="http://a.test/list", max_page_bytes=1000)
HEADERS = {"Accept-Language": "de", "Referer": "http://a.test/list"}


def changed(config: HttpConfig, request: FetchRequest, max_bytes: int = 0) -> HttpRequest:
    """The request after the middleware, which has read the job."""
    middleware = JobRequests(config)
    middleware.on_job(JOB)
    assert middleware.acts_on(JOB)
    http_request = HttpRequest(TargetUrl("http://a.test/"), NO_ROUTE, max_bytes=max_bytes)
    middleware.on_request(request, http_request)
    return http_request


def test_requests_of_the_job_have_its_headers_and_limit():
    """A lower limit stays; robots.txt and other jobs are not affected."""
    found = changed(HttpConfig(), FetchRequest(job="j"))
    assert (found.own_headers(), found.max_bytes) == (HEADERS, 1000)
    assert changed(HttpConfig(), FetchRequest(job="j"), 500).max_bytes == 500
    assert changed(HttpConfig(), FetchRequest(job="j"), 50_000).max_bytes == 1000
    for other in (FetchRequest(job="k"), FetchRequest(job="j", kind=FetchKind.ROBOTS)):
        found = changed(HttpConfig(), other)
        assert (found.own_headers(), found.max_bytes) == ({}, 0)


def test_a_header_of_the_settings_comes_first():
    """It is in the common part of all requests."""
    found = changed(HttpConfig(headers=["accept-language: fr"]), FetchRequest(job="j"))
    assert found.own_headers() == {"Referer": "http://a.test/list"}


@pytest.mark.parametrize(("value", "good"), [("de", True), ("de-AT, en;q=0.5, *;q=0.1", True), ("de\r\nX: y", False)])
def test_a_language_is_a_header_value(value, good):
    """Nothing else can be put into the head."""
    document = {
        "apiVersion": "nephila.dev/v1",
        "kind": "CrawlJob",
        "metadata": {"name": "j"},
        "spec": {"seeds": ["http://a.test/"], "language": value},
    }
    if good:
        assert from_json(document).spec.language == value
    else:
        with pytest.raises(UsageError, match=r"spec\.language"):
            from_json(document)
