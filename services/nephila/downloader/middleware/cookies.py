"""Cookies: one jar per job, in this process.

A job has a jar when its document enables cookies, when it logs in, or when a cookie file is configured. Each jar begins
with the cookies of that file. The rest is lost on a restart, and for a host that moves to another member: the site
begins a new session then, and a login is repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nephila.downloader.http.contract import HttpRequest, HttpResponse, SiteCookie
from nephila.downloader.http.target import TargetUrl
from nephila.downloader.jobs import has_jar
from nephila.downloader.middleware.config import MiddlewareConfig
from nephila.downloader.middleware.contract import Middleware
from nephila.downloader.middleware.cookie_jar import CookieJar
from nephila.downloader.middleware.cookie_syntax import read_cookie_file
from nephila.kernel import messages as m
from nephila.kernel.net.public_suffix import site_of
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import UsageError

MAX_FILE_BYTES = 4 << 20
SET_COOKIE = "set-cookie"
NEVER = m.Render.NEVER


class JarOfSite:
    def __init__(self, jar: CookieJar, host: str, configured: str, clock: Clock) -> None:
        self._jar = jar
        self._host = host
        self._clock = clock
        self.configured = configured

    def read(self) -> list[SiteCookie]:
        return [
            SiteCookie(
                cookie.name,
                cookie.value,
                cookie.domain,
                cookie.host_only,
                cookie.path,
                cookie.secure,
                cookie.expires_at,
            )
            for cookie in self._jar.of_site(self._host, self._clock.now())
        ]

    def write(self, before: Sequence[SiteCookie], after: Sequence[SiteCookie]) -> None:
        """Cookies that a browser received unchanged stay in the jar as they are: another page may have renewed them
        meanwhile."""
        now, site = self._clock.now(), site_of(self._host)
        old_cookies, new_keys = {_key(cookie): cookie for cookie in before}, {_key(cookie) for cookie in after}
        for cookie in after:
            old = old_cookies.get(_key(cookie))
            if site_of(cookie.domain) == site and (old is None or old.value != cookie.value):
                self._jar.put(cookie, self._host, now)
        for cookie in before:
            if _key(cookie) not in new_keys and any(now_there == cookie for now_there in self.read()):
                self._jar.put(cookie._replace(expires_at=0.0), self._host, now)


def _key(cookie: SiteCookie) -> tuple[str, str, str]:
    return cookie.domain, cookie.path, cookie.name


class Cookies(Middleware):
    """Stores the cookies of responses and sends them back (RFC 6265)."""

    def __init__(self, config: MiddlewareConfig, clock: Clock) -> None:
        self._clock = clock
        self._given = load_jar(config.cookies, clock.now()) if config.cookies else None
        self._jars: dict[str, CookieJar] = {}
        self._keeping: set[str] = set()

    def on_job(self, job: m.CrawlJob) -> None:
        if has_jar(job):
            self._keeping.add(job.uid)
        else:
            self._keeping.discard(job.uid)
        if job.deleted:
            self._jars.pop(job.uid, None)

    def acts_on(self, job: m.CrawlJob | None) -> bool:
        return self._given is not None or (job is not None and has_jar(job))

    def jar(self, job: str) -> CookieJar | None:
        """The jar of a job; None when it has none."""
        jar = self._jars.get(job)
        if jar is None and job and (self._given is not None or job in self._keeping):
            jar = self._jars[job] = self._given.copy() if self._given is not None else CookieJar()
        return jar

    def on_request(self, request: m.FetchRequest, http_request: HttpRequest) -> None:
        """The jar adds its cookies to those of a configured header."""
        jar = self.jar(request.job)
        if jar is None:
            return
        target = http_request.target
        if request.render > NEVER:
            configured = (http_request.secret_headers or {}).get("Cookie", "")
            http_request.cookies = JarOfSite(jar, target.host, configured, self._clock)
        value = jar.header(target.host, path_of(target), target.scheme == "https", self._clock.now())
        if value:
            before = (http_request.secret_headers or {}).get("Cookie")
            http_request.add_secret_header("Cookie", f"{before}; {value}" if before else value)

    def on_response(self, request: m.FetchRequest, target: TargetUrl, response: HttpResponse) -> None:
        if SET_COOKIE not in response.headers:
            return
        jar = self.jar(request.job)
        if jar is not None:
            headers = response.headers[SET_COOKIE].split("\n")
            jar.set_all(headers, target.host, path_of(target), target.scheme == "https", self._clock.now())


def path_of(target: TargetUrl) -> str:
    return target.path.partition("?")[0]


def load_jar(name: str, now: float) -> CookieJar:
    """The cookies of a file in Netscape's format. Raises `UsageError` that names file and line."""
    try:
        with Path(name).open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise UsageError(f"cannot read the cookies {name}: {error.strerror}") from None
    if len(data) > MAX_FILE_BYTES:
        raise UsageError(f"{name} is larger than {MAX_FILE_BYTES >> 20} MB; this is not a cookie file")
    jar = CookieJar()
    for domain, below, cookie in read_cookie_file(data.decode("latin-1"), name):
        if not jar.load(cookie, domain, below, now):
            raise UsageError(f"{name}: the cookie {cookie.name!r} is for all of {domain!r}, which is a public suffix")
    return jar
