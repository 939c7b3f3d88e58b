"""Which requests have to leave through one proxy: those of a session. Pure.

A site binds a session (its cookies, its login) to the address of the client. The ring of proxies therefore takes one
proxy for all requests with the same key, and any proxy for requests without a key.
"""

from __future__ import annotations

from nephila.downloader.http.target import TargetUrl
from nephila.downloader.jobs import has_jar
from nephila.kernel import messages as m
from nephila.kernel.net.public_suffix import site_of


class ProxySessions:
    """Session keys of jobs with cookies or a login. O(1) for other jobs."""

    def __init__(self, always: bool) -> None:
        """`always`: every job has cookies, those of a cookie file."""
        self._always = always
        self._jobs: set[str] = set()

    def on_job(self, job: m.CrawlJob) -> None:
        """A job is new, has changed or is deleted."""
        if has_jar(job):
            self._jobs.add(job.uid)
        else:
            self._jobs.discard(job.uid)

    def key(self, request: m.FetchRequest, target: TargetUrl) -> str:
        """The session of a request, "JOB SITE NAME" with the name of its context; empty: none."""
        name = request.context.session if request.context is not None else ""
        if not name and (not request.job or not (self._always or request.job in self._jobs)):
            return ""
        return f"{request.job} {site_of(target.host)} {name}"
