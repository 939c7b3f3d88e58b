"""Login before the first page of a site, and again when the session is lost: by its form, or by scripts in a browser.

The login of a job applies to all hosts of the site of its URL. The member that has a request for the site fetches the
form, fills it in and posts it; each member has its own session. Other requests for the site wait until then. A password
is sent only to the site of the login URL, and only over https when that URL is https.

With `steps`, a browser opens the page and runs them; cookies go to the jar of the job, and what scripts have stored to
the pages of the site. A login is accepted if its answer matches `check`; without one, if it has neither a password
field nor a captcha. Without `check`, a first page that leads to the login again shows that it was refused.

Bounds of the first login: one that the site refuses is not repeated before the job changes, since an account may be
locked. One that fails because of the network pauses the site as a renewal does; after the last pause its URLs fail with
the reason of the network, and the login is repeated after `RETRY_S`.

Bounds of a renewal: without `check`, an answer that is not known may be a captcha. A URL that leads to the login before
the new session has served a page is tried again after a page that an earlier session has served: if that one leads to
the login as well, the login is refused and not repeated. Else the URL is refused to this user; so is one that has cost
`URL_RENEWALS` renewals. After `FALSE_ALARMS` such URLs, a session is renewed at most every `RENEW_S`, and
only if it has served a page. A renewal that fails pauses the site for `PAUSES_S`, one pause per try; its requests are
given back. After the last try its URLs end as failed(login) until the job changes. Other sites of the job continue.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from functools import partial
from secrets import token_hex
from typing import Any

import re2
from nephila.downloader.http.contract import Fetcher, FetchError, HttpRequest, HttpResponse
from nephila.downloader.http.route import NO_ROUTE
from nephila.downloader.http.target import TargetUrl
from nephila.downloader.middleware.block_pages import is_captcha_page
from nephila.downloader.middleware.contract import Middleware, PausedError
from nephila.downloader.middleware.rendered_login import BrowserLogin, RenderedLogin
from nephila.downloader.middleware.secrets import SecretError, from_environment, from_file
from nephila.downloader.outcome import REDIRECTS, location_of
from nephila.downloader.routing.router import Router
from nephila.kernel import messages as m
from nephila.kernel.documents.field_types import seconds
from nephila.kernel.documents.job_document import spec_of
from nephila.kernel.documents.login_schema import Login, LoginField
from nephila.kernel.net.public_suffix import site_of
from nephila.kernel.reasons.table import Reason
from nephila.kernel.runtime.clock import Clock

from nephila_login.login_form import read_login_page
from nephila_login.login_pages import LoginPages, LoginRefusedError

log = logging.getLogger(__name__)

UNAUTHORIZED, FORBIDDEN = 401, 403
RETRY_S = 30.0
PAUSES_S = (60.0, 120.0, 240.0)
RENEW_S = 60.0
FALSE_ALARMS = 5
URL_RENEWALS = 3
MAX_SENT = 10_000
"""URLs in flight of which the session is known; requests that are aborted have no response to remove them."""


class _Session:
    def __init__(self, login: Login, delay_s: float) -> None:
        self.login = login
        self.delay_s = delay_s
        self.target = TargetUrl(login.url)
        self.site = site_of(self.target.host)
        self.check = re2.compile(login.check) if login.check else None
        self.lost = re2.compile(login.lost) if login.lost else None
        self.steps = login.steps
        self.open = False
        self.proven = False
        """The site has accepted the login: its answer matched `check`, or a page was served."""
        self.refused = ""
        self.since = 0.0
        """Monotonic instant at which the login was accepted."""
        self.failed_at = -RETRY_S
        self.failure: FetchError | None = None
        self.paused_until = 0.0
        """Monotonic instant before which a login that could not be renewed is not tried again."""
        self.failed_renewals = 0
        """Since the last login that succeeded."""
        self.problem = ""
        """Why the last renewal failed."""
        self.task: asyncio.Task[None] | None = None
        self.number = 0
        """Number of logins so far."""
        self.sent: dict[bytes, int] = {}
        """URLs in flight, with the `number` of the session that they were requested in."""
        self.served = 0
        """Pages that the current session has served."""
        self.renewed_for: dict[bytes, int] = {}
        """URLs that the session was renewed for, and how often."""
        self.false_alarms = 0
        self.witness: TargetUrl | None = None
        """A page that a session has served."""
        self.doubted = False
        """The witness is to be read before the next page: the site may have refused the last renewal."""
        self.sound = False
        """The witness has shown that the current session is one."""


class SiteLogin(Middleware):
    """Opens a session per job and renews it. The requests of a login pass the `previous` middleware of the chain."""

    def __init__(
        self,
        clock: Clock,
        router: Router,
        fetcher: Fetcher,
        browser: BrowserLogin | None,
        secrets: str,
        previous: Sequence[Middleware],
    ) -> None:
        self._clock = clock
        self._pages = LoginPages(clock, router, fetcher, previous)
        self._browser = browser
        self._secrets = secrets
        self._previous = previous
        self._sessions: dict[str, _Session] = {}

    def acts_on(self, job: m.CrawlJob | None) -> bool:
        return job is not None and spec_of(job).login is not None

    def on_job(self, job: m.CrawlJob) -> None:
        before, spec = self._sessions.get(job.uid), spec_of(job)
        if job.deleted or spec.login is None:
            self._sessions.pop(job.uid, None)
        elif before is None or before.login != spec.login:
            self._sessions[job.uid] = _Session(spec.login, seconds(spec.politeness.delay))
        if before is not None and before is not self._sessions.get(job.uid) and before.task is not None:
            before.task.cancel()

    def _session(self, request: m.FetchRequest, target: TargetUrl) -> _Session | None:
        session = self._sessions.get(request.job)
        if session is None or session.site != site_of(target.host):
            return None
        return session

    def before_request(self, request: m.FetchRequest, target: TargetUrl) -> Coroutine[Any, Any, None] | None:
        session = self._session(request, target)
        return None if session is None or session.open else self._await_session(session, request)

    async def _await_session(self, session: _Session, request: m.FetchRequest) -> None:
        """Wait for the session. The first request starts the login; it continues when that request is aborted."""
        if session.refused:
            raise FetchError(Reason.LOGIN, session.refused)
        if session.task is None:
            self._check_pause(session)
            if session.failure is not None and self._clock.monotonic() - session.failed_at < RETRY_S:
                raise _copy(session.failure)
            session.task = asyncio.get_running_loop().create_task(self._open(session, request))
        task = session.task
        await asyncio.wait((task,))
        if self._sessions.get(request.job) is not session:
            return  # the job has changed: the pipeline calls `before_request` again
        if task.cancelled():
            raise asyncio.CancelledError
        self._check_pause(session)
        if session.failure is not None:
            raise _copy(session.failure)
        if session.refused:
            raise FetchError(Reason.LOGIN, session.refused)

    def _check_pause(self, session: _Session) -> None:
        rest_s = session.paused_until - self._clock.monotonic()
        if rest_s > 0:
            raise PausedError(Reason.LOGIN, session.problem, rest_s)

    async def _open(self, session: _Session, request: m.FetchRequest) -> None:
        session.failure = None
        was_doubted = session.doubted
        try:
            if was_doubted:
                await self._read_witness(session, request)
            else:
                await self._log_in(session, request)
        except LoginRefusedError as error:
            if session.number and not was_doubted:
                self._pause(session, request, str(error))
            else:
                session.refused = f"login at {session.target.host_header}: {error}"
                log.error("job %s: %s", request.job, session.refused)
        except FetchError as error:
            if session.number or session.failed_renewals < len(PAUSES_S):
                self._pause(session, request, error.detail)
            else:
                session.failed_at = self._clock.monotonic()
                session.failure = error
                log.warning("job %s: %s", request.job, error.detail)
        except Exception as error:  # a login that failed in an unexpected way is not repeated at once either
            session.failed_at = self._clock.monotonic()
            session.failure = FetchError(Reason.INTERNAL, f"login: {type(error).__name__}")
            log.exception("job %s: the login at %s failed", request.job, session.target.host_header)
        else:
            session.open, session.doubted, session.sound = True, False, was_doubted
            session.failed_renewals = 0
            if not was_doubted:
                session.since, session.served = self._clock.monotonic(), 0
                session.number += 1
                log.info("job %s: logged in at %s", request.job, session.target.host_header)
        finally:
            session.task = None

    def _pause(self, session: _Session, request: m.FetchRequest, problem: str) -> None:
        """A login has failed: pause the site, or after the last try of a renewal refuse its URLs."""
        where, tries = session.target.host_header, session.failed_renewals
        session.failed_renewals += 1
        if tries == len(PAUSES_S):
            session.refused = f"the login at {where} is not renewed after {tries + 1} tries: {problem}"
            log.error("job %s: %s", request.job, session.refused)
            return
        session.problem = f"the login at {where} {'is not renewed' if session.number else 'fails'}: {problem}"
        session.paused_until = self._clock.monotonic() + PAUSES_S[tries]
        log.warning("job %s: %s; its site pauses %g s", request.job, session.problem, PAUSES_S[tries])

    async def _read_witness(self, session: _Session, request: m.FetchRequest) -> None:
        """Raise `LoginRefusedError` where a page that an earlier session has served leads to the login now."""
        assert session.witness is not None
        try:
            ends_at = partial(_is_login, session)
            page = await self._pages.read(request, session.target, session.delay_s, session.witness, ends_at=ends_at)
            is_lost = _is_login(session, page.target) or bool(session.lost and session.lost.search(page.text))
        except LoginRefusedError as error:
            is_lost = error.status == UNAUTHORIZED  # any other answer is no login: the page is gone
        if is_lost:
            raise LoginRefusedError(
                "the login is not renewed: pages lead to the login again, and the page after the login has no password"
                " field. It may be a captcha: log in with a browser and give its cookies by --cookies, and set"
                " spec.login.check"
            )

    async def _log_in(self, session: _Session, request: m.FetchRequest) -> None:
        if session.steps:
            await self._log_in_by_steps(session, request)
            return
        names = [field.name for field in session.login.fields]
        read = partial(self._pages.read, request, session.target, session.delay_s)
        text, encoding, target = await read(session.target)
        page = read_login_page(text, encoding)
        form = page.login_form(names)
        if form is None:
            if session.check is not None and session.check.search(text):
                session.proven = True  # the cookies of the cookie file are a valid session
                return
            raise LoginRefusedError(f"no form of the page has all fields {', '.join(names)}")
        values = {field.name: self._value(field) for field in session.login.fields}
        submission = page.submission(form, values, f"----NephilaForm{token_hex(16)}")
        if submission.method != "post":
            raise LoginRefusedError("the form uses GET, which would put the password into a URL")
        try:
            action = TargetUrl(submission.action or target.href, _base(page.base, target))
        except ValueError as error:
            raise LoginRefusedError(f"the action of the form is not a URL: {error}") from None
        answer = await read(action, submission)
        self._judge(session, answer.text)

    @staticmethod
    def _judge(session: _Session, page: str) -> None:
        """Raise `LoginRefusedError` where the page after the login shows that it was not accepted."""
        if session.check is not None:
            if not session.check.search(page):
                raise LoginRefusedError(
                    "the page after the login does not match spec.login.check; are the credentials right?"
                )
            session.proven = True
        elif read_login_page(page).asks_password:
            raise LoginRefusedError("the page after the login asks for a password again; are the credentials right?")
        elif is_captcha_page(page.encode("utf-8", "replace")):
            raise LoginRefusedError(
                "the page after the login is a captcha or a challenge; "
                "log in with a browser and give its cookies by --cookies"
            )

    async def _log_in_by_steps(self, session: _Session, request: m.FetchRequest) -> None:
        if self._browser is None:
            raise LoginRefusedError("spec.login.steps needs a downloader with a browser; set spec.render")
        values = {field.name: self._value(field) for field in session.login.fields}
        http_request = HttpRequest(session.target, NO_ROUTE, any_type=True)
        for middleware in self._previous:
            middleware.on_request(request, http_request)
        route = await self._pages.route(request, session.target)
        login = RenderedLogin(
            session.login.url, session.target, route, tuple(session.steps), values, http_request.cookies
        )
        try:
            page = await self._browser.log_in(request, login)
        except FetchError as error:
            if error.reason in (Reason.STEP, Reason.NAVIGATION):
                raise LoginRefusedError(error.detail) from None
            raise FetchError(error.reason, f"login at {session.target.host_header}: {error.detail}") from None
        if page.unauthorized and session.check is None:
            raise LoginRefusedError(
                f"the site answered its scripts with {page.unauthorized}; are the credentials right?"
            )
        self._judge(session, page.html)

    def _value(self, field: LoginField) -> str:
        try:
            if field.env:
                return from_environment(field.env)
            return from_file(field.file, self._secrets) if field.file else field.value
        except SecretError as error:
            raise LoginRefusedError(str(error)) from None

    def on_request(self, request: m.FetchRequest, http_request: HttpRequest) -> None:
        session = self._session(request, http_request.target)
        if session is not None:
            session.sent[request.url_key] = session.number
            if len(session.sent) > MAX_SENT:
                del session.sent[next(iter(session.sent))]

    def on_response(self, request: m.FetchRequest, target: TargetUrl, response: HttpResponse) -> None:
        """A response that shows a lost session closes the session and gives the request back."""
        session = self._session(request, target)
        if session is None:
            return
        number = session.sent.pop(request.url_key, session.number)
        if response.reason:
            return
        if not self._is_lost(session, target, response):
            if number == session.number and 200 <= response.status < 300:
                session.served += 1
                session.proven = True
                session.witness = target
                session.renewed_for.pop(request.url_key, None)
            return
        if not session.open or number < session.number:
            # Requested in an earlier session that another response has shown to be lost.
            _give_back(response, "the session was lost")
            return
        if not session.proven and response.unauthorized != FORBIDDEN:
            session.refused = (
                f"login at {session.target.host_header}: not accepted, the first page leads to the login again; "
                "are the credentials right? If that page is forbidden to this user, set spec.login.check"
            )
            log.error("job %s: %s", request.job, session.refused)
            response.reason, response.detail = Reason.LOGIN, session.refused
            session.open = False
            return
        renewals = session.renewed_for.get(request.url_key, 0)
        if session.number > 1 and not session.served and self._may_be_refused(session):
            session.doubted, session.open = True, False
            _give_back(response, "the login may be refused; reading a page that it has served before")
            return
        if renewals and (not session.served or renewals >= URL_RENEWALS):
            del session.renewed_for[request.url_key]
            session.false_alarms += 1
            _refuse_empty(session, target, response)
            return
        age_s = self._clock.monotonic() - session.since
        if session.false_alarms >= FALSE_ALARMS and (not session.served or age_s < RENEW_S):
            _refuse_empty(session, target, response)
            return
        session.renewed_for[request.url_key] = renewals + 1
        session.open = False
        _give_back(response, "the session is lost; logging in again")
        log.info("job %s: the session at %s is lost", request.job, session.target.host_header)

    @staticmethod
    def _may_be_refused(session: _Session) -> bool:
        """Whether neither `check` nor a page has shown that the site has accepted the last renewal."""
        return session.check is None and not session.sound and session.witness is not None

    @staticmethod
    def _is_lost(session: _Session, target: TargetUrl, response: HttpResponse) -> bool:
        if response.status == UNAUTHORIZED or response.unauthorized:
            return True
        if _is_led_to_login(session, target, response):
            return True
        if response.status in REDIRECTS:
            try:
                there = location_of(target, response)
            except ValueError:
                return False
            return _is_login(session, there)
        if session.lost is None or not 200 <= response.status < 300:
            return False
        return bool(session.lost.search(response.body.decode("utf-8", "replace")))

    async def close(self) -> None:
        """Cancel logins in flight."""
        tasks = [session.task for session in self._sessions.values() if session.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _is_login(session: _Session, target: TargetUrl) -> bool:
    """Whether a URL is that of the login, but for its query."""
    route = (target.host_header, target.path.partition("?")[0])
    return route == (session.target.host_header, session.target.path.partition("?")[0])


def _base(written: str, target: TargetUrl) -> str:
    """The base of the action of a form: the <base> of its page, if that is a URL of HTTP, else the page."""
    try:
        return TargetUrl(written, target.href).href if written else target.href
    except ValueError:
        return target.href


def _route_of(url: str) -> str:
    """A URL without its query, with the route behind #/ or #!."""
    base, _, fragment = url.partition("#")
    return base.partition("?")[0] + (f"#{fragment.partition('?')[0]}" if fragment[:1] in ("/", "!") else "")


def _is_led_to_login(session: _Session, target: TargetUrl, response: HttpResponse) -> bool:
    """Whether the scripts of a page have led to the login page."""
    if not response.rendered:
        return False
    return _route_of(response.page_url) == _route_of(session.login.url) != _route_of(target.href)


def _refuse_empty(session: _Session, target: TargetUrl, response: HttpResponse) -> None:
    """Fail a page that has no content in a new session either: its scripts get 401 or lead to the login page. One whose
    scripts get 403 may be whole."""
    if response.unauthorized == UNAUTHORIZED:
        response.reason, response.detail = Reason.LOGIN, "its site answers the scripts of the page with 401"
    elif _is_led_to_login(session, target, response):
        response.reason, response.detail = Reason.LOGIN, "the scripts of the page lead to the login page"


def _give_back(response: HttpResponse, detail: str) -> None:
    response.status, response.reason, response.detail = 0, Reason.STALE, detail


def _copy(error: FetchError) -> FetchError:
    """A copy of the error, because each `raise` of one exception would add frames to its traceback."""
    return FetchError(error.reason, error.detail)
