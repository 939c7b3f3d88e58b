"""Firecrawl's HTTP API below /v2, beside the control API and with its tokens as API keys.

Invariants: a body is bounded in bytes and time; each error is {"success": false, "error": one line} with the status
that the clients know; no input causes status 500.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from nephila.kernel.runtime.clock import Clock, SystemClock
from nephila.kernel.runtime.errors import UserError
from nephila_control.access.authority import Authority, TooManyTries
from nephila_control.access.caller import Caller
from nephila_harvest.webhooks.database import Database
from nephila_harvest.webhooks.transport import HttpTransport, WebhookTransport
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from nephila_doors.firecrawl import options
from nephila_doors.firecrawl.application import FirecrawlApi
from nephila_doors.firecrawl.exchange import PREFIX, RequestRefused, json_answer, status_of
from nephila_doors.firecrawl.kept_crawls import TABLES, KeptCrawl, KeptCrawls
from nephila_doors.firecrawl.webhooks import Unknown, Watched, Webhooks

log = logging.getLogger(__name__)
WEBHOOK_S: Final = 10.0
"""Longest wait for the answer of a receiver."""
_INSTEAD: Final = {
    "extract": ": scrape with format json and a schema, by a rule that has its fields",
    "agent": ": there is no language model here; nephila mcp serves one",
}
Work = Callable[[FirecrawlApi, Request], Awaitable[Any]]


class FirecrawlServer:
    """Gives the server of the control API its routes, and delivers the webhooks of crawls from `start` to `close`."""

    def __init__(
        self,
        authority: Authority,
        rows: Path | str,
        clock: Clock | None = None,
        transport: WebhookTransport | None = None,
    ) -> None:
        """`rows` is a directory or the URL of a database. `transport` sends webhooks."""
        self._authority = authority
        self._clock = clock or SystemClock()
        self._known: dict[Caller, FirecrawlApi] = {}
        self._kept = KeptCrawls(Database(rows, TABLES))
        sends = transport or HttpTransport((), WEBHOOK_S)
        self._webhooks = Webhooks(self._clock, sends, self._kept, self._watched)
        self.routes = self._routes()

    async def start(self) -> None:
        """Continues webhooks that an earlier program did not deliver."""
        self._webhooks.start()

    async def close(self) -> None:
        """Ends the deliveries; the next start continues them."""
        await self._webhooks.close()

    def _of(self, caller: Caller) -> FirecrawlApi:
        if caller not in self._known:
            control = self._authority.of(caller)
            self._known[caller] = FirecrawlApi(control, self._clock, self._kept, self._webhooks)
        return self._known[caller]

    def _watched(self, record: KeptCrawl) -> Watched:
        holder = self._authority.holder(bytes.fromhex(record.key))
        if holder is None:
            raise Unknown("its API key is not known any more")
        caller, key = holder
        return self._of(caller).watched(record, key)

    def _routes(self) -> list[BaseRoute]:
        api = FirecrawlApi
        table: list[tuple[str, str, Work]] = [
            ("POST", "/scrape", api.scrape),
            ("POST", "/map", api.map),
            ("POST", "/search", api.search),
            ("POST", "/crawl", api.start_crawl),
            ("GET", "/crawl/active", api.active_crawls),
            ("POST", "/batch/scrape", api.start_batch),
        ]
        for kind, path in (("crawl", "/crawl/{id}"), ("batch", "/batch/scrape/{id}")):
            table += [
                ("GET", path, _of_kind(api.status, kind)),
                ("DELETE", path, _of_kind(api.cancel, kind)),
                ("GET", f"{path}/errors", _of_kind(api.errors, kind)),
            ]
        routes: list[BaseRoute] = [
            Route(PREFIX + path, self._guarded(work), methods=[method]) for method, path, work in table
        ]
        methods = ["GET", "POST", "DELETE", "PATCH"]
        routes.append(Route(PREFIX + "/{rest:path}", self._guarded(_unknown), methods=methods))
        return routes

    def _guarded(self, work: Work) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            address = request.client.host if request.client is not None else ""
            try:
                caller = self._authority.bearer(request.headers.get("authorization", ""), address)
            except TooManyTries as error:
                refused = json_answer(429, {"success": False, "error": str(error)})
                refused.headers["retry-after"] = str(error.retry_after_s)
                return refused
            if caller is None:
                return json_answer(401, {"success": False, "error": "the API key is missing or wrong"})
            try:
                return json_answer(200, await work(self._of(caller), request))
            except RequestRefused as refused:
                return json_answer(refused.status, refused.body)
            except UserError as error:
                return json_answer(status_of(error), {"success": False, "error": str(error)})
            except ClientDisconnect:
                return Response(status_code=408)
            except Exception:
                log.exception("an operation of Firecrawl's API failed")
                return json_answer(
                    503, {"success": False, "error": "the operation failed; the log of the program says why"}
                )

        return answer


async def _unknown(api: FirecrawlApi, request: Request) -> Any:
    path = request.url.path.removeprefix(PREFIX)
    hint = _INSTEAD.get(path.split("/")[1] if "/" in path else "", "")
    operation = f"{request.method} {request.url.path[:200]}"
    raise RequestRefused(404, f"{operation} is not an operation that is served here{hint}")


def _of_kind(work: Callable[[FirecrawlApi, Request, str, str], Awaitable[Any]], kind: str) -> Work:

    async def call(api: FirecrawlApi, request: Request) -> Any:
        crawl = request.path_params["id"]
        crawl_id = options.read_id(crawl)
        if crawl_id is None or crawl_id.kind != kind:
            raise RequestRefused(404, f"there is no {kind} {crawl[:100]!r}")
        return await work(api, request, crawl, kind)

    return call
