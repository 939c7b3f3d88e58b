"""Pages that the native fetcher has read, on the way to the parser of the same process.

Invariant: a reading is used only for the body object, URL and charset that it was made from, so a page that a
middleware has changed is read by the parser. A reading that the parser never takes is dropped for later ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from nephila.native._core import ReadPage

MOST_BYTES: Final = 4 << 20
"""Bodies whose readings are kept. Most pages reach the parser within the call that ends their fetch."""


class ReadPages:
    """Readings by the identity of their body. Every operation is O(1) amortised."""

    def __init__(self, options: object) -> None:
        """`options` has the fields of ParserConfig that bound the page pass."""
        self.options = options
        self._pages: dict[int, ReadPage] = {}
        self._without_main_text: set[str] = set()
        self._bytes = 0

    @property
    def waiting(self) -> int:
        """Readings that were not taken yet."""
        return len(self._pages)

    def set_main_text(self, job: str, enabled: bool) -> None:
        """Whether the main text of the pages of this job is read."""
        (self._without_main_text.discard if enabled else self._without_main_text.add)(job)

    def wants_main_text(self, job: str) -> bool:
        """The value that `set_main_text` got; True for other jobs."""
        return job not in self._without_main_text

    def put(self, page: ReadPage) -> None:
        """Keep a reading for `take`."""
        body = page.body
        self._pages[id(body)] = page
        self._bytes += len(body)
        while self._bytes > MOST_BYTES and len(self._pages) > 1:
            oldest = self._pages.pop(next(iter(self._pages)))
            self._bytes -= len(oldest.body)

    def take(self, body: bytes, url: str, charset: str) -> ReadPage | None:
        """The reading of this body, once; None where there is none, or it was made for another URL or charset."""
        page = self._pages.pop(id(body), None)
        if page is None:
            return None
        self._bytes -= len(body)
        return page if page.url == url and page.charset == charset else None
