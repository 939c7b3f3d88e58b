"""The operations of Firecrawl's HTTP API. The official clients are its judges.

A crawl is a job whose name is its id, and what the job does not have is in `KeptCrawls`, so a restart loses none. A
cancelled crawl is a paused job. Ended crawls are deleted after a day, with the next one that starts; their rows stay.
Invariant: an answer is bounded in pages.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
from nephila.kernel.reasons.table import Reason
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import UsageError
from nephila_control import job_types, requests, screen_types
from nephila_control.access.authority import bearer_token
from nephila_control.access.caller import digest
from nephila_control.api import Control, NotFound
from starlette.requests import Request

from nephila_doors.firecrawl import options
from nephila_doors.firecrawl.documents import NO_RULE, document, failed_document, needs_source
from nephila_doors.firecrawl.exchange import RequestRefused, answered, base_url, read_body, whole_number
from nephila_doors.firecrawl.kept_crawls import KeptCrawl, KeptCrawls
from nephila_doors.firecrawl.stored_lists import StoredLists
from nephila_doors.firecrawl.webhooks import CrawlWebhook, Unknown, Watched, Webhooks, read_webhook
from nephila_doors.scrapes import NotStored, Scrapes, absolute_url, url_key
from nephila_doors.site_map import MapRequest, site_map

PAGE: Final = 20
"""Documents of one answer."""
ERRORS: Final = 200
KEPT_S: Final = 86_400
"""How long an ended crawl is known."""
_SCHEMAS: Final = 1000
"""Schemas of crawls in memory."""
_LIMITS: Final = 10_000
"""Limits of crawls in memory."""


class FirecrawlApi:
    def __init__(self, control: Control, clock: Clock, crawls: KeptCrawls, webhooks: Webhooks) -> None:
        self._control = control
        self._crawls = crawls
        self._webhooks = webhooks
        self._clock = clock
        self._scrapes = Scrapes(control, clock)
        self._lists = StoredLists(control)
        self._limits: dict[str, int] = {}
        """Crawl → its limit of documents, for crawls that this program started. The limit of an earlier crawl counts
        sitemaps too."""
        self._schemas: dict[str, Mapping[str, Any] | None] = {}
        """Caches the schemas of recent crawls."""

    async def scrape(self, request: Request) -> Any:
        body = await read_body(request)
        scrape = options.scrape_options(body, beside=frozenset(("url",)))
        url = absolute_url(options.text(body, "url"))
        rules = await self._rules_for(scrape.schema)
        try:
            detail = await self._scrapes.page(
                url,
                rules=rules,
                max_age_s=scrape.max_age_s,
                wait_s=scrape.timeout_s,
                render="always" if scrape.rendered else "never",
            )
        except NotStored as ended:
            return {"success": True, "data": failed_document(answered(ended.row), url)}
        data = await self._document(detail, scrape.formats, scrape.schema, url)
        if scrape.schema is not None and data["json"] is None:
            raise RequestRefused(422, f"{detail.page.url[:500]}: {NO_RULE}")
        return {"success": True, "data": data}

    async def _rules_for(self, schema: Mapping[str, Any] | None) -> list[str]:
        """A schema selects all rules: the first that matches a page reads it."""
        if schema is None:
            return []
        rules = (await self._control.list_rules(requests.Empty())).rules
        fields = {name for rule in rules for name in rule.document.get("spec", {}).get("fields", {})}
        if not fields & schema["properties"].keys():
            raise RequestRefused(422, NO_RULE)
        return [rule.name for rule in rules]

    async def _document(
        self,
        detail: screen_types.PageDetail,
        formats: tuple[options.Format, ...],
        schema: Mapping[str, Any] | None,
        original_url: str = "",
    ) -> dict[str, Any]:
        markdown = await self._scrapes.markdown(detail) if "markdown" in formats else ""
        source, warning = None, ""
        if needs_source(formats):
            try:
                source = await self._scrapes.source(detail)
            except NotFound as error:
                warning = str(error)
        return await asyncio.to_thread(
            document, detail, formats, schema, original_url, markdown=markdown, source=source, warning=warning
        )

    async def map(self, request: Request) -> Any:
        body = await read_body(request)
        names = frozenset(("url", "search", "limit", "sitemap", "includeSubdomains", "timeout"))
        options.scrape_options({name: value for name, value in body.items() if name not in names})
        limit = options.number(body, "limit", 5000, 1, 100_000)
        timeout = options.number(body, "timeout", options.DEFAULT_TIMEOUT_S * 1000, 1, 10**9) / 1000
        search = body.get("search") or ""
        if not isinstance(search, str):
            raise RequestRefused(400, "search is not a text")
        of_map = MapRequest(
            url=options.text(body, "url"),
            search=search,
            limit=int(limit),
            wait_s=min(timeout, options.MAX_TIMEOUT_S),
            sitemap=options.sitemap(body),
            subdomains=body.get("includeSubdomains") is None or options.flag(body, "includeSubdomains"),
        )
        try:
            entries = await site_map(self._control, self._clock, of_map)
        except NotStored as ended:
            answered(ended.row)
            raise RequestRefused(409, str(ended)) from None
        links = [{"url": entry.url, **({"title": entry.title} if entry.title else {})} for entry in entries]
        return {"success": True, "links": links}

    async def start_crawl(self, request: Request) -> Any:
        body = await read_body(request)
        _, scrape = options.crawl_document("", body)
        crawl = options.id_of("crawl", self._clock.now(), secrets.token_hex(6), scrape.formats)
        job, _ = options.crawl_document(crawl, body)
        started = await self._start(request, body, job, crawl, "crawl", scrape)
        if len(self._limits) >= _LIMITS:
            self._limits.clear()
        self._limits[crawl] = job["spec"]["scope"]["maxPages"]
        return started

    async def start_batch(self, request: Request) -> Any:
        body = await read_body(request)
        beside = frozenset(("urls", "ignoreInvalidURLs", "webhook"))
        scrape = options.scrape_options(body, beside=beside)
        urls, invalid = [], []
        for text in options.urls_of(body):
            url = absolute_url(text)
            try:
                url_key(url)
                urls.append(url)
            except UsageError:
                invalid.append(text)
        strict = body.get("ignoreInvalidURLs") is not None and not options.flag(body, "ignoreInvalidURLs")
        if invalid and (strict or not urls):
            raise RequestRefused(400, f"{invalid[0][:200]!a} is not a URL that can be crawled")
        crawl = options.id_of("batch", self._clock.now(), secrets.token_hex(6), scrape.formats)
        job = options.batch_document(crawl, urls, scrape)
        started = await self._start(request, body, job, crawl, "batch/scrape", scrape)
        return {**started, "invalidURLs": invalid}

    async def _start(
        self,
        request: Request,
        body: Mapping[str, Any],
        job: dict[str, Any],
        crawl: str,
        path: str,
        scrape: options.ScrapeOptions,
    ) -> dict[str, Any]:
        hook = read_webhook(body.get("webhook"))
        if hook is not None:
            self._webhooks.check()
        job["spec"]["rules"] = await self._rules_for(scrape.schema)
        await self._expire()
        record = KeptCrawl(
            crawl,
            msgspec.json.encode(scrape.schema).decode() if scrape.schema is not None else "",
            msgspec.json.encode(hook).decode() if hook is not None else "",
            digest(bearer_token(request.headers.get("authorization", ""))).hex(),
        )
        # Before the job: a program that is killed in between has a webhook without a crawl, not the other way round.
        if hook is not None or scrape.schema is not None:
            await self._webhooks.keep(record)
        try:
            applied = await self._control.apply_job(job_types.ApplyJob(job=job))
            if applied.refused and applied.refused_count >= len(job["spec"]["seeds"]):
                await self._control.delete_job(job_types.JobName(name=crawl))
                raise RequestRefused(400, f"{applied.refused[0].url[:200]}: {applied.refused[0].reason}")
        except Exception:
            await asyncio.to_thread(self._crawls.delete, crawl)
            raise
        if hook is not None:
            self._webhooks.begin(record)
        return {"success": True, "id": crawl, "url": f"{base_url(request)}/{path}/{crawl}"}

    def watched(self, record: KeptCrawl, key: str) -> Watched:
        """Gathers the needs of deliveries of a crawl. `key` is the API key that started it. Raises `Unknown`."""
        crawl_id = options.read_id(record.crawl)
        if crawl_id is None:
            raise Unknown("its id is not one of this version")
        hook = msgspec.json.decode(record.hook, type=CrawlWebhook)

        async def page(row: screen_types.PageRow) -> dict[str, Any] | None:
            return await self._row_document(row, record.crawl, crawl_id.formats)

        async def state() -> str:
            try:
                return (await self._state(record.crawl))[0]
            except RequestRefused as error:
                raise Unknown(str(error)) from None

        return Watched(self._control, key, record.crawl, crawl_id.kind, hook, page, state)

    async def _schema(self, crawl: str, formats: tuple[options.Format, ...]) -> Mapping[str, Any] | None:
        if not crawl or "json" not in formats:
            return None
        if crawl not in self._schemas:
            if len(self._schemas) >= _SCHEMAS:
                self._schemas.clear()
            text = await asyncio.to_thread(self._crawls.fields, crawl)
            self._schemas[crawl] = msgspec.json.decode(text) if text else None
        return self._schemas[crawl]

    async def _row_document(
        self, row: screen_types.PageRow | screen_types.SearchHit, crawl: str, formats: tuple[options.Format, ...]
    ) -> dict[str, Any] | None:
        """Returns None if the row is gone, or is a sitemap or a feed."""
        try:
            detail = await self._control.get_page(screen_types.GetPage(url=row.url, job=row.job))
        except NotFound:
            return None
        if "list" in detail.meta:
            return None
        return await self._document(detail, formats, await self._schema(crawl, formats))

    async def search(self, request: Request) -> Any:
        """Searches the stored pages of hosts that the request names."""
        terms = options.search_options(await read_body(request))
        hits: dict[str, screen_types.SearchHit] = {}
        for query in terms.queries:
            answer = await self._control.search_pages(screen_types.SearchPages(query=query, limit=terms.limit))
            for hit in answer.hits:
                hits.setdefault(hit.url_key, hit)
        chosen = list(hits.values())[: terms.limit]
        web: list[dict[str, Any]] = []
        for position, hit in enumerate(chosen, 1):
            texts = ["".join(part.text for part in parts) for parts in (hit.title, hit.passage)]
            row = {"url": hit.url, "title": texts[0], "description": texts[1], "position": position}
            if terms.formats:
                row |= await self._row_document(hit, "", terms.formats) or {}
            web.append(row)
        return {"success": True, "data": {"web": web}, "warning": "only pages that were crawled here are searched"}

    async def _expire(self) -> None:
        """Deletes the jobs of crawls that are older than a day and do not run."""
        now = self._clock.now()
        for job in (await self._control.list_jobs(job_types.ListJobs())).jobs:
            crawl_id = options.read_id(job.name)
            if crawl_id is None or now - crawl_id.begun < KEPT_S:
                continue
            if job.has_ended:
                await self._control.delete_job(job_types.JobName(name=job.name))
                await asyncio.to_thread(self._crawls.delete, job.name)

    async def status(self, request: Request, crawl: str, kind: str) -> Any:
        crawl_id = options.read_id(crawl)
        assert crawl_id is not None
        before, limit = whole_number(request, "before", 0), min(whole_number(request, "limit", PAGE), PAGE)
        query = screen_types.ListPages(job=crawl, outcome="stored", before=before, limit=max(limit, 1))
        page = await self._control.list_pages(query)
        state, total, completed = await self._state(crawl)
        data = []
        for row in page.pages:
            entry = await self._row_document(row, crawl, crawl_id.formats)
            if entry is not None:
                data.append(entry)
        answer = {
            "success": True,
            "status": state,
            "total": total,
            "completed": completed,
            "creditsUsed": 0,
            "expiresAt": datetime.fromtimestamp(crawl_id.begun + KEPT_S, UTC).isoformat(),
            "data": data,
        }
        if page.next:
            path = "crawl" if kind == "crawl" else "batch/scrape"
            answer["next"] = f"{base_url(request)}/{path}/{crawl}?{urlencode({'before': page.next, 'limit': limit})}"
        return answer

    async def _state(self, crawl: str) -> tuple[str, int, int]:
        """Returns (status, URLs, documents). A crawl whose limit or quota is used up has completed."""
        try:
            detail = await self._control.get_job(job_types.JobName(name=crawl))
        except NotFound:
            raise RequestRefused(404, f"there is no crawl {crawl[:100]!r}, or it has expired") from None
        job = detail.status
        lists = await self._lists.count(crawl) if job.stored else 0
        documents = max(job.stored - lists, 0)
        ended = documents + job.denied + job.failed + job.dropped
        left = job.queued + job.in_flight
        if job.state == "paused":
            return "cancelled", ended + left, documents
        if not job.has_ended or (job.state == "limit" and await self._raised(crawl, detail, lists)):
            return "scraping", ended + left, documents
        return ("completed" if documents else "failed"), ended, documents

    async def _raised(self, crawl: str, detail: job_types.JobDetail, lists: int) -> bool:
        """Raises the page budget by the number of sitemaps and feeds, which use it and are no documents. Returns
        whether it was raised."""
        limit = self._limits.get(crawl, 0)
        scope = detail.document["spec"]["scope"]
        if not limit or scope["maxPages"] >= limit + lists or not detail.status.queued:
            return False
        scope["maxPages"] = limit + lists
        await self._control.apply_job(job_types.ApplyJob(job=detail.document))
        return True

    async def cancel(self, request: Request, crawl: str, kind: str) -> Any:
        state, _, _ = await self._state(crawl)
        if state in ("completed", "failed"):
            raise RequestRefused(409, f"the crawl {crawl} has ended already")
        if state != "cancelled":
            await self._control.pause_job(job_types.JobName(name=crawl))
        return {"success": True, "status": "cancelled"}

    async def errors(self, request: Request, crawl: str, kind: str) -> Any:
        await self._state(crawl)
        errors, blocked = [], []
        for outcome in ("failed", "denied"):
            query = screen_types.ListPages(job=crawl, outcome=outcome, limit=ERRORS)
            for row in (await self._control.list_pages(query)).pages:
                if row.reason == Reason.ROBOTS:
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
        jobs = await self._control.list_jobs(job_types.ListJobs())
        crawls = []
        for job in jobs.jobs:
            crawl_id = options.read_id(job.name)
            if crawl_id is not None and crawl_id.kind == "crawl" and not job.has_ended:
                detail = await self._control.get_job(job_types.JobName(name=job.name))
                seeds = detail.document.get("spec", {}).get("seeds", [])
                url = seeds[0].get("url", "") if seeds and isinstance(seeds[0], dict) else ""
                crawls.append({"id": job.name, "teamId": job.tenant, "url": url, "options": None})
        return {"success": True, "crawls": crawls}
