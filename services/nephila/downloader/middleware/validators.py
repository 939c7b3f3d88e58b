"""Conditional requests: the validators of the copy that is stored (RFC 9110 sections 13.1.2 and 13.1.3)."""

from __future__ import annotations

from nephila.downloader.http.contract import HttpRequest
from nephila.downloader.middleware.contract import Middleware
from nephila.kernel import messages as m


class Validators(Middleware):
    """Sends ETag and Last-Modified of the stored copy back, so that an unchanged page is answered with 304."""

    def on_request(self, request: m.FetchRequest, http_request: HttpRequest) -> None:
        if request.etag and _is_sendable(request.etag):
            http_request.add_header("If-None-Match", request.etag)
        if request.last_modified and _is_sendable(request.last_modified):
            http_request.add_header("If-Modified-Since", request.last_modified)


def _is_sendable(value: str) -> bool:
    """Whether a text of the server fits on one header line."""
    return value.isprintable() and value.isascii()
