"""Logging in to a site before its first page, and again when the session is lost.

A job's login holds for all hosts of the site of its URL. The form is fetched, filled and posted by the member that has
a request for the site in its hands, so each member has a session of its own; requests for the site wait meanwhile. A
password is sent only to the site of the login's URL, and to https where that URL is https.

Bounds: a login that the site refuses is not tried again before the job changes (an account may be locked); one that
fails for the network is tried again after `RETRY_S`. A session that seems lost is renewed at most every `RENEW_S`, and
no more once `FALSE_ALARMS` pages answered the same way after a renewal: the site refuses these pages to this user.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import re2

from nephila.downloader.dns.resolver import Egress, ResolveError
from nephila.downloader.http.contract import Answer, Fetcher, FetchError, Order
from nephila.downloader.http.target import Target
from nephila.downloader.middleware.cookies import host_of
from nephila.downloader.middleware.login_form import forms_of, login_form
from nephila.downloader.outcome import REDIRECTS, location_of
from nephila.kernel import messages as m
from nephila.kernel.net.egress import EgressError
from nephila.kernel.net.public_suffix import site_of
from nephila.kernel.runtime.clock import Clock

log = logging.getLogger(__name__)

RETRY_S = 30.0
RENEW_S = 60.0
FALSE_ALARMS = 5
MAX_HOPS = 5
PAGE_BYTES = 512 << 10
"""What is read of a login page."""
SECRET_PREFIX = "NEPHILA_SECRET_"  # noqa: S105
Dress = Callable[[m.FetchRequest, Order], None]
Undress = Callable[[m.FetchRequest, Target, Answer], None]


class RefusedError(Exception):
    """The site, or the job's document, makes a login impossible: trying again would not help."""


class _Session:
    """The session of one job."""

    def __init__(self, job: m.CrawlJob, login: m.Login) -> None:
        self.login = login
        self.delay_s = job.politeness.delay_s if job.politeness is not None else 0.0
        self.target = Target(login.url)
        self.site = site_of(host_of(self.target))
        self.check = re2.compile(login.check) if login.check else None
        self.lost = re2.compile(login.lost) if login.lost else None
        self.open = False
        self.refused = ""
        self.since = 0.0
        """When the login was accepted, monotonic."""
        self.failed_at = -RETRY_S
        self.failure: FetchError | None = None
        self.task: asyncio.Task[None] | None = None
        self.number = 0
        """Rises with each login."""
        self.sent: dict[bytes, int] = {}
        """URLs under way, with the number of the session they were asked for in."""
        self.suspects: set[bytes] = set()
        """URLs for which the session was renewed."""
        self.false_alarms = 0


