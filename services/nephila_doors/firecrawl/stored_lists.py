"""How many sitemaps and feeds a crawl has stored: they have rows, and are no documents for a client of Firecrawl.

The newest rows are read up to those of the look before, so a client that polls costs the rows that are new. Bounds:
CRAWLS crawls are remembered, and one look reads LOOKS lists of rows.
"""

from __future__ import annotations

from typing import Final

from nephila_control import screen_types
from nephila_control.api import Control, NotFound

CRAWLS: Final = 1000
LOOKS: Final = 60
_ROWS: Final = 200
_NO_LIST: Final = ("text/html", "application/xhtml+xml", "application/pdf")


class StoredLists:
    def __init__(self, control: Control) -> None:
        self._control = control
        self._counts: dict[str, tuple[tuple[str, int], int]] = {}
        """Crawl → (newest row that was counted, lists up to it)."""

    async def count(self, crawl: str) -> int:
        """Counts sitemaps and feeds among the stored rows of a crawl."""
        last, lists = self._counts.get(crawl, (("", 0), 0))
        newest, before = last, 0
        for _ in range(LOOKS):
            rows = await self._control.list_pages(
                screen_types.ListPages(job=crawl, outcome="stored", before=before, limit=_ROWS)
            )
            for number, row in enumerate(rows.pages):
                if (row.url_key, row.fetch_no) == last:
                    return self._note(crawl, newest, lists)
                if not before and not number:
                    newest = (row.url_key, row.fetch_no)
                lists += await self._is_list(row)
            before = rows.next
            if not before:
                break
        return self._note(crawl, newest, lists)

    def _note(self, crawl: str, newest: tuple[str, int], lists: int) -> int:
        if len(self._counts) >= CRAWLS:
            self._counts.clear()
        self._counts[crawl] = (newest, lists)
        return lists

    async def _is_list(self, row: screen_types.PageRow) -> bool:
        if row.content_type.partition(";")[0].strip().lower() in _NO_LIST:
            return False
        try:
            return "list" in (await self._control.get_page(screen_types.GetPage(url=row.url, job=row.job))).meta
        except NotFound:
            return False
