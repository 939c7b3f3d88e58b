"""The control API as an ASGI application: /healthz, /readyz, /metrics, and the routes below /api/v1.

Invariants: a body is bounded in bytes and time; every error has one JSON shape (`routes.ErrorAnswer`); no input causes
status 500. /healthz, /readyz and /metrics need no token: probes and Prometheus read them. They are answered also while
MAX_REQUESTS requests to the API are under way.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import msgspec
from nephila.kernel.runtime.errors import UNREADABLE, FormError, NotReadyError, UsageError, UserError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute
from starlette.routing import Route as HttpRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from nephila_control import api
from nephila_control.access.authority import Authority, TooManyTries
from nephila_control.declaration import PREFIX, Operation
from nephila_control.http.change_feeds import FORMATS
from nephila_control.http.errors import CODES, ErrorBody, error_json
from nephila_control.http.openapi import document_bytes

log = logging.getLogger(__name__)

MAX_BODY = 4 << 20
"""Bytes of a request's body: the largest document with the longest list of seeds in it."""
MAX_REQUESTS = 64
"""Requests to the API under way; a further one is answered by 503."""
BODY_S = 30.0
"""Longest time that a body may take to arrive."""
Metrics = Callable[[], Awaitable[tuple[bytes, str]]]
"""What /metrics answers: (text, content type)."""


class _Refusal(Exception):
    def __init__(self, code: str, message: str, where: str = "") -> None:
        super().__init__(message)
        self.body = ErrorBody(code=code, message=message, where=where)


def application(
    control: api.Control | None,
    *,
    authority: Authority | None = None,
    unready: Callable[[], str] = str,
    metrics: Metrics | None = None,
    beside: Sequence[BaseRoute] = (),
) -> Starlette:
    """`control`: None serves health and metrics only. `authority`: who may use `control`; None on a Unix socket, which
    only its owner reaches.
    `unready`: why no work can be taken, or the empty string. `beside`: routes of a client of this API on its server;
    they check access themselves."""

    async def healthz(request: Request) -> Response:
        return PlainTextResponse("alive\n")

    async def readyz(request: Request) -> Response:
        reason = unready()
        return PlainTextResponse(f"{reason or 'ready'}\n", 503 if reason else 200)

    async def show_metrics(request: Request) -> Response:
        if metrics is None:
            return _error("not_found", "this program has no metrics")
        text, kind = await metrics()
        return Response(text, headers={"content-type": kind})

    async def openapi(control: api.Control, request: Request) -> Response:
        return Response(document_bytes(), media_type="application/json")

    routes: list[BaseRoute] = [
        HttpRoute("/healthz", healthz),
        HttpRoute("/readyz", readyz),
        HttpRoute("/metrics", show_metrics),
    ]
    if control is not None:
        guarded = partial(_guarded, authority or Authority(control), unready)
        # Without `unready`: the document is the same while the system cannot be reached.
        routes.append(HttpRoute(f"{PREFIX}/openapi.json", _guarded(authority or Authority(control), str, openapi)))
        routes += _api_routes(guarded)
        for name in FORMATS:
            routes.append(HttpRoute(f"{PREFIX}/changes/feed/{name}", guarded(_feed(name))))
    app = Starlette(
        routes=[*routes, *beside],
        middleware=[Middleware(_RequestLimit)],
        exception_handlers={HTTPException: _http_error, Exception: _unexpected},
    )
    # A path with a further slash is another path: 404 in the one shape of errors, not a redirect.
    app.router.redirect_slashes = False
    return app