class LoginStep:
    """See the module; `Middleware`. `dress` and `undress` are the steps before it, for the requests of a login."""

    def __init__(self, clock: Clock, egress: Egress, fetcher: Fetcher, secrets: str) -> None:
        self._clock = clock
        self._egress = egress
        self._fetcher = fetcher
        self._secrets = secrets
        self._sessions: dict[str, _Session] = {}
        self.dress: Dress = lambda request, order: None
        self.undress: Undress = lambda request, target, answer: None

    def on_job(self, job: m.CrawlJob) -> None:
        """See `Middleware`."""
        before = self._sessions.get(job.uid)
        if job.deleted or job.login is None:
            self._sessions.pop(job.uid, None)
        elif before is None or before.login != job.login:
            self._sessions[job.uid] = _Session(job, job.login)

    def _session(self, request: m.FetchRequest, target: Target) -> _Session | None:
        session = self._sessions.get(request.job)
        if session is None or session.site != site_of(host_of(target)):
            return None
        return session

    def prepare(self, request: m.FetchRequest, target: Target) -> Coroutine[Any, Any, None] | None:
        """See `Middleware`."""
        session = self._session(request, target)
        return None if session is None or session.open else self._ready(session, request)

    async def _ready(self, session: _Session, request: m.FetchRequest) -> None:
        """Wait for the session; whoever comes first begins the login, and it goes on when that request is aborted."""
        if session.refused:
            raise FetchError("login", session.refused)
        if session.task is None:
            if session.failure is not None and self._clock.monotonic() - session.failed_at < RETRY_S:
                raise session.failure
            session.task = asyncio.get_running_loop().create_task(self._open(session, request))
        await asyncio.shield(session.task)
        if session.failure is not None:
            raise session.failure
        if session.refused:
            raise FetchError("login", session.refused)

    async def _open(self, session: _Session, request: m.FetchRequest) -> None:
        session.failure = None
        try:
            await self._log_in(session, request)
        except RefusedError as error:
            session.refused = f"login at {session.target.host_header}: {error}"
            log.error("job %s: %s", request.job, session.refused)
        except FetchError as error:
            session.failed_at = self._clock.monotonic()
            session.failure = error
            log.warning("job %s: %s", request.job, error.detail)
        else:
            session.open, session.since = True, self._clock.monotonic()
            session.number += 1
            log.info("job %s: logged in at %s", request.job, session.target.host_header)
        finally:
            session.task = None

    async def _log_in(self, session: _Session, request: m.FetchRequest) -> None:
        names = [field.name for field in session.login.fields]
        page, target = await self._page(session, request, session.target)
        form = login_form(page, names)
        if form is None:
            if session.check is not None and session.check.search(page):
                return  # the cookies of a file were enough
            raise RefusedError(f"no form of the page has the fields {', '.join(names)}")
        if form.method != "post":
            raise RefusedError("the form is sent by GET, which would put the password into a URL")
        try:
            action = Target(form.action or target.href, target.href)
        except ValueError as error:
            raise RefusedError(f"the form leads nowhere: {error}") from None
        values = {field.name: self._value(field) for field in session.login.fields}
        page, _ = await self._page(session, request, action, form.filled(values))
        if session.check is not None:
            if not session.check.search(page):
                raise RefusedError("the page that answers does not match spec.login.check; are the credentials right?")
        elif any(one.has_password for one in forms_of(page)):
            raise RefusedError("the page that answers asks for a password again; are the credentials right?")

    async def _page(
        self, session: _Session, request: m.FetchRequest, target: Target, body: bytes | None = None
    ) -> tuple[str, Target]:
        """A page of the login, its redirects followed within the site, each after the job's delay."""
        for _ in range(MAX_HOPS + 1):
            if site_of(host_of(target)) != session.site:
                raise RefusedError(f"it leads to another site, {target.host_header}")
            if session.target.scheme == "https" and target.scheme != "https":
                raise RefusedError("it leads from https to http")
            answer = await self._fetch(session, request, target, body)
            self.undress(request, target, answer)
            if answer.status not in REDIRECTS:
                break
            try:
                target = location_of(target, answer)
            except ValueError as error:
                raise RefusedError(str(error)) from None
            body = None
        else:
            raise RefusedError(f"more than {MAX_HOPS} redirects")
        if answer.status == 429 or answer.status >= 500:
            raise FetchError(f"http_{answer.status}", f"login: {target.host_header} answers {answer.status}")
        if answer.status >= 400:
            raise RefusedError(f"status {answer.status}")
        return answer.body.decode(answer.charset if _is_known(answer.charset) else "utf-8", "replace"), target

    async def _fetch(self, session: _Session, request: m.FetchRequest, target: Target, body: bytes | None) -> Answer:
        try:
            addresses, port = await self._egress.place(target.dial_host, target.port)
        except EgressError as error:
            raise RefusedError(str(error)) from None
        except ResolveError as error:
            raise FetchError("dns", f"login: {error}") from None
        order = Order(target, addresses, port, any_type=True, keep=PAGE_BYTES)
        order.body = body
        if body is not None:
            order.headers["Content-Type"] = "application/x-www-form-urlencoded"
        self.dress(request, order)
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Answer] = loop.create_future()
        handle = self._fetcher.fetch(order, lambda answer: None if done.done() else done.set_result(answer))
        try:
            answer = await done
        except asyncio.CancelledError:
            handle.abort()
            raise
        if answer.reason:
            reason = "disconnected" if answer.reason == "stale" else answer.reason
            raise FetchError(reason, f"login at {target.host_header}: {answer.detail}")
        if session.delay_s:
            pause = loop.create_future()
            until = self._clock.monotonic() + session.delay_s
            self._clock.call_at(until, lambda: None if pause.done() else pause.set_result(None))
            await pause
        return answer

    def _value(self, field: m.LoginField) -> str:
        """The value of a field, from the document, the environment or a file of the secrets' directory."""
        if field.env:
            if not field.env.startswith(SECRET_PREFIX):
                raise RefusedError(f"the variable {field.env} is not one of {SECRET_PREFIX}…")
            if field.env not in os.environ:
                raise RefusedError(f"the variable {field.env} is not set where pages are fetched")
            return os.environ[field.env]
        if not field.file:
            return field.value
        if not self._secrets:
            raise RefusedError(f"the file {field.file}: no directory of secrets is configured (downloader.secrets)")
        base = Path(self._secrets).resolve()
        path = (base / field.file).resolve()
        if not path.is_relative_to(base):
            raise RefusedError(f"the file {field.file} is outside the directory of secrets")
        try:
            return path.read_text("utf-8").rstrip("\r\n")
        except (OSError, ValueError) as error:
            raise RefusedError(f"the file {field.file}: {getattr(error, 'strerror', None) or error}") from None

    def outgoing(self, request: m.FetchRequest, order: Order) -> None:
        """See `Middleware`."""
        session = self._session(request, order.target)
        if session is not None:
            session.sent[request.url_key] = session.number

    def incoming(self, request: m.FetchRequest, target: Target, answer: Answer) -> None:
        """See `Middleware`. An answer for strangers closes the session and gives the request back."""
        session = self._session(request, target)
        if session is None:
            return
        number = session.sent.pop(request.url_key, session.number)
        if answer.reason or not self._is_lost(session, target, answer):
            return
        if not session.open or number < session.number:
            # Asked for in a session that others have found lost meanwhile.
            _give_back(answer, "the session was lost")
            return
        if request.url_key in session.suspects:
            session.suspects.discard(request.url_key)
            session.false_alarms += 1
            return
        if session.false_alarms >= FALSE_ALARMS or self._clock.monotonic() - session.since < RENEW_S:
            return
        session.suspects.add(request.url_key)
        session.open = False
        _give_back(answer, "the session is lost; logging in again")
        log.info("job %s: the session at %s is lost", request.job, session.target.host_header)

    @staticmethod
    def _is_lost(session: _Session, target: Target, answer: Answer) -> bool:
        if answer.status == 401:
            return True
        if answer.status in REDIRECTS:
            try:
                there = location_of(target, answer)
            except ValueError:
                return False
            place = (there.host_header, there.path.partition("?")[0])
            return place == (session.target.host_header, session.target.path.partition("?")[0])
        if session.lost is None or not 200 <= answer.status < 300:
            return False
        return bool(session.lost.search(answer.body.decode("utf-8", "replace")))

    async def close(self) -> None:
        """Abort logins under way."""
        tasks = [session.task for session in self._sessions.values() if session.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _give_back(answer: Answer, detail: str) -> None:
    answer.status, answer.reason, answer.detail = 0, "stale", detail


def _is_known(charset: str) -> bool:
    try:
        "".encode(charset or "utf-8")
    except LookupError:
        return False
    return bool(charset)
