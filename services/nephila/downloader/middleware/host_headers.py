"""Headers of the configuration that go to some hosts only: "HOST Name: value".

HOST is a host key, or "*.example.org" for all hosts below a name, or "*" for every host. Invariant: a header leaves for
the hosts it names and for no other, redirects included, since it is looked up by the host that is dialled.
"""

from __future__ import annotations

from nephila.downloader.config import DownloaderConfig
from nephila.downloader.http.contract import HttpRequest, HttpResponse
from nephila.downloader.http.headers import split_header
from nephila.downloader.http.target import Target
from nephila.kernel import messages as m


class HostHeaders:
    """See the module; `Middleware`. O(patterns) for a request."""

    def __init__(self, config: DownloaderConfig) -> None:
        self._lines = [split_header(line) for line in config.headers]
        self._lines = [line for line in self._lines if line[0]]

    def __bool__(self) -> bool:
        return bool(self._lines)

    def on_job(self, job: m.CrawlJob) -> None:
        """See `Middleware`."""

    def before_request(self, request: m.FetchRequest, target: Target) -> None:
        """See `Middleware`."""

    def on_request(self, request: m.FetchRequest, http_request: HttpRequest) -> None:
        """See `Middleware`."""
        host = http_request.target.host_header
        for pattern, name, value in self._lines:
            if matches(pattern, host):
                http_request.headers[name] = value

    def on_response(self, request: m.FetchRequest, target: Target, response: HttpResponse) -> None:
        """See `Middleware`."""


def matches(pattern: str, host_key: str) -> bool:
    """Whether a host key is one that the pattern names."""
    if pattern == "*":
        return True
    return host_key.endswith(pattern[1:]) if pattern.startswith("*.") else host_key == pattern
