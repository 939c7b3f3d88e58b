"""Headers of the settings that go to certain hosts only: "HOST Name: value".

HOST is a host key, "*.example.org" for all hosts below a name, or "*" for every host. Invariant: a header is sent to
the hosts that it names and to no other, redirects included: it is looked up by the host of each request.
"""

from __future__ import annotations

from nephila.downloader.config import DownloaderConfig
from nephila.downloader.http.contract import HttpRequest
from nephila.downloader.http.headers import split_header
from nephila.downloader.middleware.contract import Middleware
from nephila.kernel import messages as m


class HostHeaders(Middleware):
    """Adds the headers whose host pattern matches. O(patterns) per request."""

    def __init__(self, config: DownloaderConfig) -> None:
        lines = [split_header(line) for line in config.headers]
        self._lines = [line for line in lines if line[0]]

    def acts_on(self, job: m.CrawlJob | None) -> bool:
        """See `Middleware.acts_on`."""
        return bool(self._lines)

    def on_request(self, request: m.FetchRequest, http_request: HttpRequest) -> None:
        """See `Middleware.on_request`."""
        host = http_request.target.host_header
        for pattern, name, value in self._lines:
            if matches(pattern, host):
                http_request.add_secret_header(name, value)


def matches(pattern: str, host_key: str) -> bool:
    """Whether a pattern names a host key."""
    if pattern == "*":
        return True
    return host_key.endswith(pattern[1:]) if pattern.startswith("*.") else host_key == pattern
