"""Ends a fetch as failed(blocked) when the site sent a block page instead of content.

No page is published then, so nothing of it is stored, followed or counted for a rule. The scheduler pauses the host as
after a 429; the detail names the product. A robots.txt is not judged: its status alone decides (RFC 9309).
"""

from __future__ import annotations

from collections import Counter

from nephila.downloader.http.config import HttpConfig
from nephila.downloader.http.contract import FetchError, HttpResponse
from nephila.downloader.http.target import TargetUrl
from nephila.downloader.middleware.block_pages import LOGIN_PAGE, SCAN_BYTES, block_page_of
from nephila.downloader.middleware.contract import Middleware
from nephila.downloader.outcome import ROBOTS
from nephila.kernel import messages as m
from nephila.kernel.documents.job_document import spec_of
from nephila.kernel.reasons.table import Reason


class BlockDetector(Middleware):
    """Judges each response. `found` counts block pages by their detail."""

    def __init__(self, config: HttpConfig, is_on: bool) -> None:
        self._config = config
        self._is_on = is_on
        self._with_login: set[str] = set()
        self.found: Counter[str] = Counter()

    def on_job(self, job: m.CrawlJob) -> None:
        if not job.deleted and spec_of(job).login is not None:
            self._with_login.add(job.uid)
        else:
            self._with_login.discard(job.uid)

    def acts_on(self, job: m.CrawlJob | None) -> bool:
        return self._is_on

    def on_response(self, request: m.FetchRequest, target: TargetUrl, response: HttpResponse) -> None:
        if response.reason or request.kind == ROBOTS:
            return
        body = response.body
        if response.error_body:
            body = _decoded(self._config, response)
        block = block_page_of(response.status, response.headers, response.content_type, body, target.path)
        if not block:
            return
        reason = Reason.LOGIN_PAGE if block is LOGIN_PAGE else Reason.BLOCKED
        if reason is Reason.LOGIN_PAGE and (request.seed or request.job in self._with_login):
            return
        self.found[block.partition(":")[0]] += 1
        response.reason, response.detail = reason, block


def _decoded(config: HttpConfig, response: HttpResponse) -> bytes:
    """The beginning of an error body without its content coding; as received where that fails."""
    encoding = response.headers.get("content-encoding", "")
    if not encoding:
        return response.error_body
    # With their libraries 2 % of the CPU of a start, and few error bodies have a coding.
    from nephila.downloader.http.response.body import Body
    from nephila.downloader.http.response.decode import codings_of

    try:
        body = Body(config, codings_of(encoding), SCAN_BYTES)
        body.feed(response.error_body)
        body.full = True  # it may have been cut off
        return body.finish()
    except FetchError:
        return response.error_body
