"""Pages as documents for other people's frameworks: a text with metadata, from a crawl now, a directory or a server.

Invariant: one page at a time is in memory. A directory or server is read by the control API in a thread of its own, so
that a caller whose thread has an event loop, as in a notebook, can iterate.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nephila.api import crawl
from nephila.api.page import Page
from nephila.kernel.reasons.table import Reason
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.runtime.errors import UsageError
from nephila.native import parse_url
from nephila_control import screen_types
from nephila_control.api import Control, NotFound

from nephila_doors.scrapes import Scrapes

BATCH: Final = 200
"""Rows of one list."""


@dataclass(frozen=True, slots=True)
class PageDocument:
    key: str
    """The key of the URL in every crawl: 32 hexadecimal digits."""
    text: str
    """Markdown if the page has it, else its main text."""
    metadata: dict[str, Any]
    """Keys are source (the URL), title, language, content_type, status, fetched_at and job; empty values are left
    out."""


class PageSource:
    """Documents come from `urls`, from `directory` or from `server`. A source can be iterated any number of times."""

    def __init__(
        self,
        *urls: str,
        directory: str | Path | None = None,
        server: str = "",
        token: str = "",
        job: str = "",
        search: str = "",
        **options: Any,
    ) -> None:
        """Each iteration crawls `urls` with the options of `nephila.crawl`. `directory` is that of a crawl that runs or
        has ended. `server` is the URL of a control API with `token`. `job` limits the pages to those of a job, `search`
        to those that match the words of `nephila search`, the best first. Raises `UsageError`."""
        if sum(map(bool, (urls, directory, server))) != 1:
            raise UsageError("documents come from URLs, or a directory, or a server: give one of them")
        if not urls and options:
            raise UsageError(f"{min(options)} is an option of a crawl: give it with URLs")
        if urls and (job or search):
            raise UsageError("job and search choose pages that were crawled before: give a directory or a server")
        self._urls, self._options = urls, options
        self._directory = Path(directory) if directory else None
        self._server, self._token, self._job, self._search = server, token, job, search

    def __iter__(self) -> Iterator[PageDocument]:
        """Raises `UserError`."""
        if self._urls:
            with crawl(*self._urls, **self._options) as pages:
                for page in pages:
                    if page.outcome == "stored":
                        yield _of_page(page)
            return
        with ThreadPoolExecutor(1, "nephila-documents") as thread:
            loop = asyncio.Runner()
            documents = self._stored()

            async def next_document() -> PageDocument | None:
                return await anext(documents, None)

            async def end() -> None:
                await documents.aclose()

            try:
                while (document := thread.submit(loop.run, next_document()).result()) is not None:
                    yield document
            finally:
                thread.submit(loop.run, end()).result()
                thread.submit(loop.close).result()

    async def _stored(self) -> AsyncGenerator[PageDocument]:
        async with self._control() as control:
            texts = Scrapes(control, SystemClock())
            async for row in self._rows(control):
                try:
                    detail = await control.get_page(screen_types.GetPage(url=row.url, job=row.job))
                except NotFound:
                    continue  # deleted meanwhile
                if "list" not in detail.meta:  # a sitemap or a feed is no document
                    yield _of_row(detail, await texts.markdown(detail))

    async def _rows(self, control: Control) -> AsyncIterator[screen_types.PageRow | screen_types.SearchHit]:
        if self._search:
            skip = 0
            while True:
                query = screen_types.SearchPages(query=self._search, job=self._job, skip=skip, limit=50)
                hits = (await control.search_pages(query)).hits
                for hit in hits:
                    yield hit
                skip += len(hits)
                if not hits or skip > 200:
                    return
        seen: set[tuple[str, str]] = set()
        before = 0
        while True:
            request = screen_types.ListPages(job=self._job, outcome="stored", before=before, limit=BATCH)
            page = await control.list_pages(request)
            for row in page.pages:
                if (row.job, row.url_key) not in seen and row.reason != Reason.REDIRECT:
                    seen.add((row.job, row.url_key))
                    yield row
            before = page.next
            if not before:
                return

    @asynccontextmanager
    async def _control(self) -> AsyncIterator[Control]:
        from nephila.programs.output_directory import OutputDirectory
        from nephila_control.http.client import at_directory, at_url
        from nephila_control.stopped_frontier import stopped_frontier

        if self._directory is None:
            yield at_url(self._server, self._token)
        elif (running := at_directory(self._directory)) is not None:
            yield running
        else:
            async with stopped_frontier(OutputDirectory(self._directory)) as control:
                yield control


def _of_page(page: Page) -> PageDocument:
    fetched = page.fetched_at.isoformat(timespec="seconds") if page.fetched_at else ""
    facts = _facts(page.url, page.title, page.lang, page.content_type, page.status, fetched, "")
    return PageDocument(parse_url(page.url).fingerprint.hex(), page.markdown or page.text, facts)


def _of_row(detail: screen_types.PageDetail, text: str) -> PageDocument:
    row = detail.page
    facts = _facts(row.url, row.title, detail.lang, row.content_type, row.status, row.fetched_at, row.job)
    return PageDocument(row.url_key, text, facts)


def _facts(url: str, title: str, lang: str, kind: str, status: int, fetched: str, job: str) -> dict[str, Any]:
    facts = {
        "source": url,
        "title": title,
        "language": lang,
        "content_type": kind,
        "status": status,
        "fetched_at": fetched,
        "job": job,
    }
    return {name: value for name, value in facts.items() if value}
