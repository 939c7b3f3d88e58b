"""The tools of the MCP server: each is one or few operations of the control API, with bounded answers.

Texts of pages are marked as untrusted; lists carry `next` to go on from. A refusal is the one line of the control API.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from nephila.kernel.documents.job_document import crawl_job
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.runtime.waits import sleep
from nephila_control import job_types, requests, rule_types, screen_types, system_types
from nephila_control.api import Control
from pydantic import Field

from nephila_doors.scrapes import Render, Scrapes, absolute_url
from nephila_doors.site_map import MapRequest, site_map
from nephila_doors.untrusted import marked, visible

MOST_CHARS: Final = 50_000
"""Characters of a page in one answer."""
WATCH_S: Final = 60
DAY_S: Final = 86_400

Url = Annotated[str, Field(description="Absolute URL, http or https.", max_length=8000)]
Limit = Annotated[int, Field(ge=1, le=200, description="At most so many.")]
Job = Annotated[str, Field(description="Name of a crawl; empty: all.", max_length=1000)]
Name = Annotated[str, Field(description="Name of the crawl.", min_length=1, max_length=1000)]


class Tools:
    def __init__(self, control: Control, clock: Clock) -> None:
        self.control = control
        self.scrapes = Scrapes(control, clock)
        self._clock = clock

    async def read_page(
        self,
        url: Url,
        max_age_s: Annotated[float, Field(ge=0, description="A stored copy of this age will do; 0: fetch it.")] = DAY_S,
        render: Annotated[Render, Field(description="Whether a browser renders the page first.")] = "never",
        start: Annotated[int, Field(ge=0, description="First character; the `next` of the answer before.")] = 0,
        max_chars: Annotated[int, Field(ge=100, le=MOST_CHARS)] = 20_000,
    ) -> str:
        """Read one page: facts, title, and its text as Markdown. Fetched politely unless a fresh copy is stored."""
        detail = await self.scrapes.page(url, max_age_s=max_age_s, render=render)
        page, text = detail.page, visible(await self.scrapes.markdown(detail))
        part = text[start : start + max_chars]
        end = start + len(part)
        facts = [f"title: {visible(page.title)[:500]}", f"fetched: {page.fetched_at}, status {page.status}"]
        if detail.lang:
            facts.append(f"language: {visible(detail.lang)[:40]}")
        rest = f"characters {start:,} to {end:,} of {len(text):,}"
        facts.append(f"{rest}; the rest begins at start={end}" if end < len(text) else rest)
        return marked("\n".join([*facts, "", part]), page.url)

    async def map_site(
        self,
        url: Url,
        search: Annotated[str, Field(description="Part of the URL or of the link's text.", max_length=500)] = "",
        limit: Limit = 100,
    ) -> str:
        """List URLs of a site from the links of one page and the sitemaps, without fetching the pages."""
        entries = await site_map(self.control, self._clock, MapRequest(url=url, search=search, limit=limit))
        lines = [f"{visible(entry.url)}  {visible(entry.title)[:200]}".rstrip() for entry in entries]
        return marked("\n".join(lines) or "no URL was found", url)

    async def start_crawl(
        self,
        url: Annotated[Url, Field(description="Where the crawl begins.")],
        name: Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,60}[a-z0-9])?$", description="Name of the crawl.")],
        max_pages: Annotated[int, Field(ge=1, le=1_000_000)] = 100,
        max_depth: Annotated[int, Field(ge=0, le=1000, description="Links from the first page.")] = 3,
        scope: Literal["host", "domain", "prefix"] = "host",
        include: Annotated[list[str], Field(description="Only URLs that match one (RE2).", max_length=50)] = [],  # noqa: B006
        exclude: Annotated[list[str], Field(description="No URL that matches one (RE2).", max_length=50)] = [],  # noqa: B006
        rules: Annotated[list[str], Field(description="Names of rules that extract items.", max_length=50)] = [],  # noqa: B006
    ) -> dict[str, Any]:
        """Start a crawl, or change the one of this name. It goes on in the background: see crawl_status."""
        bounds = {"mode": scope, "maxDepth": max_depth, "maxPages": max_pages, "include": include, "exclude": exclude}
        spec = {"seeds": [absolute_url(url)], "scope": bounds, "sitemaps": True, "links": True, "rules": rules}
        return _plain(await self.control.apply_job(job_types.ApplyJob(job=crawl_job(name, spec))))

    async def crawl_status(
        self,
        name: Name,
        wait_s: Annotated[float, Field(ge=0, le=WATCH_S, description="Wait so long for its end.")] = 0.0,
    ) -> dict[str, Any]:
        """How a crawl stands: its state, whether it has ended, pages by outcome, what is queued, why pages failed."""
        end = self._clock.monotonic() + wait_s
        while True:
            status = (await self.control.get_job(job_types.JobName(name=name))).status
            if status.has_ended or self._clock.monotonic() >= end:
                break
            await sleep(self._clock, 0.5)
        counts = await self.control.count_outcomes(screen_types.OfJob(job=name))
        reasons = {f"{row.outcome}({row.reason})": row.fetches for row in counts.counts if row.reason}
        return {**_plain(status), "ended": status.has_ended, "reasons": dict(list(reasons.items())[:20])}

    async def pause_crawl(self, name: Name) -> dict[str, Any]:
        """Dispatch nothing more of a crawl; its queue is kept."""
        return _plain(await self.control.pause_job(job_types.JobName(name=name)))

    async def resume_crawl(self, name: Name) -> dict[str, Any]:
        """Continue a paused crawl."""
        return _plain(await self.control.resume_job(job_types.JobName(name=name)))

    async def delete_crawl(self, name: Name) -> dict[str, Any]:
        """Delete a crawl and its queue; stored pages stay."""
        return _plain(await self.control.delete_job(job_types.JobName(name=name)))

    async def list_crawls(self) -> dict[str, Any]:
        """How all crawls stand."""
        listed: job_types.JobList = await self.control.list_jobs(job_types.ListJobs())
        return {"crawls": [_plain(job) for job in listed.jobs[:200]], "total": len(listed.jobs)}

    async def list_pages(
        self,
        crawl: Job = "",
        outcome: Literal["", "stored", "denied", "failed", "dropped"] = "",
        search: Annotated[str, Field(description="Part of the URL or of the title.", max_length=500)] = "",
        before: Annotated[int, Field(ge=0, description="The `next` of the answer before.")] = 0,
        limit: Limit = 50,
    ) -> dict[str, Any]:
        """URLs that have ended, the newest first. Titles and URLs are untrusted."""
        request = screen_types.ListPages(job=crawl, outcome=outcome, search=search, before=before, limit=limit)
        page = await self.control.list_pages(request)
        names = ("url", "outcome", "reason", "words", "status", "title", "fetched_at", "job")
        rows = [{name: visible(value) if isinstance(value := getattr(row, name), str) else value for name in names}
                for row in page.pages]  # fmt: skip
        return {"pages": rows, "next": page.next}

    async def search_pages(
        self,
        query: Annotated[
            str,
            Field(
                description='Words that must be in a page, "phrases", -without, prefix*, title:, url:, host:, since:',
                min_length=1,
                max_length=500,
            ),
        ],
        crawl: Job = "",
        skip: Annotated[int, Field(ge=0, le=200, description="Leave so many out.")] = 0,
        limit: Annotated[int, Field(ge=1, le=50)] = 10,
    ) -> str:
        """Search the pages that were crawled by their words, the best first, each with a passage."""
        request = screen_types.SearchPages(query=query, job=crawl, skip=skip, limit=limit)
        results = await self.control.search_pages(request)
        lines = [f"{results.total:,} pages" + (f" among the newest {results.looked_at:,}" if results.looked_at else "")]
        if results.behind:
            lines.append(f"{results.behind:,} fetches are not in the index yet; search again later")
        for hit in results.hits:
            title, passage = ("".join(part.text for part in parts) for parts in (hit.title, hit.passage))
            lines += ["", visible(f"{hit.url}  {title}")[:2000], visible(passage)[:1000]]
        return marked("\n".join(lines), "pages of the crawls")

    async def list_items(
        self,
        crawl: Job = "",
        rule: Annotated[str, Field(description="Of this rule only.", max_length=200)] = "",
        search: Annotated[str, Field(description="Part of the data.", max_length=500)] = "",
        after: Annotated[str, Field(description="The `next` of the answer before.", max_length=2000)] = "",
        limit: Limit = 50,
    ) -> dict[str, Any]:
        """Items that rules extracted. Their values are untrusted."""
        request = screen_types.ListItems(job=crawl, rule=rule, search=search, after=after, limit=limit)
        page = await self.control.list_items(request)
        return {
            "items": [{"url": item.url, "rule": item.rule, "data": item.data} for item in page.items],
            "rules": page.rules,
            "next": page.next,
        }

    async def explain_url(self, url: Url, crawl: Job = "") -> dict[str, Any]:
        """What became of a URL in a crawl, and why: fetched, queued or refused."""
        explanation = (await self.control.explain(job_types.ExplainUrl(url=absolute_url(url), job=crawl))).explanation
        return {name: getattr(explanation, name) for name in ("url", "job", "kind", "state", "sentence")}

    async def list_changes(
        self,
        crawl: Job = "",
        since: Annotated[str, Field(description="A time, or the id of a change.", max_length=100)] = "",
        limit: Limit = 50,
    ) -> dict[str, Any]:
        """Pages that are new, changed, moved, gone or returned, in the order of their ids."""
        try:
            request = msgspec.convert({"job": crawl, "since": since, "limit": limit}, system_types.ListChanges)
        except msgspec.ValidationError as error:
            raise UsageError(str(error)) from None
        return _plain(await self.control.list_changes(request))

    async def list_rules(self) -> dict[str, Any]:
        """The rules that pages are read by, with the documents of those that were applied here."""
        return _plain(await self.control.list_rules(requests.Empty()))

    async def apply_rule(
        self, rule: Annotated[dict[str, Any], Field(description="A ParseRule document.")]
    ) -> dict[str, Any]:
        """Create or change a rule; pages are read by it from then on."""
        return _plain(await self.control.apply_rules(rule_types.ApplyRules(rules=[rule])))


def _plain(value: Any) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(value)
    return fields
