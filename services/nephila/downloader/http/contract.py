"""The contract of a fetcher: one request in, one response out. Every implementation guarantees:

- `fetch()` returns at once. `on_done` is called exactly once, never before `fetch()` has returned, and not at all after
  `abort()`. It may start the next fetch.
- Only `route.addresses` are dialled, up to three of them in order: they have passed the egress guard.
- Every limit applies while bytes arrive; the memory of a response is bounded by the limits.
- No redirect is followed, no response is cached, no cookie is stored: middleware/ does that. Credentials of a URL are
  sent and never logged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import msgspec

from nephila.downloader.http.route import Route
from nephila.downloader.http.target import TargetUrl
from nephila.kernel.messages import Capture, FetchRequest
from nephila.kernel.process.memory_budget import Reservation
from nephila.kernel.reasons.table import AnyReason, Reason

MAX_DIALS = 3
MAX_HEAD_BYTES = 64 << 10
MAX_INTERIM = 16
"""1xx response heads before the final one; servers send one or two."""
SLICE_S = 0.01
"""Content decoding continues in a later turn of the event loop after this time; one step takes some milliseconds."""
# An unused body (of a 404, of a redirect) is read up to this size to keep the connection; a longer one closes it.
DRAIN_BYTES = 64 << 10


class SiteCookie(NamedTuple):
    """A cookie between the jar of a job and a browser."""

    name: str
    value: str
    domain: str
    host_only: bool
    path: str
    secure: bool
    expires_at: float
    """Seconds since 1970 UTC; infinite for a cookie of the session."""


class SiteCookies(Protocol):
    """The cookies of a job for the site of one request, for a browser."""

    configured: str
    """The Cookie header of the settings; empty: none."""

    def read(self) -> list[SiteCookie]:
        """The cookies of the jar that belong to the site."""

    def write(self, before: Sequence[SiteCookie], after: Sequence[SiteCookie]) -> None:
        """Store what a browser has changed. Cookies of other sites are left out."""


class HttpRequest(msgspec.Struct, eq=False):
    """One HTTP request. Headers come in addition to those of the settings.

    A struct, as `HttpResponse`: both are made for each page, and their `__init__` is no Python code.
    """

    target: TargetUrl
    route: Route
    any_type: bool = False
    """Whether the body of every media type is wanted."""
    keep: int = 0
    """Above 0: at most that many decoded bytes are read; a longer body is cut off without an error."""
    max_bytes: int = 0
    """Above 0: replaces both size limits of the settings, on the wire and decoded."""
    on_sent: Callable[[], None] | None = None
    """Called when the request head has been written: the server sees the request then, not at the dial."""
    origin: FetchRequest | None = None
    """The request that it is sent for; None for one of a middleware, such as a login."""
    forwarded: bool = False
    """The request of another client, the browser. It has the `method` of that client. Only its own headers are sent,
    and the body of every status is returned, not only of pages."""
    method: str = "GET"
    headers: dict[str, str] | None = None
    secret_headers: dict[str, str] | None = None
    """Headers that archives leave out: credentials, cookies, headers of the settings for single hosts."""
    body: bytes | None = None
    cookies: SiteCookies | None = None
    """Of a request that a browser may render, where its job has a jar."""

    __repr__ = object.__repr__
    """Without the fields: secret headers are never logged."""

    def add_header(self, name: str, value: str) -> None:
        """Send a header that archives may show."""
        if self.headers is None:
            self.headers = {}
        self.headers[name] = value

    def add_secret_header(self, name: str, value: str) -> None:
        """Send a header that archives leave out."""
        if self.secret_headers is None:
            self.secret_headers = {}
        self.secret_headers[name] = value

    def post_form(self, body: bytes, content_type: str = "application/x-www-form-urlencoded") -> None:
        """Send a form, encoded as in a URL if nothing else is said."""
        self.method, self.body = "POST", body
        self.add_header("Content-Type", content_type)

    def wants_body(self, response: HttpResponse) -> bool:
        """Whether the body of a response with this head is returned."""
        return self.forwarded or response.is_page

    def own_headers(self) -> dict[str, str]:
        """The headers of this request alone."""
        return {**(self.headers or {}), **(self.secret_headers or {})}


# A name of the module: in Python 3.11 an attribute of an enum class costs ten times as much.
_NONE = Reason.NONE


class HttpResponse(msgspec.Struct, eq=False):
    """The end of a fetch. `reason` is empty when a complete response came; `status` may be set as well as a reason.

    Reasons: connect, tls, timeout, too_large, protocol, disconnected, encoding; content_type = stopped after the
    headers because the media type is not wanted; stale = a kept connection broke before the first byte of the response;
    memory = the body waited for memory until the time limit.
    `body` is decoded from transfer and content coding. `wire_body` is None when it equals `body` or is not needed.
    `error_body` is the body of a response that is no page as received, with its content coding, up to `DRAIN_BYTES`.
    `wire_bytes` counts the body as received, without framing. With raw capture, bodies of other statuses than 2xx are
    stored as well, up to `DRAIN_BYTES`; `truncated` is the WARC term for the reason why a body is incomplete.
    """

    status: int = 0
    headers: dict[str, str] = {}
    content_type: str = ""
    charset: str = ""
    body: bytes = b""
    error_body: bytes = b""
    wire_body: bytes | None = None
    wire_bytes: int = 0
    truncated: str = ""
    address: str = ""
    reason: AnyReason = _NONE
    detail: str = ""
    cause: str = ""
    """The finer word of the table of reasons, where there is one."""
    head_at: float = 0.0
    """Monotonic instant at which the response head was complete; 0 without one."""
    request_head: bytes = b""
    response_head: bytes = b""
    memory: Reservation | None = None
    """Memory that is reserved for a large body. The receiver releases it when the body is no longer needed."""
    rendered: bool = False
    """`body` is the document of a browser."""
    browser_s: float = 0.0
    """Time spent in a browser."""
    page_url: str = ""
    """Of a rendered page: its URL at the end; scripts may have changed it."""
    unauthorized: int = 0
    """Of a rendered page: 401 or 403, if its scripts got one from its site; 401 if both."""
    captures: list[Capture] = []
    """What the browser captured beside the document; bodies only with raw capture."""
    exchanges: Sequence[Exchange] = ()
    """Of a rendered page whose job archives requisites: the other responses that its browser received."""

    @property
    def is_page(self) -> bool:
        """Whether the response is a document: 2xx, and a redirect status that leads nowhere (Fetch standard,
        "HTTP-redirect fetch": if location URL is null, return response)."""
        status = self.status
        if 200 <= status < 300:
            return True
        return 300 <= status < 400 and status != 304 and not self.headers.get("location", "").strip()

    __repr__ = object.__repr__
    """Without the fields: a body is no part of a log line."""


class Exchange(NamedTuple):
    """One response, and when its fetch started and ended, in seconds since 1970 UTC."""

    target: TargetUrl
    response: HttpResponse
    started: float
    ended: float


OnDone = Callable[[HttpResponse], None]


class Handle(Protocol):
    """A fetch in flight."""

    def abort(self) -> None:
        """Stop the fetch: its connection is closed and `on_done` is not called."""


class Fetcher(Protocol):
    """Sends HTTP requests; the module docstring is its contract."""

    def fetch(self, request: HttpRequest, on_done: OnDone) -> Handle:
        """Start one fetch."""

    async def close(self) -> None:
        """Abort all fetches and close all connections."""


class FetchError(Exception):
    """A fetch ends without a response: `reason` in one word, a text for people, and the finer word if there is one."""

    def __init__(self, reason: AnyReason, detail: str, cause: str = "") -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail
        self.cause = cause
