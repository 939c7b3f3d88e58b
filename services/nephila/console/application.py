"""The console as an ASGI application below /console: a client of the control API that answers with HTML.

`routes` are added to the server of the control API. What each request passes first is in `gate.py`. At most
`MAX_REQUESTS` are under way; a further one is answered by 503.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from nephila.console import gate
from nephila.console.messages import chosen, language
from nephila.console.messages import translate as _
from nephila.console.screens import (
    audit,
    hosts,
    items,
    jobs,
    overview,
    pages,
    rules,
    search,
    studio,
    studio_save,
    system,
)
from nephila.console.sessions import Session, Sessions
from nephila.console.view import View, go
from nephila.console.words import BASE
from nephila.control.api import Control, NotFound
from nephila.kernel.runtime.clock import Clock, SystemClock
from nephila.kernel.runtime.errors import NotReadyError, UsageError, UserError

log = logging.getLogger(__name__)
MAX_REQUESTS: Final = 64
Screen = Callable[[View], Awaitable[Response]]
SCREENS: Final[Sequence[tuple[str, str, Screen]]] = (
    ("GET", "/", overview.overview),
    ("GET", "/search", search.search),
    ("GET", "/jobs", jobs.jobs),
    ("POST", "/jobs", jobs.create),
    ("GET", "/jobs/new", jobs.new),
    ("GET", "/jobs/{name}", jobs.job),
    ("GET", "/jobs/{name}/edit", jobs.edit),
    ("POST", "/jobs/{name}/edit", jobs.change),
    ("GET", "/jobs/{name}/delete", jobs.ask_delete),
    ("POST", "/jobs/{name}/delete", jobs.delete),
    ("POST", "/jobs/{name}/pause", jobs.pause),
    ("POST", "/jobs/{name}/resume", jobs.resume),
    ("POST", "/jobs/{name}/release", jobs.release),
    ("GET", "/jobs/{name}/exclude", jobs.exclude),
    ("POST", "/jobs/{name}/exclude", jobs.apply_exclusion),
    ("GET", "/pages", pages.pages),
    ("GET", "/page", pages.page),
    ("GET", "/hosts", hosts.hosts),
    ("GET", "/items", items.items),
    ("GET", "/items.csv", items.csv),
    ("GET", "/items.jsonl", items.jsonl),
    ("GET", "/items.parquet", items.parquet),
    ("GET", "/audit", audit.samples),
    ("POST", "/audit", audit.draw),
    ("GET", "/audit/{name}", audit.sample),
    ("POST", "/audit/{name}", audit.label),
    ("GET", "/sites", rules.sites),
    ("GET", "/rules", rules.rules),
    ("GET", "/studio", studio.start),
    ("POST", "/studio", studio.fetch),
    ("GET", "/studio/{name}", studio.show),
    ("GET", "/studio/{name}/frame", studio.frame),
    ("GET", "/studio/{name}/save", studio_save.save),
    ("POST", "/studio/{name}/save", studio_save.apply),
    ("POST", "/studio/{name}/commit", studio_save.commit),
    ("GET", "/studio/{name}/rule.yaml", studio_save.rule_file),
    ("GET", "/studio/{name}/rule.zip", studio_save.all_files),
    ("GET", "/system", system.system),
    ("POST", "/system/settings", system.change_setting),
    ("POST", "/system/replay", system.replay),
)
"""Method, path below /console, screen."""


@dataclass(frozen=True, slots=True)
class Access:
    """Who may open the console."""

    sessions: Sessions
    seal: gate.Seal
    names: Collection[str] = ()
    """Names of this server in addition to its addresses, localhost and the name of the machine."""


def access(token: str = "", names: Collection[str] = (), clock: Clock | None = None) -> Access:
    """`token`: opens a session as often as it is given."""
    return Access(Sessions(clock or SystemClock(), token), gate.Seal(), tuple(names))


def routes(control: Control, access: Access) -> list[BaseRoute]:
    """The console below /console; the root of the server leads there."""

    async def root(request: Request) -> Response:
        return RedirectResponse(f"{BASE}/", 303)

    return [Route("/", root), Route(BASE, root), Mount(BASE, app=_Console(control, access).application())]


class _Console:
    """The screens of one server."""

    def __init__(self, control: Control, access: Access) -> None:
        self._control = control
        self._access = access
        self._under_way = 0

    def application(self) -> Starlette:
        """The ASGI application."""
        found: dict[str, dict[str, Screen]] = {}
        for method, path, screen in SCREENS:
            found.setdefault(path, {})[method] = screen
        inside = [Route(path, self._guarded(screens), methods=list(screens)) for path, screens in found.items()]
        app = Starlette(
            routes=[
                Mount("/static", app=_Static(packages=[("nephila.console", "static")])),
                Route("/login", self._open(self._login), methods=["GET", "POST"]),
                Route("/studio/{name}/pick/{node:int}", self._open(self._picked)),
                Route("/logout", self._guarded({"POST": self._logout}), methods=["POST"]),
                *inside,
            ],
            exception_handlers={HTTPException: self._http_error},
        )
        app.router.redirect_slashes = False
        return app

    # ---- what every request passes

    def _open(self, work: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        """An endpoint behind the check of Host, with the headers of every answer."""

        async def endpoint(request: Request) -> Response:
            language.set(chosen(request.headers.get("accept-language", ""), request.query_params.get("lang", "")
                                or request.cookies.get("nephila_lang", "")))  # fmt: skip
            if self._under_way >= MAX_REQUESTS:
                return gate.protect(Response("too many requests are under way; reload the page\n", 503))
            self._under_way += 1
            try:
                gate.check_host(request, self._access.names)
                response = await work(request)
            except gate.Refused as error:
                response = self._message(request, error.status, str(error))
            except ClientDisconnect:
                return Response(status_code=408)
            except Exception as error:
                log.error("console: a request failed", exc_info=error)
                response = self._message(request, 500, f"{type(error).__name__}: {error}"[:500])
            finally:
                self._under_way -= 1
            if request.query_params.get("lang"):
                response.set_cookie("nephila_lang", language.get(), path=BASE, samesite="strict", httponly=True)
            return gate.protect(response)

        return endpoint

    def _guarded(self, screens: dict[str, Screen]) -> Callable[[Request], Awaitable[Response]]:
        async def work(request: Request) -> Response:
            session = self._session(request)
            if session is None:
                return go(f"{BASE}/login")
            form: dict[str, str] = {}
            if request.method == "POST":
                gate.check_origin(request)
                form = await gate.read_form(request)
                gate.check_csrf(form, session.csrf)
            view = View(request, self._control, session, form, self._access.seal)
            try:
                return await screens["GET" if request.method == "HEAD" else request.method](view)
            except UserError as error:
                return _failed(view, error)

        return self._open(work)

    def _session(self, request: Request) -> Session | None:
        cookie = request.cookies.get(gate.cookie_name(request), "")
        return self._access.sessions.find(cookie, used="x-refresh" not in request.headers)

    # ---- sessions

    async def _login(self, request: Request) -> Response:
        sessions, address = self._access.sessions, request.client.host if request.client is not None else ""
        view = View(request, self._control, None, {}, self._access.seal)
        given = request.query_params.get("token", "")
        if request.method == "POST":
            gate.check_origin(request)
            given = (await gate.read_form(request)).get("token", "").strip()
        if not given:
            if self._session(request) is not None:
                return go(f"{BASE}/")
            return view.render("login.html", problem="", takes_token=sessions.takes_token)
        if (wait_s := sessions.wait_s(address)) > 0:
            problem = _("Too many wrong tokens. Try again in %(seconds)s s.") % {"seconds": f"{wait_s:.0f}"}
            response = view.render("login.html", 429, problem=problem, takes_token=sessions.takes_token)
            response.headers["retry-after"] = f"{wait_s + 1:.0f}"
            return response
        opened = sessions.redeem(given) or (sessions.login(given) if request.method == "POST" else "")
        if not opened:
            sessions.failed(address)
            problem = _("This token is wrong, was used already, or is too old.")
            return view.render("login.html", 403, problem=problem, takes_token=sessions.takes_token)
        response = go(f"{BASE}/")
        gate.set_session(response, request, opened)
        return response

    async def _logout(self, view: View) -> Response:
        self._access.sessions.close(view.request.cookies.get(gate.cookie_name(view.request), ""))
        response = go(f"{BASE}/login")
        gate.set_session(response, view.request, "")
        return response

    # ---- the studio

    async def _picked(self, request: Request) -> Response:
        return studio.picked(View(request, self._control, None, {}, self._access.seal))

    # ---- errors

    def _message(self, request: Request, status: int, message: str) -> Response:
        return View(request, self._control, None, {}, self._access.seal).render(
            "error.html", status, status=status, message=message
        )

    async def _http_error(self, request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 404
        return await self._open(lambda _: self._nothing_here(request, status))(request)

    async def _nothing_here(self, request: Request, status: int) -> Response:
        message = _("There is no such screen.") if status == 404 else _("This cannot be done here.")
        view = View(request, self._control, self._session(request), {}, self._access.seal)
        return view.render("error.html", status, status=status, message=message)


class _Static(StaticFiles):
    """Style sheet and script. They hold no secret, and the login page needs them."""

    def file_response(self, *args: object, **kwargs: object) -> Response:
        """See `StaticFiles.file_response`."""
        response = super().file_response(*args, **kwargs)  # type: ignore[arg-type]
        response.headers["cache-control"] = "public, max-age=300"
        return gate.protect(response)


def _failed(view: View, error: UserError) -> Response:
    """A refusal of the control API. One that is not reachable says since when, and the page is loaded again."""
    away = isinstance(error, NotReadyError)
    status = 503 if away else 404 if isinstance(error, NotFound) else 400 if isinstance(error, UsageError) else 409
    since = time.strftime("%H:%M:%S", time.gmtime())
    return view.render(
        "error.html", status, status=status, message=str(error), away=away, since=since, method=view.request.method
    )
