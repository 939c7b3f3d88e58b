"""From a response to messages: its outcome, and the page when there is one. Pure.

README.md, "How a fetch ends", has the table of results and reasons.
"""

from __future__ import annotations

from email.utils import parsedate_to_datetime

from nephila.downloader.http.contract import HttpResponse
from nephila.downloader.http.response.response_head import first_of, values_of
from nephila.downloader.http.target import TargetUrl
from nephila.kernel import messages as m
from nephila.kernel.fragment_routes import parse_routed
from nephila.kernel.outcomes import given_back
from nephila.kernel.reasons.status_words import status_reason
from nephila.kernel.reasons.table import AnyReason, Reason, row_of, set_reason

# Names of the module: in Python 3.11 an attribute of an enum class costs ten times as much.
ROBOTS, FETCHED, NOT_MODIFIED = m.FetchKind.ROBOTS, m.FetchResult.FETCHED, m.FetchResult.NOT_MODIFIED
NONE = Reason.NONE
REDIRECTS = frozenset((300, 301, 302, 303, 307, 308))
MAX_RETRY_AFTER_S = 86_400.0
MAX_LOCATION = 8192
"""Characters of a redirect target, as of a link in a page: WARC readers reject record headers over 32 KB."""


def undialled(
    request: m.FetchRequest, result: m.FetchResult, reason: AnyReason, detail: str, now: float
) -> m.FetchOutcome:
    """The outcome of a request that ended before a server was dialled."""
    outcome = given_back(request)
    outcome.result = result
    set_reason(outcome, reason)
    outcome.detail = detail
    outcome.ended_at = now
    return outcome


def outcome_of(
    request: m.FetchRequest, target: TargetUrl, response: HttpResponse, started: float, ended: float
) -> m.FetchOutcome:
    """The outcome of a response; `target` is the last URL fetched (a robots.txt may have been redirected)."""
    status = response.status
    outcome = given_back(request)
    outcome.result = FETCHED
    outcome.status = status
    outcome.started_at = started
    outcome.ended_at = ended
    outcome.address = response.address
    outcome.wire_bytes = response.wire_bytes
    outcome.browser_s = response.browser_s
    outcome.content_type = response.content_type
    if response.reason or not (200 <= status < 300 or _is_page_of_redirect(request, response)):
        outcome.result, reason, outcome.detail, outcome.location = _judge(request, target, response)
        if reason:
            set_reason(outcome, reason)
            outcome.cause = response.cause or outcome.cause
    if "retry-after" in response.headers:
        # The longest of contradicting values is the polite one.
        outcome.retry_after_s = max(
            retry_after_s(value, ended) for value in response.headers["retry-after"].split("\n")
        )
    if request.kind == ROBOTS and not outcome.reason:
        outcome.body = response.body
    return outcome


def _is_page_of_redirect(request: m.FetchRequest, response: HttpResponse) -> bool:
    """Whether a redirect status came with a page and leads nowhere, as browsers show it."""
    return bool(response.body) and request.kind != ROBOTS and response.is_page


def _judge(
    request: m.FetchRequest, target: TargetUrl, response: HttpResponse
) -> tuple[m.FetchResult, AnyReason, str, str]:
    """Result, reason, detail and location of a response other than a fetched page."""
    if reason := response.reason:
        result = m.FetchResult.FAILED
        if reason == Reason.CONTENT_TYPE:
            result = m.FetchResult.CONTENT_TYPE
        elif row_of(reason).ends is None:
            # Given back with started_at: the server may have seen it, so the host delay applies; no attempt is counted.
            result = m.FetchResult.UNSPECIFIED
        return result, reason, response.detail, ""
    status = response.status
    if status == 304 and (request.etag or request.last_modified):
        return NOT_MODIFIED, NONE, "", ""
    if status in REDIRECTS and (status != 300 or not response.is_page):
        try:
            return m.FetchResult.REDIRECT, NONE, "", parse_routed(_location(response), target.href).href
        except ContradictionError as error:
            # Rules that nobody can tell are no missing rules: the host counts as unreachable.
            reason = Reason.PROTOCOL if request.kind == ROBOTS else Reason.BAD_REDIRECT
            return m.FetchResult.FAILED, reason, str(error), ""
        except ValueError as error:
            return m.FetchResult.FAILED, Reason.BAD_REDIRECT, str(error), ""
    return m.FetchResult.FAILED, status_reason(status), "", ""


