"""Test helper for middleware files: calls their functions as the downloader does, without a network.

from nephila.testing import load_middleware

def test_token():
    file = load_middleware("middleware/token.py")
    assert file.on_request("https://api.example.org/v1/")["X-Token"] == "abc"
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nephila.downloader.http.contract import HttpResponse
from nephila.downloader.http.target import TargetUrl
from nephila.downloader.middleware.user.user_contract import Outcome, Request, Response
from nephila.downloader.middleware.user.user_files import UserFile, load_file
from nephila.kernel.messages import FetchOutcome, FetchRequest, FetchResult
from nephila.kernel.runtime.errors import UsageError

__all__ = ["Ended", "MiddlewareFile", "Outcome", "Request", "Response", "UsageError", "load_middleware"]


@dataclass(frozen=True, slots=True)
class Ended:
    """A response after `on_response`."""

    failed: bool
    """Whether the function has ended the fetch."""
    reason: str
    """middleware or blocked when it has; else empty."""
    detail: str
    body: bytes


class MiddlewareFile:
    """A loaded file. A function that the file does not have changes nothing; exceptions reach the test."""

    def __init__(self, file: UserFile) -> None:
        self._hooks = file.hooks

    def on_request(self, url: str, *, job: str = "job", depth: int = 0, attempt: int = 1) -> dict[str, str]:
        """The headers that the file sets on the request for a URL."""
        headers: dict[str, str] = {}
        if "on_request" in self._hooks:
            request = FetchRequest(url=url, job=job, depth=depth, attempt=attempt)
            self._hooks["on_request"](Request(request, TargetUrl(url), headers.__setitem__))
        return headers

    def on_response(
        self,
        url: str,
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        content_type: str = "text/html",
        job: str = "job",
    ) -> Ended:
        """The response after the file has seen it."""
        response = HttpResponse()
        response.status, response.body, response.content_type = status, body, content_type
        response.headers = {name.lower(): value for name, value in (headers or {}).items()}
        if "on_response" in self._hooks:
            self._hooks["on_response"](Request(FetchRequest(url=url, job=job), TargetUrl(url)), Response(response))
        return Ended(bool(response.reason), response.reason, response.detail, response.body)

    def on_outcome(
        self, url: str, result: str = "fetched", *, reason: str = "", status: int = 200, seconds: float = 0.1
    ) -> None:
        """Pass an outcome to the file."""
        if "on_outcome" in self._hooks:
            request = FetchRequest(url=url, job="job")
            outcome = FetchOutcome(
                result=FetchResult[result.upper()], reason=reason, status=status, started_at=1.0, ended_at=1.0 + seconds
            )
            self._hooks["on_outcome"](Request(request, TargetUrl(url)), Outcome(outcome))


def load_middleware(path: str | Path) -> MiddlewareFile:
    """Load a file as the downloader does. Raises `UsageError` with path and line."""
    return MiddlewareFile(load_file(Path(path)))
