"""Style sheets, pictures and fonts of the pages that the studio shows: the viewer's browser asks this program for them.

A file has an address here only if a shown page, or a style sheet of it, names it. It is fetched when a browser asks for
it, through robots.txt and the egress guard, without cookie and referrer; its type is what its first bytes say, and only
types of a list are answered. Numbers, sizes, times and the cache are bounded. Rejected: fetching all files before the
page is shown, as most pictures are never scrolled into view.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote_to_bytes

import msgspec
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.config import replaced
from nephila.kernel.runtime.errors import UserError
from nephila.parser.page.charset import encoding_of_text
from nephila_rules.studio.draft import Draft
from nephila_rules.studio.styled.pieces import MAX_FILES, FileKind, NamedFile, Pieces
from nephila_rules.studio.work import PageBody, StudioProcess, Work

from nephila_control.api import NotFound
from nephila_control.studio_types import StudioFile

if TYPE_CHECKING:
    from nephila.downloader.config import DownloaderConfig
    from nephila.downloader.fetch_page import SingleFetcher

MAX_BYTES: Final = 4 << 20
"""Bytes of one file."""
MAX_PAGE_BYTES: Final = 64 << 20
"""Bytes of all files of one page that are answered."""
MAX_CACHE_BYTES: Final = 64 << 20
MAX_FAILURES: Final = 1000
FAILURE_S: Final = 60.0
"""Seconds until a file that could not be fetched is tried again."""
FETCHES: Final = 6
"""Fetches at once, as many as a browser has connections to a host."""
FETCH_S: Final = 15.0
PAGES: Final = 64
"""Pages whose files have an address; a further one ends the oldest."""
PAGE_S: Final = 3600.0
"""A page that is not shown again loses its addresses after this."""
STYLE: Final = "text/css; charset=utf-8"
SVG: Final = "image/svg+xml"
_SIGNATURES: Final = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF8", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (4, b"ftypavif", "image/avif"),
    (4, b"ftypavis", "image/avif"),
    (0, b"BM", "image/bmp"),
    (0, b"\0\0\1\0", "image/x-icon"),
    (0, b"wOF2", "font/woff2"),
    (0, b"wOFF", "font/woff"),
    (0, b"OTTO", "font/otf"),
    (0, b"\0\1\0\0", "font/ttf"),
    (0, b"true", "font/ttf"),
)
"""Offset, bytes, type."""
_SVG_STARTS: Final = (b"<svg", b"<?xml", b"<!--", b"<!doctype svg")


class ReadyFile(msgspec.Struct, frozen=True):
    """A file as it is answered, but for the addresses in a style sheet."""

    content_type: str
    body: bytes
    pieces: Pieces | None = None
    """Of a style sheet, which has no body."""

    @property
    def bytes(self) -> int:
        return len(self.body) + (sum(map(len, self.pieces.texts)) if self.pieces is not None else 0)


class _ShownPage:
    """Files that a page names, by number. Number 0 is no file."""

    def __init__(self, key: tuple[str, bytes]) -> None:
        self.id = secrets.token_urlsafe(18)
        self.key = key
        self.files: list[NamedFile] = []
        self.numbers: dict[NamedFile, int] = {}
        self.answered_bytes = 0
        self.shown_at = 0.0

    def number(self, file: NamedFile) -> int:
        number = self.numbers.get(file)
        if number is None and len(self.files) < MAX_FILES:
            self.files.append(file)
            number = self.numbers[file] = len(self.files)
        return number or 0


class StudioFiles:
    def __init__(self, settings: Callable[[], DownloaderConfig], process: StudioProcess, clock: Clock) -> None:
        """`settings` are those of fetches without a job."""
        self._settings = settings
        self._process = process
        self._clock = clock
        self._pages: OrderedDict[str, _ShownPage] = OrderedDict()
        self._ids: dict[tuple[str, bytes], str] = {}
        self._ready: OrderedDict[NamedFile, ReadyFile] = OrderedDict()
        self._ready_bytes = 0
        self._failed: OrderedDict[NamedFile, tuple[float, str]] = OrderedDict()
        """When a fetch failed, and why."""
        self._under_way: dict[NamedFile, asyncio.Task[ReadyFile]] = {}
        self._fetches = asyncio.Semaphore(FETCHES)
        self._fetcher: SingleFetcher | None = None
        self._users = 0
        self._opening = asyncio.Lock()

    def listed(self, url: str, body: bytes, pieces: Pieces) -> str:
        """The page with addresses for its files. The same page has the same addresses, so that a browser keeps them."""
        key = url, sha256(body).digest()
        page = self._pages.pop(self._ids.get(key, ""), None) or _ShownPage(key)
        page.shown_at, page.answered_bytes = self._clock.monotonic(), 0
        self._pages[page.id], self._ids[key] = page, page.id
        while len(self._pages) > PAGES:
            _, oldest = self._pages.popitem(last=False)
            del self._ids[oldest.key]
        return pieces.joined(lambda file: f"../file/{page.id}/{page.number(file)}")

    async def file(self, page_id: str, number: int) -> StudioFile:
        """Raises `NotFound` for an address that no shown page has, `UserError` for a file that is not to be had."""
        page = self._pages.get(page_id)
        if page is None or self._clock.monotonic() - page.shown_at > PAGE_S or not 0 < number <= len(page.files):
            raise NotFound("no page that is shown names this file; reload the page")
        if page.answered_bytes > MAX_PAGE_BYTES:
            raise UserError(f"the files of this page are more than {MAX_PAGE_BYTES >> 20} MB; the rest is not shown")
        ready = await self._file(page.files[number - 1])
        page.answered_bytes += ready.bytes
        body = ready.body
        if ready.pieces is not None:
            body = ready.pieces.joined(lambda file: str(page.number(file))).encode("utf-8", "replace")
        return StudioFile(content_type=ready.content_type, body=body)

    async def picture(self, url: str) -> StudioFile:
        """A picture by its URL, which the caller has checked. Raises `UserError` for a file that is not to be had."""
        ready = await self._file(NamedFile("media", url))
        if not ready.content_type.startswith("image/"):
            raise UserError(f"{url[:200]}: no picture")
        return StudioFile(content_type=ready.content_type, body=ready.body)

    async def _file(self, file: NamedFile) -> ReadyFile:
        ready = self._ready.get(file)
        if ready is not None:
            self._ready.move_to_end(file)
            return ready
        failed_at, why = self._failed.get(file, (0.0, ""))
        if why and self._clock.monotonic() - failed_at < FAILURE_S:
            raise UserError(why)
        task = self._under_way.get(file)
        if task is None:
            # A task of its own: a browser that leaves does not take the file from another one.
            task = self._under_way[file] = asyncio.ensure_future(self._made(file))
            task.add_done_callback(lambda done: self._ended(file, done))
        return await asyncio.shield(task)

    def _ended(self, file: NamedFile, task: asyncio.Task[ReadyFile]) -> None:
        del self._under_way[file]
        if task.cancelled():
            return
        if (error := task.exception()) is not None:
            self._failed[file] = self._clock.monotonic(), str(error)
            while len(self._failed) > MAX_FAILURES:
                self._failed.popitem(last=False)
            return
        self._ready[file] = task.result()
        self._ready_bytes += task.result().bytes
        while self._ready_bytes > MAX_CACHE_BYTES:
            _, dropped = self._ready.popitem(last=False)
            self._ready_bytes -= dropped.bytes

    async def _made(self, file: NamedFile) -> ReadyFile:
        async with self._fetches:
            source = _of_data_url(file.url) if file.url[:5].lower() == "data:" else await self._fetched(file.url)
        return await asyncio.to_thread(self._read, file.kind, source)

    async def _fetched(self, url: str) -> PageBody:
        try:
            async with self._open_fetcher() as fetcher:
                page = await asyncio.wait_for(fetcher.page(url), FETCH_S)
        except TimeoutError:
            raise UserError(f"{url[:200]}: no answer in {FETCH_S:g} s") from None
        body = bytes(page.body)
        return PageBody(page.url, encoding_of_text(body, page.charset, page.content_type), page.content_type, body, {})

    @asynccontextmanager
    async def _open_fetcher(self) -> AsyncIterator[SingleFetcher]:
        """One fetcher for all files that are asked for at the same time; the last one closes it."""
        from nephila.downloader.fetch_page import SingleFetcher

        self._users += 1
        try:
            async with self._opening:
                if self._fetcher is None:
                    config = replaced(self._settings(), {"http.max_body_bytes": MAX_BYTES})
                    self._fetcher = await SingleFetcher(config).__aenter__()
                fetcher = self._fetcher
            yield fetcher
        finally:
            self._users -= 1
            if not self._users and self._fetcher is not None:
                last, self._fetcher = self._fetcher, None
                await last.__aexit__()

    def _read(self, kind: FileKind, source: PageBody) -> ReadyFile:
        """Raises `UserError` for a file of another type."""
        if kind == "style":
            if source.content_type.partition(";")[0].strip().lower() != "text/css":
                raise UserError(f"{source.url[:200]}: no style sheet, but {source.content_type[:80] or 'no type'}")
            pieces = self._process.call(Work("sheet", Draft(""), [source])).pieces
            return ReadyFile(STYLE, b"", pieces or Pieces())
        content_type = _type_of(source.body)
        if content_type == SVG:
            vector = self._process.call(Work("vector", Draft(""), [source])).pieces
            if vector is None:
                raise UserError(f"{source.url[:200]}: no SVG")
            return ReadyFile(SVG, vector.texts[0].encode("utf-8", "replace"))
        if not content_type:
            raise UserError(f"{source.url[:200]}: no picture or font")
        return ReadyFile(content_type, source.body)


def _type_of(body: bytes) -> str:
    """The type of a picture or font by its first bytes; empty for others."""
    content_type = next((name for at, sign, name in _SIGNATURES if body.startswith(sign, at)), "")
    if not content_type and body[:200].lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith(_SVG_STARTS):
        return SVG
    return content_type


def _of_data_url(url: str) -> PageBody:
    head, comma, text = url[5:].partition(",")
    if not comma:
        raise UserError("a data: URL without content")
    data = unquote_to_bytes(text)
    if head.lower().rstrip().endswith(";base64"):
        try:
            data = base64.b64decode(data + b"=" * (-len(data) % 4))
        except binascii.Error:
            raise UserError("a data: URL with damaged base64") from None
    return PageBody("data:", "utf-8", head.partition(";")[0].strip().lower(), data, {})