class ContradictionError(ValueError):
    """A redirect names several targets."""


def location_of(target: TargetUrl, response: HttpResponse) -> TargetUrl:
    """The target of a redirect; raises `ValueError`."""
    return TargetUrl(_location(response), target.href)


def _location(response: HttpResponse) -> str:
    """The Location header; raises `ValueError`. Bytes beyond ASCII are percent-encoded as they are, as in Chromium.
    Equal repetitions are one; different ones have no meaning (RFC 9110 10.2.2, Chromium, Firefox)."""
    values = values_of(response.headers, "location")
    if not values:
        raise ValueError(f"status {response.status} without a Location")
    if len(values) > 1:
        raise ContradictionError(f"{len(values)} different Location headers")
    value = values[0]
    if len(value) > MAX_LOCATION:
        raise ValueError(f"a Location of {len(value):,} characters")
    return value if value.isascii() else percent_encoded(value)


def percent_encoded(value: str) -> str:
    """A header value whose bytes beyond ASCII are percent-encoded; a header is Latin-1 as text."""
    return "".join(char if char < "\x80" else f"%{ord(char):02X}" for char in value)


def retry_after_s(value: str, now: float) -> float:
    """Seconds of a Retry-After header, a number or an HTTP date (RFC 9110 10.2.3); at most a day, 0 if invalid."""
    value = value.strip()
    if value.isascii() and value.isdigit():
        return min(float(value[:9]), MAX_RETRY_AFTER_S)
    try:
        seconds = parsedate_to_datetime(value).timestamp() - now
    except (ValueError, TypeError, OverflowError):
        return 0.0
    return min(max(seconds, 0.0), MAX_RETRY_AFTER_S)


def page_of(request: m.FetchRequest, response: HttpResponse, started: float, ended: float) -> m.Page:
    """The page of a response that is one, or of a 304; instants are seconds since 1970 UTC."""
    headers = response.headers
    get = headers.get
    return m.Page(
        job=request.job,
        url_key=request.url_key,
        url=request.url,
        host=request.host,
        fetch_no=request.fetch_no,
        attempt=request.attempt,
        depth=request.depth,
        status=response.status,
        content_type=response.content_type,
        charset=response.charset,
        body=response.body,
        fetched_at=started,
        address=response.address,
        etag=first_of(headers, "etag"),
        last_modified=first_of(headers, "last-modified"),
        request_head=response.request_head,
        response_head=response.response_head,
        wire_body=response.wire_body or b"",
        wire_bytes=response.wire_bytes,
        not_modified=response.status == 304,
        robots_tag=get("x-robots-tag", "").lower(),
        priority=int(request.priority),
        took_s=max(ended - started, 0.0),
        truncated=response.truncated,
        context=request.context,
        rendered=response.rendered,
        captures=response.captures,
        refresh=get("refresh", ""),
        final_url=_final_url(request.url, response) if response.rendered else "",
    )


def _final_url(requested: str, response: HttpResponse) -> str:
    """Where the scripts of a page have led within its host; empty when the URL has only got another fragment."""
    moved = response.page_url.partition("#")[0]
    return moved if moved and moved != requested.partition("#")[0] else ""


_TRUNCATED: dict[AnyReason, str] = {
    Reason.TOO_LARGE: "length",
    Reason.TIMEOUT: "time",
    Reason.RENDER_TIMEOUT: "time",
    Reason.DISCONNECTED: "disconnect",
}


def exchange_of(
    request: m.FetchRequest, target: TargetUrl, response: HttpResponse, started: float, ended: float
) -> m.Page:
    """A response that is not a page, as received. Credentials of its URL are removed."""
    made = page_of(request, response, started, ended)
    made.url = target.shown
    made.not_modified = False
    if not made.truncated and response.reason:
        made.truncated = _TRUNCATED.get(response.reason, "unspecified")
    return made
