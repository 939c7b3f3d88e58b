"""Bodies of requests to Firecrawl's API, and the form of its answers and errors."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import msgspec
from nephila.kernel.reasons.table import Reason
from nephila.kernel.runtime.errors import UNREADABLE, NotReadyError, UsageError, UserError
from nephila_control import screen_types
from nephila_control.api import Forbidden, NotFound
from starlette.requests import Request
from starlette.responses import Response

from nephila_doors.scrapes import Busy, WaitTimeout

PREFIX: Final = "/v2"
MAX_BODY: Final = 1 << 20
BODY_S: Final = 30.0
_CODES: Final = {"dns": "SCRAPE_DNS_RESOLUTION_ERROR", "tls": "SCRAPE_SSL_ERROR"}


class Refused(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, message: str, code: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.body = {"success": False, "error": message, **({"code": code} if code else {})}


def status_of(error: UserError) -> int:
    """The status of a refusal of the control API."""
    for kind, status in (
        (UsageError, 400),
        (NotFound, 404),
        (Forbidden, 403),
        (Busy, 429),
        (WaitTimeout, 408),
        (NotReadyError, 503),
    ):
        if isinstance(error, kind):
            return status
    return 409


def json_answer(status: int, body: Any) -> Response:
    """A body as JSON."""
    return Response(msgspec.json.encode(body), status, media_type="application/json")


async def read_body(request: Request) -> dict[str, Any]:
    """The object of a request. Raises `Refused`."""
    chunks, size = [], 0
    try:
        async with asyncio.timeout(BODY_S):
            async for chunk in request.stream():
                size += len(chunk)
                if size > MAX_BODY:
                    raise Refused(413, f"the body is longer than {MAX_BODY:,} bytes")
                chunks.append(chunk)
    except TimeoutError:
        raise Refused(408, f"the body did not arrive in {BODY_S:g} s") from None
    try:
        found = msgspec.json.decode(b"".join(chunks))
    except UNREADABLE:
        raise Refused(400, "the body is not JSON") from None
    if not isinstance(found, dict):
        raise Refused(400, "the body is not a JSON object")
    return found


def answered(row: screen_types.PageRow) -> screen_types.PageRow:
    """The row of a page that its server answered; raises `Refused` for every other end."""
    if row.reason.startswith("http_"):
        return row
    message = f"{row.url[:500]}: {row.words}"
    if row.reason == Reason.ROBOTS:
        raise Refused(403, message)
    raise Refused(500, message, _CODES.get(row.reason, f"SCRAPE_{row.reason.upper()}"))


def base_url(request: Request) -> str:
    """The address of the API, as the client has it."""
    return f"{request.url.scheme}://{request.headers.get('host', 'localhost')}{PREFIX}"


def whole_number(request: Request, name: str, default: int) -> int:
    """A parameter of the query. Raises `Refused`."""
    given = request.query_params.get(name)
    if given is None:
        return default
    if not given.isascii() or not given.isdecimal() or len(given) > 18:
        raise Refused(400, f"{name} is {given[:50]!r}, not a whole number")
    return int(given)
