"""The console as an ASGI application below /console: a client of the control API that answers with HTML.

`routes` are added to the server of the control API. What each request passes first is in `gate.py`. At most
`MAX_REQUESTS` are under way; a further one is answered by 503.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final
from urllib.parse import unquote, urlsplit

from nephila.kernel.runtime.errors import NotReadyError, UsageError, UserError
from nephila_control.access.caller import Caller
from nephila_control.api import Forbidden, NotFound
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from nephila_console import gate
from nephila_console.capability_cache import CapabilityCache
from nephila_console.compression import compressed
from nephila_console.live import CSRF, VIEWERS, Live
from nephila_console.logins import Access, Logins, view_of
from nephila_console.messages import chosen, language
from nephila_console.messages import translate as _
from nephila_console.screens import (
    audit,
    control_log,
    hosts,
    items,
    job_form,
    job_list,
    jobs,
    overview,
    pages,
    rules,
    search,
    site_changes,
    sites,
    studio,
    studio_save,
    system,
    system_parts,
)
from nephila_console.sessions import Session
from nephila_console.view import View, go
from nephila_console.words import BASE, path

log = logging.getLogger(__name__)
MAX_REQUESTS: Final = 64
Screen = Callable[[View], Awaitable[Response]]
SCREENS: Final[Sequence[tuple[str, str, Screen]]] = (
    ("GET", "/", overview.overview),
    ("GET", "/search", search.search),
    ("GET", "/jobs", job_list.jobs),
    ("GET", "/bulk", job_list.confirm),
    ("POST", "/bulk", job_list.apply),
    ("POST", "/jobs", job_form.create),
    ("GET", "/jobs/new", job_form.new),
    ("GET", "/jobs/{name}", jobs.job),
    ("GET", "/jobs/{name}/edit", job_form.edit),
    ("POST", "/jobs/{name}/edit", job_form.change),
    ("GET", "/jobs/{name}/delete", jobs.ask_delete),
    ("POST", "/jobs/{name}/delete", jobs.delete),
    ("POST", "/jobs/{name}/pause", jobs.pause),
    ("POST", "/jobs/{name}/resume", jobs.resume),
    ("POST", "/jobs/{name}/release", jobs.release),
    ("GET", "/jobs/{name}/exclude", jobs.exclude),
    ("POST", "/jobs/{name}/exclude", jobs.apply_exclusion),
    ("GET", "/pages", pages.pages),
    ("GET", "/page", pages.page),
    ("GET", "/page/screenshot", pages.screenshot),
    ("GET", "/hosts", hosts.hosts),
    ("GET", "/hosts/{name}", hosts.host),
    ("POST", "/hosts/{name}", hosts.change),
    ("GET", "/items", items.items),
    ("GET", "/items/picture", items.picture),
    ("GET", "/items.csv", items.csv),
    ("GET", "/items.jsonl", items.jsonl),
    ("GET", "/items.parquet", items.parquet),
    ("GET", "/audit", audit.samples),
    ("POST", "/audit", audit.draw),
    ("GET", "/audit/{name}", audit.sample),
    ("POST", "/audit/{name}", audit.label),
    ("GET", "/sites", sites.sites),
    ("POST", "/sites", site_changes.preview_grid),
    ("GET", "/sites/table", site_changes.show_table),
    ("POST", "/sites/table", site_changes.preview_table),
    ("POST", "/sites/apply", site_changes.apply),
    ("GET", "/sites.csv", site_changes.csv),
    ("GET", "/rules", rules.rules),
    ("POST", "/rules/{name}", rules.restore),
    ("GET", "/studio", studio.start),
    ("POST", "/studio", studio.fetch),
    ("GET", "/studio/{name}", studio.show),
    ("POST", "/studio/{name}", studio.render),
    ("GET", "/studio/{name}/frame", studio.frame),
    ("GET", "/studio/{name}/save", studio_save.save),
    ("POST", "/studio/{name}/save", studio_save.apply),
    ("POST", "/studio/{name}/extract", studio_save.extract),
    ("POST", "/studio/{name}/commit", studio_save.commit),
    ("GET", "/studio/{name}/rule.yaml", studio_save.rule_file),
    ("GET", "/studio/{name}/rule.zip", studio_save.all_files),
    ("GET", "/log", control_log.control_log),
    ("GET", "/system", system.system),
    ("GET", "/system/settings", system_parts.settings),
    ("GET", "/system/network", system_parts.network),
    ("GET", "/system/webhooks", system_parts.webhooks),
    ("POST", "/system/settings", system.change_setting),
    ("POST", "/system/replay", system.replay),
)
"""Method, path below /console, screen."""
LIVE: Final = {
    "/": overview.overview,
    "/jobs": job_list.jobs,
    "/hosts": hosts.hosts,
    "/pages": pages.pages,
    "/system": system.system,
    "/system/network": system_parts.network,
    "/system/webhooks": system_parts.webhooks,
}
"""Screens whose figures stay fresh."""
LIVE_NAMED: Final = {"jobs": jobs.job, "hosts": hosts.host}
"""The same for screens of one object, by the first part of their path."""


def routes(access: Access) -> list[BaseRoute]:
    """The root of the server leads to /console."""

    async def root(request: Request) -> Response:
        return RedirectResponse(f"{BASE}/", 303)

    return [Route("/", root), Route(BASE, root), Mount(BASE, app=_Console(access).application())]


class _Console:
    def __init__(self, access: Access) -> None:
        self._access = access
        self._logins = Logins(access)
        self._live = Live()
        self._capabilities = CapabilityCache(access.clock)
        self._under_way = 0

    def application(self) -> Starlette:
        by_path: dict[str, dict[str, Screen]] = {}
        for method, address, screen in SCREENS:
            by_path.setdefault(address, {})[method] = screen
        inside = [Route(address, self._guarded(screens), methods=list(screens)) for address, screens in by_path.items()]
        app = Starlette(
            routes=[
                Mount("/static", app=GZipMiddleware(_Static(packages=[("nephila_console", "static")]))),
                Route("/login", self._open(self._logins.login), methods=["GET", "POST"]),
                Route("/oidc", self._open(self._logins.oidc)),
                Route("/oidc/callback", self._open(self._logins.oidc_callback)),
                Route("/studio/{name}/pick/{node:int}", self._open(self._picked)),
                Route("/studio/file/{page}/{number:int}", self._open(self._studio_file)),
                Route("/live", self._guarded({"GET": self._watch})),
                Route("/logout", self._guarded({"POST": self._logins.logout}), methods=["POST"]),
                *inside,
            ],
            exception_handlers={HTTPException: self._http_error},
        )
        app.router.redirect_slashes = False
        return app

    # ---- what every request passes

    def _open(self, work: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        """Wraps an endpoint: it checks Host and sets the headers of every answer."""

        async def endpoint(request: Request) -> Response:
            self._access.refresh()
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
            return compressed(request, gate.protect(response))

        return endpoint

    def _guarded(self, screens: dict[str, Screen]) -> Callable[[Request], Awaitable[Response]]:
        async def work(request: Request) -> Response:
            session = self._logins.session(request)
            form: dict[str, str] = {}
            if request.method == "POST":
                gate.check_origin(request)
                form = await gate.read_form(request)
            if session is None:
                address = request.url.path
                is_form = bool(form) and gate.local_path(address) == address  # not that of the logout
                return self._logins.without_session(request, form) if is_form else self._to_login(request)
            if request.method == "POST" and not gate.is_of_session(form, session.csrf):
                return self._logins.of_another_session(request, session, form)
            view = await self._view(request, session, form)
            if (why := view.screen_lacks(_screen_of(request.url.path))) is not None:
                return view.render("unavailable.html", why=why)
            try:
                return await screens["GET" if request.method == "HEAD" else request.method](view)
            except UserError as error:
                return _failed(view, error)

        return self._open(work)

    @staticmethod
    def _to_login(request: Request) -> Response:
        """A screen is shown after the login; what a POST would have changed is not done by one."""
        if request.method == "GET" and "x-refresh" not in request.headers:
            query = f"?{request.url.query}" if request.url.query else ""
            return go(path("login", next=gate.local_path(request.url.path + query)))
        return go(path("login"))

    async def _view(self, request: Request, session: Session, form: dict[str, str] | None = None) -> View:
        lacking = await self._capabilities.lacking(session.caller, self._access.authority.of(session.caller))
        return view_of(self._access, request, session, form, lacking)

    # ---- fresh figures

    async def _watch(self, view: View) -> Response:
        """GET /console/live?at=…: sends the changing part of a screen as events."""
        at = urlsplit(view.field("at"))
        screen = LIVE.get(at.path.removeprefix(BASE)) or _live_of_object(at.path)
        session = view.session
        if screen is None or session is None or self._live.viewers >= VIEWERS:
            raise gate.Refused(404 if screen is None else 503, _("There is no such screen."))
        # What is rendered is the same for all of one role and its tenants; the name of a user is not in it.
        caller = Caller("viewers", session.caller.role, session.caller.tenants)
        shared = Session(caller, CSRF, session.by, session.proof, session.opened, session.used)
        words = language.get()

        async def render() -> str:
            language.set(words)
            request = Request({**view.request.scope, "path": at.path, "query_string": at.query.encode(),
                               "path_params": {"name": unquote(at.path.rpartition("/")[2])}})  # fmt: skip
            shared_view = await self._view(request, shared)
            why = shared_view.screen_lacks(_screen_of(at.path))
            answer = shared_view.render("unavailable.html", why=why) if why is not None else await screen(shared_view)
            text = bytes(answer.body).decode()
            return text[text.index("<div data-part=") : text.rindex("</main>")]

        key = (caller.role, caller.tenants, words, at.path, at.query)

        def csrf() -> str:
            watching = self._logins.watching(view.request)
            return watching.csrf if watching is not None else ""

        events = self._live.events(key, render, csrf)
        return StreamingResponse(events, media_type="text/event-stream")

    # ---- the studio

    async def _picked(self, request: Request) -> Response:
        return studio.picked(view_of(self._access, request))

    async def _studio_file(self, request: Request) -> Response:
        return await studio.file(view_of(self._access, request), self._access.authority.of(studio.FRAME))

    # ---- errors

    def _message(self, request: Request, status: int, message: str) -> Response:
        return view_of(self._access, request).render("error.html", status, status=status, message=message)

    async def _http_error(self, request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 404
        return await self._open(lambda _: self._nothing_here(request, status))(request)

    async def _nothing_here(self, request: Request, status: int) -> Response:
        message = _("There is no such screen.") if status == 404 else _("This cannot be done here.")
        view = view_of(self._access, request, self._logins.session(request))
        return view.render("error.html", status, status=status, message=message)


def _screen_of(path: str) -> str:
    """Returns the first part of the path of a screen."""
    return path.removeprefix(BASE).strip("/").partition("/")[0].partition(".")[0]


def _live_of_object(path: str) -> Screen | None:
    named = path.startswith(f"{BASE}/") and path.count("/") == 3 and path != f"{BASE}/jobs/new"
    return LIVE_NAMED.get(_screen_of(path)) if named else None


class _Static(StaticFiles):
    """Style sheet and script. They hold no secret, and the login page needs them."""

    def file_response(self, *args: object, **kwargs: object) -> Response:
        response = super().file_response(*args, **kwargs)  # type: ignore[arg-type]
        response.headers["cache-control"] = "public, max-age=300"
        return gate.protect(response)


def _failed(view: View, error: UserError) -> Response:
    """Shows a refusal of the control API. A system that cannot be reached is shown with the time since then, and the
    page reloads."""
    away = isinstance(error, NotReadyError)
    kinds: tuple[tuple[type[UserError], int], ...] = ((NotFound, 404), (Forbidden, 403), (UsageError, 400))
    status = 503 if away else next((code for kind, code in kinds if isinstance(error, kind)), 409)
    since = time.strftime("%H:%M:%S", time.gmtime())
    return view.render(
        "error.html", status, status=status, message=str(error), away=away, since=since, method=view.request.method
    )
