"""The bodies of a crawl's pages by URL: raw files (`--keep-raw`) and WARC files of an output directory.

Neither has an index by URL. The files are read once, each request for `SCAN_S` at most, and their URLs are kept with
file and offset; a running crawl appends, so reading continues where it ended. Memory: some 200 bytes per page, at most
`MAX_PAGES`. Thread-safe.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from nephila_stores import raw_file as rawfile

from nephila_rules.stored_pages import MAX_BYTES, StoredPage
from nephila_rules.warcs import ArchivedPage, read_warc

SCAN_S: Final = 1.0
"""Seconds of one request for reading files."""
MAX_PAGES: Final = 200_000
_HTML: Final = ("", "text/html", "application/xhtml+xml")
_WARCS: Final = (".warc", ".warc.gz")


class Place(NamedTuple):
    """The file and offset of a stored body."""

    file: Path
    offset: int


class StoredBodies:
    """The stored bodies of a directory. One without bodies has no pages; it may have some later."""

    def __init__(self, directory: Path | None) -> None:
        """None: no bodies are known."""
        self._directory = directory
        self._places: dict[str, Place] = {}
        self._read: dict[Path, int] = {}
        """File → bytes of it that were read."""
        self._lock = threading.Lock()

    def urls(self) -> tuple[list[str], bool]:
        """The URLs of all HTML pages with a body in the order of the files, and whether these are all."""
        with self._lock:
            complete = self._scan()
            return list(self._places), complete

    def place(self, url: str) -> Place | None:
        """The position of the last body of a URL; None: the directory has none."""
        with self._lock:
            if url not in self._places:
                self._scan()
            return self._places.get(url)

    def page(self, url: str) -> StoredPage | None:
        """The page with its body; the last one where a URL was fetched several times."""
        spot = self.place(url)
        if spot is None:
            return None
        try:
            return _raw_page(spot) if rawfile.is_raw(spot.file) else _archived_page(spot)
        except OSError:
            return None  # the file was replaced or deleted since

    def _scan(self) -> bool:
        until = time.monotonic() + SCAN_S
        for file in self._files():
            try:
                for offset, end, url in self._new_pages(file):
                    if url and (url in self._places or len(self._places) < MAX_PAGES):
                        self._places[url] = Place(file, offset)
                    self._read[file] = end
                    if time.monotonic() > until:
                        return False
            except OSError:
                continue
        return len(self._places) < MAX_PAGES

    def _files(self) -> list[Path]:
        if self._directory is None:
            return []
        try:
            files = sorted(self._directory.iterdir())
        except OSError:
            return []
        raw = [file for file in files if rawfile.is_raw(file)]
        return raw or [file for file in files if file.name.endswith(_WARCS)]

    def _new_pages(self, file: Path) -> Iterator[tuple[int, int, str]]:
        """(offset, where reading continues, URL); the URL is empty for what is no HTML page."""
        start = self._read.get(file, 0)
        if start >= file.stat().st_size:
            return
        if rawfile.is_raw(file):
            for offset, end, head in rawfile.scan(file, start):
                is_page = head.status == 200 and not head.left_out and _is_html(head.content_type)
                yield offset, end, head.url if is_page else ""
            return
        with file.open("rb") as stream:
            stream.seek(start)
            for record in read_warc(stream, MAX_BYTES):
                is_page = isinstance(record, ArchivedPage) and record.status == 200 and _is_html(record.content_type)
                # The end of a record is not known: the next request reads the last record again.
                yield start + record.offset, start + record.offset, record.url if is_page else ""


def _is_html(content_type: str) -> bool:
    return content_type.partition(";")[0].strip().lower() in _HTML


def _raw_page(spot: Place) -> StoredPage | None:
    page = rawfile.read_at(spot.file, spot.offset)
    if not isinstance(page, rawfile.RawPage):
        return None
    head = page.head
    return StoredPage(head.url, head.content_type, head.charset, page.body, head.url, head.fetched_at)


def _archived_page(spot: Place) -> StoredPage | None:
    with spot.file.open("rb") as stream:
        stream.seek(spot.offset)
        page = next(read_warc(stream, MAX_BYTES), None)
    if not isinstance(page, ArchivedPage):
        return None
    return StoredPage(page.url, page.content_type, page.charset, page.body, page.url, page.fetched_at)