class _RequestLimit:
    """ASGI middleware: refuses a request to the API while MAX_REQUESTS are under way."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not str(scope.get("path", "")).startswith(PREFIX):
            await self._app(scope, receive, send)
            return
        if self._under_way >= MAX_REQUESTS:
            refused = _error("unavailable", f"{MAX_REQUESTS} requests are under way, the most at once; repeat it")
            await refused(scope, receive, send)
            return
        self._under_way += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._under_way -= 1


Work = Callable[[api.Control, Request], Awaitable[Response]]
"""Answers a request by the control API as its caller may use it."""


def _api_routes(guarded: Callable[[Work], Callable[[Request], Awaitable[Response]]]) -> list[HttpRoute]:
    """Each path has one route, so that a 405 names every method of it."""
    paths: dict[str, dict[str, Callable[[Request], Awaitable[Response]]]] = {}
    for operation in api.OPERATIONS.values():
        paths.setdefault(PREFIX + operation.path, {})[operation.method] = guarded(_work(operation))

    def dispatch(methods: dict[str, Callable[[Request], Awaitable[Response]]]) -> Any:
        async def endpoint(request: Request) -> Response:
            return await methods["GET" if request.method == "HEAD" else request.method](request)

        return endpoint

    return [HttpRoute(path, dispatch(methods), methods=list(methods)) for path, methods in paths.items()]


def _guarded(authority: Authority, unready: Callable[[], str], work: Work) -> Callable[[Request], Awaitable[Response]]:
    """Wraps the endpoint: it checks the token, and answers each error in the one shape of errors."""

    async def answer(request: Request) -> Response:
        address = request.client.host if request.client is not None else ""
        try:
            caller = authority.bearer(request.headers.get("authorization", ""), address)
        except TooManyTries as error:
            refused = _error("too_many_tries", str(error))
            refused.headers["retry-after"] = str(error.retry_after_s)
            return refused
        if caller is None:
            return _unauthorized()
        if reason := unready():
            return _error("unavailable", reason)
        try:
            return await work(authority.of(caller), request)
        except _Refusal as error:
            return _response(error.body)
        except UserError as error:
            return _error(_code(error), str(error))
        except ClientDisconnect:
            return Response(status_code=CODES["timeout"])
        except Exception as error:
            return await _unexpected(request, error)

    return answer


def _work(operation: Operation) -> Work:
    async def work(control: api.Control, request: Request) -> Response:
        answer = await operation.of(control, await _read(request, operation))
        return Response(msgspec.json.encode(answer), media_type="application/json")

    return work


def _feed(name: str) -> Work:
    """Answers the newest changes in a format of feed readers."""
    write, kind = FORMATS[name]
    listing = api.OPERATIONS["list_changes"]

    async def work(control: api.Control, request: Request) -> Response:
        query = await _read(request, listing)
        answer = await control.list_changes(msgspec.structs.replace(query, newest=True))
        body = await asyncio.to_thread(write, answer.changes, str(request.url))
        return Response(body, headers={"content-type": kind})

    return work


def _code(error: UserError) -> str:
    if isinstance(error, UsageError):
        form = any(isinstance(cause, FormError) for cause in (error, *error.others))
        return "invalid" if form else "wrong_value"
    for kind, code in ((api.NotFound, "not_found"), (api.Forbidden, "forbidden")):
        if isinstance(error, kind):
            return code
    return "unavailable" if isinstance(error, NotReadyError) else "refused"


async def _read(request: Request, operation: Operation) -> Any:
    """Decodes the request into its type. Raises `_Refusal`."""
    values: dict[str, Any] = dict(request.query_params) if not operation.has_body else {}
    if operation.has_body:
        values = _object(await _body(request))
        if request.query_params:
            raise _Refusal("invalid", "this operation has no query parameters; its fields are a JSON body")
    for name in operation.path_fields:
        if name in values:
            raise _Refusal("invalid", f"{name!r} is part of the path", f"$.{name}")
        values[name] = request.path_params[name]
    try:
        return msgspec.convert(values, operation.request, strict=operation.has_body)
    except (msgspec.ValidationError, RecursionError) as error:
        message, _, where = str(error).partition(" - at `")
        raise _Refusal("invalid", message, where.rstrip("`")) from None


def _number(text: str) -> float:
    """Reads a number with a point or an exponent; JSON's 22.0 is a whole number."""
    number = float(text)
    return int(number) if number.is_integer() and abs(number) < 1 << 53 else number


_DECODER = msgspec.json.Decoder(float_hook=_number)


def _object(body: bytes) -> dict[str, Any]:
    try:
        content = _DECODER.decode(body or b"{}")
    except UNREADABLE as error:
        raise _Refusal("invalid", f"the body is not JSON ({' '.join(str(error).split())[:200]})") from None
    if not isinstance(content, dict):
        raise _Refusal("invalid", "the body has to be a JSON object")
    return content


async def _body(request: Request) -> bytes:
    """Raises `_Refusal` for a body that is too large. The body is read to its end within reason, so that the client
    gets the answer."""
    body = bytearray()
    size = 0
    try:
        async with asyncio.timeout(BODY_S):
            async for chunk in request.stream():
                size += len(chunk)
                if size <= MAX_BODY:
                    body += chunk
                elif size > 4 * MAX_BODY:
                    break
    except TimeoutError:
        raise _Refusal("timeout", f"the body did not arrive in {BODY_S:g} s") from None
    if size > MAX_BODY:
        raise _Refusal("too_large", f"a body has at most {MAX_BODY:,} bytes")
    return bytes(body)


def _unauthorized() -> Response:
    answer = _error("unauthorized", "send the token of this server: Authorization: Bearer TOKEN")
    answer.headers["www-authenticate"] = "Bearer"
    return answer


def _http_error(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 404
    code = "method_not_allowed" if status == 405 else "not_found"
    message = f"{request.method} is not allowed here" if status == 405 else f"no such path; see {PREFIX}/openapi.json"
    answer = _error(code, message)
    if isinstance(error, HTTPException) and error.headers:
        answer.headers.update(error.headers)
    return answer


async def _unexpected(request: Request, error: Exception) -> Response:
    log.error("control: a request failed", exc_info=error)
    return _error("internal", f"{type(error).__name__}: {ascii(str(error))[1:-1]}"[:500])


def _error(code: str, message: str) -> Response:
    return _response(ErrorBody(code=code, message=message))


def _response(body: ErrorBody) -> Response:
    return Response(error_json(body.code, body.message, body.where), CODES[body.code], media_type="application/json")
