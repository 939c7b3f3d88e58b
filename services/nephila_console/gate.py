"""What every request to the console passes: Host, session, CSRF token, and the headers of every answer.

Invariants: a Host that is not this server's is refused before anything else, so a foreign name that resolves to this
address (DNS rebinding) sees nothing; a request without a session sees the login page and the static files; a POST
without the session's CSRF token changes nothing; no answer runs inline script or loads anything of another host.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
from collections.abc import Collection
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from starlette.requests import Request
from starlette.responses import Response

from nephila_console.words import BASE

MAX_FORM: Final = 2 << 20
"""Bytes of a form: a job with a long list of seeds in it."""
MAX_FIELDS: Final = 1000
"""Fields of a form: a grid of 40 sites has some 300."""
MAX_NEXT: Final = 8000
"""Characters of an address that a login goes on to; a draft of the studio is in its address."""
HEADERS: Final = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    # A browser would look the hosts of links up before anybody follows one.
    "x-dns-prefetch-control": "off",
    "x-frame-options": "DENY",
    # Not no-referrer: with it browsers send Origin: null with the console's own forms.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}


class Refused(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Seal:
    """Marks texts that this server wrote. A restart makes all marks invalid."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def mark(self, text: str) -> str:
        return hmac.new(self._key, text.encode(), "sha256").hexdigest()[:32]

    def holds(self, text: str, mark: str) -> bool:
        return hmac.compare_digest(self.mark(text).encode(), mark.encode("utf-8", "replace"))


def protect(response: Response) -> Response:
    """Adds the headers that the answer does not have."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response


def check_host(request: Request, names: Collection[str]) -> None:
    """Raises `Refused` unless Host is an address, localhost, the name of this machine or one of `names`. A page of
    another site that names an address as its host cannot rebind it."""
    host = request.headers.get("host", "")
    try:
        name = (urlsplit(f"//{host}").hostname or "").rstrip(".").lower()
        port = urlsplit(f"//{host}").port
    except ValueError:
        name, port = "", None
    own_names = {"localhost", socket.gethostname().lower(), *(alias.lower() for alias in names)}
    if name and port != 0 and (name in own_names or _is_address(name)):
        return
    raise Refused(421, "this name is not one of this server; open it by its address, or name it (console hosts)")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def check_origin(request: Request) -> None:
    """Raise `Refused` for a POST that a page of another origin sent."""
    origin = request.headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != request.headers.get("host", ""):
        raise Refused(403, "this form was sent by a page of another site")
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise Refused(403, "this form was sent by a page of another site")


def is_of_session(form: dict[str, str], csrf: str) -> bool:
    """Whether a form has the session's token."""
    return hmac.compare_digest(form.get("csrf", "").encode("utf-8", "replace"), csrf.encode())


async def read_form(request: Request) -> dict[str, str]:
    """Returns each field once. Raises `Refused`."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Refused(415, "a form is sent as application/x-www-form-urlencoded")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_FORM:
            raise Refused(413, f"a form has at most {MAX_FORM:,} bytes")
    try:
        return dict(
            parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="replace")
        )
    except (UnicodeDecodeError, ValueError):
        raise Refused(400, "the form cannot be read") from None


def local_path(value: str) -> str:
    """Returns an address of the console to go on to; the first screen for any other text.

    A browser reads a backslash as a slash and ignores tabs and line ends, so a text with one of them is no path."""
    inside = value == BASE or value.startswith(f"{BASE}/")
    clean = value.isascii() and value.isprintable() and "\\" not in value and "//" not in value.partition("?")[0]
    away = value.startswith((f"{BASE}/login", f"{BASE}/oidc", f"{BASE}/logout"))
    return value if inside and clean and not away and len(value) <= MAX_NEXT else f"{BASE}/"


def cookie_name(request: Request) -> str:
    """The name has the port, because the ports of a host share their cookies."""
    return f"nephila_{urlsplit('//' + request.headers.get('host', '')).port or 80}"


def set_session(response: Response, request: Request, session_id: str, *, secure: bool = False) -> None:
    """Sets the cookie of a session; an empty id deletes it. `secure` is true if browsers reach this server by https
    only."""
    response.set_cookie(
        cookie_name(request),
        session_id,
        max_age=None if session_id else 0,
        path="/console",
        httponly=True,
        # Lax: a link from a mail or a chat arrives with its session. No GET changes anything.
        samesite="lax",
        secure=secure or request.url.scheme == "https",
    )
