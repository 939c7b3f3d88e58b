"""What the functions of a user's middleware receive: a request, its response, its outcome.

These objects show what may be read and changed; everything else of the downloader stays hidden. `nephila.testing` has
the same types for tests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from nephila.downloader.http.contract import HttpResponse
from nephila.downloader.http.target import TargetUrl
from nephila.kernel import messages as m
from nephila.kernel.reasons.table import Reason

_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


class Request:
    """A request that is about to be sent, or that a response belongs to."""

    __slots__ = ("_add", "_request", "_target")

    def __init__(
        self, request: m.FetchRequest, target: TargetUrl, add_header: Callable[[str, str], None] | None = None
    ) -> None:
        self._request = request
        self._target = target
        self._add = add_header

    @property
    def url(self) -> str:
        """The URL, without credentials."""
        return self._target.shown

    @property
    def host(self) -> str:
        """The host key: the name, and the port where it is not the default."""
        return self._target.host_header

    @property
    def job(self) -> str:
        """Identity of the job; empty for a robots.txt."""
        return self._request.job

    @property
    def depth(self) -> int:
        """Links from a seed."""
        return self._request.depth

    @property
    def attempt(self) -> int:
        """Number of the try, from 1."""
        return self._request.attempt

    @property
    def is_robots(self) -> bool:
        """Whether a robots.txt is fetched."""
        return self._request.kind == m.FetchKind.ROBOTS

    def set_header(self, name: str, value: str) -> None:
        """Send a header with this request, in `on_request` only. Archives leave it out."""
        if self._add is None:
            raise RuntimeError("set_header works in on_request only")
        if not _TOKEN.fullmatch(name):
            raise ValueError(f"header name {name!r}")
        if not value.isascii() or not value.isprintable():
            raise ValueError(f"the value of header {name} is not printable ASCII")
        if name.lower() in ("host", "content-length", "transfer-encoding", "connection"):
            raise ValueError(f"the header {name} belongs to the fetcher")
        self._add(name, value)


class Response:
    """A response. `fail` ends the fetch; a new `body` replaces the page."""

    __slots__ = ("_response",)

    def __init__(self, response: HttpResponse) -> None:
        self._response = response

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers, names in lower case."""
        return MappingProxyType(self._response.headers)

    @property
    def content_type(self) -> str:
        """The media type without parameters."""
        return self._response.content_type

    @property
    def body(self) -> bytes:
        """The decoded body of a status 2xx; else empty."""
        return self._response.body

    @body.setter
    def body(self, value: bytes) -> None:
        if not isinstance(value, bytes):
            raise TypeError(f"the body is {type(value).__name__}, expected bytes")
        self._response.body = value

    def fail(self, detail: str, *, blocked: bool = False) -> None:
        """End the fetch as failed(middleware), or with `blocked` as failed(blocked), which pauses the host."""
        if not isinstance(detail, str):
            raise TypeError(f"the detail is {type(detail).__name__}, expected str")
        self._response.reason, self._response.detail = (Reason.BLOCKED if blocked else Reason.MIDDLEWARE), detail


class Outcome:
    """How a fetch has ended; read only."""

    __slots__ = ("_outcome",)

    def __init__(self, outcome: m.FetchOutcome) -> None:
        self._outcome = outcome

    @property
    def result(self) -> str:
        """fetched, not_modified, redirect, content_type, denied, failed, expired or unspecified (given back)."""
        return self._outcome.result.name.lower()

    @property
    def reason(self) -> str:
        """Why it failed, as in docs/services.md; empty for a page."""
        return self._outcome.reason

    @property
    def detail(self) -> str:
        """The reason in more words."""
        return self._outcome.detail

    @property
    def status(self) -> int:
        """The HTTP status; 0 without a response."""
        return self._outcome.status

    @property
    def location(self) -> str:
        """The target of a redirect."""
        return self._outcome.location

    @property
    def seconds(self) -> float:
        """Duration of the fetch."""
        return max(self._outcome.ended_at - self._outcome.started_at, 0.0) if self._outcome.started_at else 0.0
