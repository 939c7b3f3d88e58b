"""A session begins by a token, by OIDC or by a proxy before this server. This module begins and ends sessions, and
finds that of a request.

Invariant: what a proxy says about a user counts only in requests from an address of the access file, and in each of
them: a session of one user ends with the first request of another.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote, urlsplit

from nephila.kernel.runtime.clock import Clock, SystemClock
from nephila_control.access.access_file import AccessFile, granted
from nephila_control.access.authority import Authority
from nephila_control.access.caller import ANONYMOUS, Caller, digest
from nephila_control.access.live_access import LiveAccess
from starlette.requests import Request
from starlette.responses import Response

from nephila_console import gate
from nephila_console.capability_cache import Lacking
from nephila_console.messages import translate as _
from nephila_console.oidc import LOGIN_S, OidcLogin
from nephila_console.session_file import SessionFile
from nephila_console.sessions import Session, Sessions
from nephila_console.unsent_form import UnsentForm, unsent_form, without_token
from nephila_console.view import View, go
from nephila_console.words import BASE

OIDC_PATH: Final = f"{BASE}/oidc"


class Access:
    def __init__(
        self,
        authority: Authority,
        names: Collection[str] = (),
        clock: Clock | None = None,
        live: LiveAccess | None = None,
        sessions: Path | None = None,
    ) -> None:
        """`names` are names of this server in addition to its addresses, localhost and the name of the machine. `live`
        adds login by OIDC and by a proxy; its tokens are those of the authority. `sessions` is the file in which
        sessions outlive the server; None: they end with it."""
        self.clock = clock or SystemClock()
        self._own_names = names
        self._live = live
        self.authority = authority
        self.sessions = Sessions(self.clock, SessionFile(sessions) if sessions is not None else None)
        self.seal = gate.Seal()
        self.oidc: OidcLogin | None = None
        self._take(live.file if live is not None else AccessFile())
        self.sessions.end_unless(self._stays)

    def _take(self, file: AccessFile) -> None:
        self._version = self._live.version if self._live is not None else 0
        oidc = file.oidc
        self.provider = digest(repr(oidc)) if oidc is not None else b""
        self.oidc = OidcLogin(oidc, self.seal, self.clock) if oidc is not None else None
        self.proxy = file.header
        self.secure = oidc is not None and oidc.public_url.startswith("https:")
        public = urlsplit(oidc.public_url).hostname if oidc is not None else None
        self.names = (*self._own_names, *([public] if public else []))

    @property
    def problem(self) -> str:
        """Reason why a changed access file is not used; empty if it is."""
        return self._live.problem if self._live is not None else ""

    def refresh(self) -> None:
        """Takes a changed access file, and ends the sessions that it would not allow to begin."""
        if self._live is None:
            return
        self._live.refresh()
        if self._live.version != self._version:
            self._take(self._live.file)
            self.sessions.end_unless(self._stays)

    def _stays(self, session: Session) -> bool:
        """Each request checks a session by a proxy, so such a session stays here."""
        if session.by == "token":
            holder = self.authority.holder(session.proof)
            return holder is not None and holder.caller == session.caller
        return session.by != "oidc" or session.proof == self.provider


def view_of(
    access: Access,
    request: Request,
    session: Session | None = None,
    form: dict[str, str] | None = None,
    lacking: Lacking | None = None,
) -> View:
    """The view is anonymous without a session."""
    control = access.authority.of(session.caller if session is not None else ANONYMOUS)
    return View(request, control, session, form or {}, access.seal, access.problem, lacking)


class Logins:
    def __init__(self, access: Access) -> None:
        self._access = access

    def session(self, request: Request) -> Session | None:
        return self._session(request, used="x-refresh" not in request.headers)

    def watching(self, request: Request) -> Session | None:
        """Returns the session of a viewer of live figures: watching does not prolong a session."""
        return self._session(request, used=False)

    def _session(self, request: Request, *, used: bool) -> Session | None:
        cookie = request.cookies.get(gate.cookie_name(request), "")
        session = self._access.sessions.find(cookie, used=used)
        if session is not None and session.by == "proxy" and self._from_proxy(request) != session.caller:
            self._access.sessions.close(cookie)
            return None
        return session

    def _from_proxy(self, request: Request) -> Caller | None:
        """Returns the user whom the proxy names; None without a trusted proxy."""
        proxy = self._access.proxy
        if proxy is None or not _is_in(request.client.host if request.client is not None else "", proxy.proxies):
            return None
        users, groups = request.headers.getlist(proxy.user), request.headers.getlist(proxy.groups)
        if len(users) != 1 or not users[0] or len(groups) > 1:  # two values: one of them is not the proxy's
            return None
        return granted(users[0][:200], [group.strip() for group in "".join(groups).split(",")], proxy.grants)

    # ---- by a token, or by a proxy

    async def login(self, request: Request) -> Response:
        """GET and POST /console/login"""
        sessions, address = self._access.sessions, request.client.host if request.client is not None else ""
        tries = self._access.authority.tries
        token = request.query_params.get("token", "")
        following, unsent = request.query_params.get("next", ""), None
        if request.method == "POST":
            gate.check_origin(request)
            form = await gate.read_form(request)
            token, following, unsent = form.get("token", "").strip(), form.get("next", ""), unsent_form(form)
        if not token:
            if (session := self.session(request)) is not None:
                return self._send_again(request, session, unsent) if unsent else go(gate.local_path(following))
            caller = self._from_proxy(request) if "out" not in request.query_params else None
            if caller is not None:
                return self._opened(request, sessions.open(caller, "proxy"), following, unsent)
            return self._form(request, "", following=following, unsent=unsent)
        if (wait_s := tries.wait_s(address)) > 0 and not tries.was_accepted(address, digest(token)):
            problem = _("Too many wrong tokens. Try again in %(seconds)s s.") % {"seconds": f"{wait_s:.0f}"}
            response = self._form(request, problem, 429, following, unsent)
            response.headers["retry-after"] = f"{wait_s + 1:.0f}"
            return response
        opened = sessions.redeem(token) or self._by_token(token, request.method)
        if not opened:
            tries.failed(address)
            problem = _("This token is wrong, was used already, or is too old.")
            return self._form(request, problem, 403, following, unsent)
        return self._opened(request, opened, following, unsent)

    def without_session(self, request: Request, form: dict[str, str]) -> Response:
        """Answers a form whose session has ended: the page of the login carries it."""
        unsent = UnsentForm(gate.local_path(request.url.path), without_token(form))
        caller = self._from_proxy(request)
        if caller is not None:
            return self._opened(request, self._access.sessions.open(caller, "proxy"), "", unsent)
        problem = _("Your session has ended. Nothing is changed yet; log in, and send the form then.")
        return self._form(request, problem, 401, unsent=unsent)

    def of_another_session(self, request: Request, session: Session, form: dict[str, str]) -> Response:
        """Answers a form with the token of another session: nothing is changed before the person sends it again."""
        unsent = UnsentForm(gate.local_path(request.url.path), without_token(form))
        return self._send_again(request, session, unsent, 403)

    def _send_again(self, request: Request, session: Session, unsent: UnsentForm, status: int = 200) -> Response:
        return view_of(self._access, request, session).render("send_again.html", status, unsent=unsent)

    def _by_token(self, token: str, method: str) -> str:
        """Opens a session for a token of the API, from a form only: histories and logs keep addresses."""
        authority = self._access.authority
        caller = authority.caller(token) if method == "POST" and authority.has_tokens else None
        return self._access.sessions.open(caller, "token", digest(token)) if caller is not None else ""

    def _form(
        self,
        request: Request,
        problem: str,
        status: int = 200,
        following: str = "",
        unsent: UnsentForm | None = None,
    ) -> Response:
        access = self._access
        ways = {
            "takes_token": access.authority.has_tokens,
            "oidc": access.oidc is not None,
            "proxy": access.proxy is not None,
        }
        view = view_of(access, request)
        following = gate.local_path(following) if following else ""
        return view.render("login.html", status, problem=problem, following=following, unsent=unsent, **ways)

    def _opened(self, request: Request, session_id: str, following: str, unsent: UnsentForm | None = None) -> Response:
        session = self._access.sessions.find(session_id) if unsent is not None else None
        if session is not None and unsent is not None:
            response = self._send_again(request, session, unsent)
        else:
            response = go(gate.local_path(following))
        gate.set_session(response, request, session_id, secure=self._access.secure)
        return response

    async def logout(self, view: View) -> Response:
        """POST /console/logout"""
        self._access.sessions.close(view.request.cookies.get(gate.cookie_name(view.request), ""))
        # Without `out` the proxy's user would be logged in again at once.
        response = go(f"{BASE}/login" + ("?out=1" if self._access.proxy is not None else ""))
        gate.set_session(response, view.request, "", secure=self._access.secure)
        return response

    # ---- by OIDC

    async def oidc(self, request: Request) -> Response:
        """GET /console/oidc: redirects to the provider."""
        url, cookie = await self._provider().begin()
        response = go(url)
        following = gate.local_path(request.query_params.get("next", ""))
        self._set_login(response, request, f"{cookie}~{quote(following, safe='')}")
        return response

    async def oidc_callback(self, request: Request) -> Response:
        """GET /console/oidc/callback: the provider sends the browser back here."""
        cookie, _mark, following = request.cookies.get(_login_cookie(request), "").partition("~")
        caller = await self._provider().finish(dict(request.query_params), cookie)
        session_id = self._access.sessions.open(caller, "oidc", self._access.provider)
        response = self._opened(request, session_id, unquote(following))
        self._set_login(response, request, "")
        return response

    def _provider(self) -> OidcLogin:
        if self._access.oidc is None:
            raise gate.Refused(404, _("There is no such screen."))
        return self._access.oidc

    def _set_login(self, response: Response, request: Request, value: str) -> None:
        """Sets the cookie of a login under way: what the provider's answer is checked with, and where the login goes on
        to. It is lax, because it has to come along from the provider."""
        response.set_cookie(
            _login_cookie(request),
            value,
            max_age=int(LOGIN_S) if value else 0,
            path=OIDC_PATH,
            httponly=True,
            samesite="lax",
            secure=self._access.secure or request.url.scheme == "https",
        )


def _login_cookie(request: Request) -> str:
    return f"{gate.cookie_name(request)}_oidc"


def _is_in(address: str, networks: Collection[str]) -> bool:
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = getattr(ip, "ipv4_mapped", None)
    return any((mapped or ip) in ipaddress.ip_network(network, strict=False) for network in networks)
