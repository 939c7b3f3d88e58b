"""Firecrawl's HTTP API below /v2, beside the control API and with its token.

The official clients are its judges. Invariants: a body is bounded in bytes and time, an answer in pages; each error is
{"success": false, "error": one line} with the status that the clients know; no input causes status 500. A crawl is a
job whose name is its id, so a restart loses none; a cancelled crawl is a paused job. Ended crawls are deleted after a
day, with the next one that starts; their rows stay.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from nephila.adapters.firecrawl import options
from nephila.adapters.firecrawl.documents import NO_RULE, document, failed_document, needs_source
from nephila.adapters.firecrawl.exchange import (
    PREFIX,
    Refused,
    answered,
    base_url,
    json_answer,
    read_body,
    status_of,
    whole_number,
)
from nephila.adapters.firecrawl.webhooks import Watched, Webhook, Webhooks, read_webhook
from nephila.adapters.scrapes import NotStored, Scrapes, url_key
from nephila.adapters.site_map import site_map
from nephila.control import requests, screen_types
from nephila.control.access.authority import Authority, TooManyTries, given_token
from nephila.control.access.caller import Caller
from nephila.control.api import Control, NotFound
from nephila.harvest.webhooks.transport import HttpTransport, WebhookTransport
from nephila.kernel.runtime.clock import Clock, SystemClock
from nephila.kernel.runtime.errors import UsageError, UserError

log = logging.getLogger(__name__)
PAGE: Final = 20
"""Documents of one answer."""
ERRORS: Final = 200
WEBHOOK_S: Final = 10.0
"""Longest wait for the answer of a receiver."""
KEPT_S: Final = 86_400
"""How long an ended crawl is known."""
_INSTEAD: Final = {
    "extract": ": scrape with format json and a schema, by a rule that has its fields",
    "agent": ": there is no language model here; nephila mcp serves one",
}
Work = Callable[["FirecrawlApi", Request], Awaitable[Any]]


def routes(
    authority: Authority, clock: Clock | None = None, transport: WebhookTransport | None = None
) -> list[BaseRoute]:
    """The routes for the server of the control API; its tokens are the API keys. `transport`: of webhooks."""
    known: dict[Caller, FirecrawlApi] = {}
    time = clock or SystemClock()
    webhooks = Webhooks(time, transport or HttpTransport((), WEBHOOK_S))

    def of(caller: Caller) -> FirecrawlApi:
        if caller not in known:
            known[caller] = FirecrawlApi(authority.of(caller), time, webhooks)
        return known[caller]

    def guarded(work: Work) -> Callable[[Request], Awaitable[Response]]:
        return _guarded(authority, of, work)

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
    found: list[BaseRoute] = [Route(PREFIX + path, guarded(work), methods=[method]) for method, path, work in table]
    found.append(Route(PREFIX + "/{rest:path}", guarded(_unknown), methods=["GET", "POST", "DELETE", "PATCH"]))
    return found


async def _unknown(api: FirecrawlApi, request: Request) -> Any:
    path = request.url.path.removeprefix(PREFIX)
    hint = _INSTEAD.get(path.split("/")[1] if "/" in path else "", "")
    raise Refused(404, f"{request.method} {request.url.path[:200]} is not an operation that is served here{hint}")


def _of_kind(work: Callable[[FirecrawlApi, Request, str, str], Awaitable[Any]], kind: str) -> Work:
    """The operation on the crawls of a kind."""

    async def call(api: FirecrawlApi, request: Request) -> Any:
        crawl = request.path_params["id"]
        known = options.read_id(crawl)
        if known is None or known.kind != kind:
            raise Refused(404, f"there is no {kind} {crawl[:100]!r}")
        return await work(api, request, crawl, kind)

    return call


def _guarded(
    authority: Authority, of: Callable[[Caller], FirecrawlApi], work: Work
) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        address = request.client.host if request.client is not None else ""
        try:
            caller = authority.bearer(request.headers.get("authorization", ""), address)
        except TooManyTries as error:
            refused = json_answer(429, {"success": False, "error": str(error)})
            refused.headers["retry-after"] = str(error.retry_after_s)
            return refused
        if caller is None:
            return json_answer(401, {"success": False, "error": "the API key is missing or wrong"})
        try:
            return json_answer(200, await work(of(caller), request))
        except Refused as refused:
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


class FirecrawlApi:
    """The operations."""

    def __init__(self, control: Control, clock: Clock, webhooks: Webhooks) -> None:
        self._control = control
        self._webhooks = webhooks
        self._clock = clock
        self._scrapes = Scrapes(control, clock)
        self._schemas: dict[str, Mapping[str, Any]] = {}

    async def scrape(self, request: Request) -> Any:
        given = await read_body(request)
        wanted = options.scrape_options(given, beside=frozenset(("url",)))
        url = options.text(given, "url")
        rules = await self._rules_for(wanted.schema)
        try:
            found = await self._scrapes.page(
                url,
                rules=rules,
                max_age_s=wanted.max_age_s,
                wait_s=wanted.timeout_s,
                render="always" if wanted.rendered else "never",
            )
        except NotStored as ended:
            return {"success": True, "data": failed_document(answered(ended.row), url)}
        data = await self._document(found, wanted.formats, wanted.schema, url)
        if wanted.schema is not None and data["json"] is None:
            raise Refused(422, f"{found.page.url[:500]}: {NO_RULE}")
        return {"success": True, "data": data}

    async def _rules_for(self, schema: Mapping[str, Any] | None) -> list[str]:
        """All rules where a schema is given: the first that matches a page reads it."""
        if schema is None:
            return []
        rules = (await self._control.list_rules(requests.Empty())).rules
        known = {name for one in rules for name in one.document.get("spec", {}).get("fields", {})}
        if not known & schema["properties"].keys():
            raise Refused(422, NO_RULE)
        return [one.name for one in rules]

    async def _document(
        self,
        found: screen_types.PageDetail,
        formats: tuple[options.Format, ...],
        schema: Mapping[str, Any] | None,
        asked: str = "",
    ) -> dict[str, Any]:
        markdown = await self._scrapes.markdown(found) if "markdown" in formats else ""
        source = None
        if needs_source(formats):
            with contextlib.suppress(NotFound):
                source = await self._scrapes.source(found)
        return await asyncio.to_thread(document, found, formats, schema, asked, markdown=markdown, source=source)

    async def map(self, request: Request) -> Any:
        given = await read_body(request)
        known = frozenset(("url", "search", "limit", "sitemap", "includeSubdomains", "timeout"))
        options.scrape_options({name: value for name, value in given.items() if name not in known})
        limit = options.number(given, "limit", 5000, 1, 100_000)
        timeout = options.number(given, "timeout", options.DEFAULT_TIMEOUT_S * 1000, 1, 10**9) / 1000
        search = given.get("search") or ""
        if not isinstance(search, str):
            raise Refused(400, "search is not a text")
        try:
            found = await site_map(
                self._control,
                self._clock,
                options.text(given, "url"),
                search=search,
                limit=int(limit),
                wait_s=min(timeout, options.MAX_TIMEOUT_S),
            )
        except NotStored as ended:
            answered(ended.row)
            raise Refused(409, str(ended)) from None
        links = [{"url": one.url, **({"title": one.title} if one.title else {})} for one in found]
        return {"success": True, "links": links}

    async def start_crawl(self, request: Request) -> Any:
        given = await read_body(request)
        _, wanted = options.crawl_document("", given)
        crawl = options.id_of("crawl", self._clock.now(), secrets.token_hex(6), wanted.formats)
        job, _ = options.crawl_document(crawl, given)
        return await self._start(request, given, job, crawl, "crawl", wanted)

    async def start_batch(self, request: Request) -> Any:
        given = await read_body(request)
        beside = frozenset(("urls", "ignoreInvalidURLs", "webhook"))
        wanted = options.scrape_options(given, beside=beside)
        urls, invalid = [], []
        for url in options.urls_of(given):
            try:
                url_key(url)
                urls.append(url)
            except UsageError:
                invalid.append(url)
        if invalid and (given.get("ignoreInvalidURLs") is not True or not urls):
            raise Refused(400, f"{invalid[0][:200]!a} is not a URL that can be crawled")
        crawl = options.id_of("batch", self._clock.now(), secrets.token_hex(6), wanted.formats)
        job = options.batch_document(crawl, urls, wanted)
        started = await self._start(request, given, job, crawl, "batch/scrape", wanted)
        return {**started, **({"invalidURLs": invalid} if invalid else {})}

    async def _start(
        self,
        request: Request,
        given: Mapping[str, Any],
        job: dict[str, Any],
        crawl: str,
        path: str,
        wanted: options.ScrapeOptions,
    ) -> dict[str, Any]:
        hook = read_webhook(given.get("webhook"))
        if hook is not None:
            self._webhooks.check()
        job["spec"]["rules"] = await self._rules_for(wanted.schema)
        await self._expire()
        applied = await self._control.apply_job(requests.ApplyJob(job=job))
        if applied.refused and applied.refused_count >= len(job["spec"]["seeds"]):
            await self._control.delete_job(requests.JobName(name=crawl))
            raise Refused(400, f"{applied.refused[0].url[:200]}: {applied.refused[0].reason}")
        if wanted.schema is not None:
            self._schemas[crawl] = wanted.schema
        if hook is not None:
            self._deliver(crawl, hook, given_token(request.headers.get("authorization", "")))
        return {"success": True, "id": crawl, "url": f"{base_url(request)}/{path}/{crawl}"}

    def _deliver(self, crawl: str, hook: Webhook, key: str) -> None:
        known = options.read_id(crawl)
        assert known is not None

        async def page(row: screen_types.PageRow) -> dict[str, Any] | None:
            return await self._row_document(row, crawl, known.formats)

        async def state() -> str:
            return (await self._state(crawl))[0]

        self._webhooks.begin(Watched(self._control, key, crawl, known.kind, hook), page, state)

    async def _row_document(
        self, row: screen_types.PageRow | screen_types.SearchHit, crawl: str, formats: tuple[options.Format, ...]
    ) -> dict[str, Any] | None:
        """None: the row is gone, or it is no document but a sitemap or a feed."""
        try:
            detail = await self._control.get_page(screen_types.GetPage(url=row.url, job=row.job))
        except NotFound:
            return None
        return None if "list" in detail.meta else await self._document(detail, formats, self._schemas.get(crawl))

    async def search(self, request: Request) -> Any:
        """Pages that were crawled here, of hosts that the request names."""
        wanted = options.search_options(await read_body(request))
        hits: dict[str, screen_types.SearchHit] = {}
        for query in wanted.queries:
            found = await self._control.search_pages(screen_types.SearchPages(query=query, limit=wanted.limit))
            for hit in found.hits:
                hits.setdefault(hit.url_key, hit)
        chosen = list(hits.values())[: wanted.limit]
        web: list[dict[str, Any]] = []
        for position, hit in enumerate(chosen, 1):
            texts = ["".join(part.text for part in parts) for parts in (hit.title, hit.passage)]
            row = {"url": hit.url, "title": texts[0], "description": texts[1], "position": position}
            if wanted.formats:
                row |= await self._row_document(hit, "", wanted.formats) or {}
            web.append(row)
        return {"success": True, "data": {"web": web}, "warning": "only pages that were crawled here are searched"}

    async def _expire(self) -> None:
        """Delete the jobs of crawls that are older than a day and do not run."""
        now = self._clock.now()
        for job in (await self._control.list_jobs(requests.Empty())).jobs:
            known = options.read_id(job.name)
            if known is None or now - known.begun < KEPT_S:
                continue
            if job.state == "paused" or not (job.queued or job.in_flight):
                await self._control.delete_job(requests.JobName(name=job.name))
                self._schemas.pop(job.name, None)

    async def status(self, request: Request, crawl: str, kind: str) -> Any:
        known = options.read_id(crawl)
        assert known is not None
        before, limit = whole_number(request, "before", 0), min(whole_number(request, "limit", PAGE), PAGE)
        wanted = screen_types.ListPages(job=crawl, outcome="stored", before=before, limit=max(limit, 1))
        found = await self._control.list_pages(wanted)
        state, total, completed = await self._state(crawl)
        data = []
        for row in found.pages:
            one = await self._row_document(row, crawl, known.formats)
            if one is not None:
                data.append(one)
        answer = {
            "success": True,
            "status": state,
            "total": total,
            "completed": completed,
            "creditsUsed": 0,
            "expiresAt": datetime.fromtimestamp(known.begun + KEPT_S, UTC).isoformat(),
            "data": data,
        }
        if found.next:
            path = "crawl" if kind == "crawl" else "batch/scrape"
            answer["next"] = f"{base_url(request)}/{path}/{crawl}?{urlencode({'before': found.next, 'limit': limit})}"
        return answer

    async def _state(self, crawl: str) -> tuple[str, int, int]:
        """(status, URLs, pages stored)."""
        try:
            job = (await self._control.get_job(requests.JobName(name=crawl))).status
        except NotFound:
            raise Refused(404, f"there is no crawl {crawl[:100]!r}, or it has expired") from None
        ended = job.stored + job.denied + job.failed + job.dropped
        left = job.queued + job.in_flight
        if job.state == "paused":
            return "cancelled", ended + left, job.stored
        if left or (not ended and job.observed_generation < job.generation):
            return "scraping", ended + left, job.stored
        return ("completed" if job.stored else "failed"), ended, job.stored

    async def cancel(self, request: Request, crawl: str, kind: str) -> Any:
        state, _, _ = await self._state(crawl)
        if state in ("completed", "failed"):
            raise Refused(409, f"the crawl {crawl} has ended already")
        if state != "cancelled":
            await self._control.pause_job(requests.JobName(name=crawl))
        return {"success": True, "status": "cancelled"}

    async def errors(self, request: Request, crawl: str, kind: str) -> Any:
        await self._state(crawl)
        errors, blocked = [], []
        for outcome in ("failed", "denied"):
            wanted = screen_types.ListPages(job=crawl, outcome=outcome, limit=ERRORS)
            for row in (await self._control.list_pages(wanted)).pages:
                if row.reason == "robots":
                    blocked.append(row.url)
                    continue
                errors.append(
                    {
                        "id": row.url_key,
                        "timestamp": row.fetched_at,
                        "url": row.url,
                        "code": row.reason,
                        "error": row.words,
                    }
                )
        return {"errors": errors, "robotsBlocked": blocked}

    async def active_crawls(self, request: Request) -> Any:
        found = await self._control.list_jobs(requests.Empty())
        crawls = []
        for job in found.jobs:
            known = options.read_id(job.name)
            if known is not None and known.kind == "crawl" and job.state != "paused" and job.queued + job.in_flight:
                detail = await self._control.get_job(requests.JobName(name=job.name))
                seeds = detail.document.get("spec", {}).get("seeds", [])
                url = seeds[0].get("url", "") if seeds and isinstance(seeds[0], dict) else ""
                crawls.append({"id": job.name, "teamId": job.tenant, "url": url, "options": None})
        return {"success": True, "crawls": crawls}
