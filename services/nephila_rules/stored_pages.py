"""Stored pages for rules: files of HTML or JSON, the responses of WARC files, the bodies of --keep-raw.

The URL of a page comes from its record. For a plain file it comes from the caller, from a comment at the start of the
file (`<!-- url: … -->`), or from a file `page.url` beside it. Invariants: a file or record that cannot be read costs
one line; pages are read one at a time, so that memory does not grow with the file.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nephila.kernel import messages as m
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.native import PassOptions, page_pass, sniff_encoding
from nephila.parser.config import ParserConfig
from nephila.parser.documents.read import read_document
from nephila.parser.page.body_kind import HEAD_BYTES, BodyKind, kind_of
from nephila.parser.page.charset import encoding_of, encoding_of_text
from nephila.parser.page_to_record import MAX_LANG_CHARS
from nephila_stores import raw_file as rawfile

from nephila_rules.execution.to_messages import facts_of
from nephila_rules.files import open_regular
from nephila_rules.runtime.document import Document
from nephila_rules.warcs import ArchivedPage, BadRecord, read_warc

log = logging.getLogger(__name__)

MAX_BYTES: Final = 64 << 20
UNKNOWN_URL: Final = "http://a.invalid/"
"""Base URL of a page whose URL is not known."""
SUFFIXES: Final = (".warc.gz", ".warc", ".html", ".htm", ".json")
_URL: Final = re.compile(rb"^\s*(?:<!doctype[^>]{0,200}>\s*)?<!--\s*url:\s*(\S{1,8000})\s*-->", re.IGNORECASE)
_TYPES: Final = {
    ".json": "application/json",
    ".jsonl": "application/json",
    ".xml": "application/xml",
    ".txt": "text/plain",
}


@dataclass(frozen=True, slots=True)
class StoredPage:
    """A page as it was fetched."""

    url: str
    content_type: str
    charset: str
    body: bytes
    origin: str
    """File and record, for messages."""
    fetched_at: float = 0.0
    """Seconds since 1970 UTC; 0: not known."""

    @property
    def document(self) -> Document:
        """The page as a rule gets it in a crawl that stores main texts."""
        config, record = ParserConfig(), m.Record(fetched_at=self.fetched_at)
        kind, sniffed = kind_of(self.content_type, self.body[:HEAD_BYTES])
        most, links = config.max_text_bytes, config.max_links
        if kind is BodyKind.HTML:
            encoding = encoding_of(self.body, self.charset, sniff_encoding)
            facts = page_pass(
                self.body, self.url or UNKNOWN_URL, encoding, PassOptions(max_links=0, max_text_bytes=most)
            )
            record.title, record.lang, record.text = facts.title, facts.lang, facts.main_text or facts.text
        else:
            encoding = encoding_of_text(self.body, self.charset, self.content_type or sniffed)
            content = read_document(kind, self.content_type, self.body, encoding, most, links)
            record.title, record.lang, record.text = content.title, content.lang, content.text
        record.title = record.title[: config.max_title_chars]
        record.lang = record.lang[:MAX_LANG_CHARS]
        return Document(self.body, self.url, encoding, self.content_type, facts_of(record))


def stored_pages(path: Path) -> Iterator[StoredPage]:
    """The stored pages of a file or directory, in order. Raises `UsageError` when there are none."""
    files = [path]
    if path.is_dir():
        is_crawl = (path / "run.json").is_file()  # its JSON files are no pages, and its folders hold no other crawl
        below = sorted(file for file in (path.glob("*") if is_crawl else path.rglob("*")) if file.is_file())
        pages = [file for file in below if file.name.endswith(SUFFIXES)]
        warcs = [file for file in pages if file.name.endswith(SUFFIXES[:2])]
        bodies = [file for file in below if rawfile.is_raw(file)]
        files = warcs or bodies
        if not files and is_crawl:
            raise UsageError(f"the crawl in {path} kept no pages; crawl with --keep-raw or --format sqlite,warc")
        files = files or [file for file in pages if not file.name.startswith("items")]
        if not files:
            raise UsageError(
                f"{path} holds no stored pages: bodies (crawl --keep-raw), WARC files (--format warc), HTML or JSON"
            )
    for file in files:
        yield from pages_of(file)


def holds_bodies(directory: Path) -> bool:
    """Whether the directory of a crawl has bodies of pages."""
    if any(rawfile.is_raw(file) for file in directory.glob(f"{rawfile.PREFIX}*{rawfile.SUFFIX}")):
        return True
    return any(file.name.endswith(SUFFIXES[:2]) for file in directory.iterdir())


def pages_of(path: Path, url: str = "") -> Iterator[StoredPage]:
    """The pages of one file. Raises `UserError`."""
    try:
        if path.name.endswith((".warc", ".warc.gz")):
            yield from _of_warc(path)
        elif rawfile.is_raw(path):
            yield from _of_raw(path)
        else:
            yield _of_file(path, url)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None


def _of_file(path: Path, url: str) -> StoredPage:
    with open_regular(path) as file:
        body = file.read(MAX_BYTES + 1)
    if len(body) > MAX_BYTES:
        raise UserError(f"{path} is larger than {MAX_BYTES >> 20} MiB")
    comment = _URL.match(body[:10_000])
    url_file = path.with_suffix(".url")
    if comment and not url:
        url = comment[1].decode("utf-8", "replace")
    elif not url and url_file.is_file():
        url = url_file.read_text(encoding="utf-8", errors="replace").strip()
    return StoredPage(url, _TYPES.get(path.suffix.lower(), "text/html"), "", body, str(path))


def _of_warc(path: Path) -> Iterator[StoredPage]:
    pages = 0
    bad: BadRecord | None = None
    with open_regular(path) as file:
        for record in read_warc(file, MAX_BYTES):
            if isinstance(record, ArchivedPage):
                if record.status != 200 or record.url.endswith("/robots.txt"):
                    continue  # an archive holds every response; only these are pages
                pages += 1
                if record.problem:
                    log.warning("%s: %s: %s", path, ascii(record.url), record.problem)
                origin = f"{path}: {record.url}"
                yield StoredPage(
                    record.url, record.content_type, record.charset, record.body, origin, record.fetched_at
                )
            else:
                bad = bad or record
                log.warning("%s: the record at byte %d is left out: %s", path, record.offset, ascii(record.reason))
    if bad is not None and not pages:
        raise UserError(f"{path} has no page that can be read: {bad.reason} (at byte {bad.offset})")


def _of_raw(path: Path) -> Iterator[StoredPage]:
    with open_regular(path):
        pass
    pages = 0
    bad: rawfile.DamagedMember | None = None
    for member in rawfile.read(path):
        if isinstance(member, rawfile.DamagedMember):
            bad = bad or member
            log.warning("%s: the page at byte %d is left out: %s", path, member.offset, ascii(member.why))
            continue
        pages += 1
        head = member.head
        if head.left_out:
            log.warning("%s: %s has no body: %s", path, ascii(head.url), ascii(head.left_out))
        elif head.status == 200:
            yield StoredPage(
                head.url, head.content_type, head.charset, member.body, f"{path}: {head.url}", head.fetched_at
            )
    if bad is not None and not pages:
        raise UserError(f"{path} has no page that can be read: {bad.why} (at byte {bad.offset})")
