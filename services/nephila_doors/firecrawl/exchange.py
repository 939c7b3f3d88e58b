"""All operations of Firecrawl's API read bodies within the same bounds, and answer errors in the one form that its
clients know."""

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


class RequestRefused(Exception):
    def __init__(self, status: int, message: str, code: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.body = {"success": False, "error": message, **({"code": code} if code else {})}


def status_of(error: UserError) -> int:
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
    return Response(msgspec.json.encode(body), status, media_type="application/json")


async def read_body(request: Request) -> dict[str, Any]:
    """Raises `RequestRefused` unless the body is an object."""
    chunks, size = [], 0
    try:
        async with asyncio.timeout(BODY_S):
            async for chunk in request.stream():
                size += len(chunk)
                if size > MAX_BODY:
                    raise RequestRefused(413, f"the body is longer than {MAX_BODY:,} bytes")
                chunks.append(chunk)
    except TimeoutError:
        raise RequestRefused(408, f"the body did not arrive in {BODY_S:g} s") from None
    try:
        content = msgspec.json.decode(b"".join(chunks))
    except UNREADABLE:
        raise RequestRefused(400, "the body is not JSON") from None
    if not isinstance(content, dict):
        raise RequestRefused(400, "the body is not a JSON object")
    return content


def answered(row: screen_types.PageRow) -> screen_types.PageRow:
    """Returns the row of a page that its server answered. Raises `RequestRefused` for every other end."""
    if row.reason.startswith("http_"):
        return row
    message = f"{row.url[:500]}: {row.words}"
    if row.reason == Reason.ROBOTS:
        raise RequestRefused(403, message)
    raise RequestRefused(500, message, _CODES.get(row.reason, f"SCRAPE_{row.reason.upper()}"))


def base_url(request: Request) -> str:
    """Returns the address of the API as the client has it."""
    return f"{request.url.scheme}://{request.headers.get('host', 'localhost')}{PREFIX}"


def whole_number(request: Request, name: str, default: int) -> int:
    """Reads a parameter of the query. Raises `RequestRefused`."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise RequestRefused(400, f"{name} is {text[:50]!r}, not a whole number")
    return int(text)
