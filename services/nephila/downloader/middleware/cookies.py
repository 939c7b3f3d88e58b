"""Cookies of jobs that keep them: one jar for each job, in this process.

A job keeps cookies when its document says so, when it logs in, or when a cookie file is configured; each jar begins
with the cookies of that file. A restart loses the rest, and so does a host that another member takes over: sites begin
a new session then, and a login is made again.
"""

from __future__ import annotations

import re
from pathlib import Path

from nephila.downloader.config import DownloaderConfig
from nephila.downloader.http.contract import HttpRequest, HttpResponse
from nephila.downloader.http.target import Target
from nephila.downloader.middleware.cookie_jar import CookieJar
from nephila.downloader.middleware.cookie_syntax import read_cookie_file
from nephila.kernel import messages as m
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import UsageError

MAX_FILE_BYTES = 4 << 20
SET_COOKIE = "set-cookie"
_PORT = re.compile(r":\d+\Z")


class Cookies:
    """See the module; `Middleware`."""

    def __init__(self, config: DownloaderConfig, clock: Clock) -> None:
        self._clock = clock
        self._given = load_jar(config.cookies, clock.now()) if config.cookies else None
        self._jars: dict[str, CookieJar] = {}
        self._keeping: set[str] = set()

    def on_job(self, job: m.CrawlJob) -> None:
        """See `Middleware`."""
        if job.deleted or not (job.cookies or job.login is not None):
            self._keeping.discard(job.uid)
        else:
            self._keeping.add(job.uid)
        if job.deleted:
            self._jars.pop(job.uid, None)

    def jar(self, job: str) -> CookieJar | None:
        """The jar of a job; None when it keeps no cookies."""
        jar = self._jars.get(job)
        if jar is None and job and (self._given is not None or job in self._keeping):
            jar = self._jars[job] = self._given.copy() if self._given is not None else CookieJar()
        return jar

    def before_request(self, request: m.FetchRequest, target: Target) -> None:
        """See `Middleware`."""

    def on_request(self, request: m.FetchRequest, http_request: HttpRequest) -> None:
        """See `Middleware`. Cookies of the jar stand beside those of a configured header."""
        jar = self.jar(request.job)
        if jar is None:
            return
        target = http_request.target
        value = jar.header(host_of(target), path_of(target), target.scheme == "https", self._clock.now())
        if value:
            before = http_request.headers.get("Cookie")
            http_request.headers["Cookie"] = f"{before}; {value}" if before else value

    def on_response(self, request: m.FetchRequest, target: Target, response: HttpResponse) -> None:
        """See `Middleware`."""
        if SET_COOKIE not in response.headers:
            return
        jar = self.jar(request.job)
        if jar is not None:
            headers = response.headers[SET_COOKIE].split("\n")
            jar.set_all(headers, host_of(target), path_of(target), target.scheme == "https", self._clock.now())


def host_of(target: Target) -> str:
    """The host as cookies know it: without port."""
    return _PORT.sub("", target.host_header)


def path_of(target: Target) -> str:
    """The path without its query."""
    return target.path.partition("?")[0]


def load_jar(name: str, now: float) -> CookieJar:
    """The cookies of a file in Netscape's format. Raises `UsageError` that names file and line."""
    try:
        with Path(name).open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise UsageError(f"cannot read the cookies {name}: {error.strerror}") from None
    if len(data) > MAX_FILE_BYTES:
        raise UsageError(f"{name} is larger than {MAX_FILE_BYTES >> 20} MB; that is no cookie file")
    jar = CookieJar()
    for domain, below, cookie in read_cookie_file(data.decode("latin-1"), name):
        if not jar.load(cookie, domain, below, now):
            raise UsageError(f"{name}: the cookie {cookie.name!r} is for all of {domain!r}, a public suffix")
    return jar
