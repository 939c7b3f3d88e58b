"""What settings and jobs change in requests: headers for certain hosts, "HOST Name: value"; headers and size of a job.

HOST is a host key, "*.example.org" for all hosts below a name, or "*" for every host. Invariant: a header is sent to
the hosts that it names and to no other, redirects included: it is looked up by the host of each request. A header of
the settings comes before that of a job.
"""

from __future__ import annotations

from collections.abc import Callable

from nephila.downloader.http.config import HttpConfig
from nephila.downloader.http.contract import HttpRequest
from nephila.downloader.http.headers import split_header
from nephila.downloader.middleware.contract import Middleware
from nephila.kernel import messages as m
from nephila.kernel.documents.job_document import spec_of
from nephila.kernel.documents.job_schema import JobSpec

HEADERS: dict[str, Callable[[JobSpec], str]] = {
    "Accept-Language": lambda spec: spec.language,
    "Referer": lambda spec: spec.referer,
}
"""Header → its value in a job; "" = none."""


class HostHeaders(Middleware):
    """Adds the headers whose host pattern matches. O(patterns) per request."""

    def __init__(self, config: HttpConfig) -> None:
        lines = [split_header(line) for line in config.headers]
        self._lines = [line for line in lines if line[0]]

    def acts_on(self, job: m.CrawlJob | None) -> bool:
        return bool(self._lines)

    def on_request(self, request: m.FetchRequest, http_request: HttpRequest) -> None:
        host = http_request.target.host_header
        for pattern, name, value in self._lines:
            if matches(pattern, host):
                http_request.add_secret_header(name, value)


class JobRequests(Middleware):
    """Sends the headers of a job, and lowers the limit of the size of its pages. O(headers of the job) per request."""

    def __init__(self, config: HttpConfig) -> None:
        lines = [split_header(line) for line in config.headers]
        common = {name.lower() for host, name, _ in lines if not host}
        self._headers = {name: value for name, value in HEADERS.items() if name.lower() not in common}
        self._jobs: dict[str, tuple[dict[str, str], int]] = {}

    def on_job(self, job: m.CrawlJob) -> None:
        self._jobs.pop(job.uid, None)
        if self.acts_on(job) and not job.deleted:
            spec = spec_of(job)
            self._jobs[job.uid] = (
                {name: text for name, of in self._headers.items() if (text := of(spec))},
                spec.max_page_bytes,
            )

    def acts_on(self, job: m.CrawlJob | None) -> bool:
        return job is not None and bool(
            (spec := spec_of(job)).max_page_bytes or any(of(spec) for of in HEADERS.values())
        )

    def on_request(self, request: m.FetchRequest, http_request: HttpRequest) -> None:
        of_job = self._jobs.get(request.job)
        if of_job is None or request.kind == m.FetchKind.ROBOTS:
            return
        headers, limit = of_job
        for name, value in headers.items():
            if name not in http_request.own_headers():
                http_request.add_header(name, value)
        if limit:
            http_request.max_bytes = min(http_request.max_bytes or limit, limit)


def matches(pattern: str, host_key: str) -> bool:
    """Whether a pattern names a host key."""
    if pattern == "*":
        return True
    return host_key.endswith(pattern[1:]) if pattern.startswith("*.") else host_key == pattern
