"""What a record looks like as a row: one tuple in column order, shared by every backend, made once.

Invariant: every string of a row is valid Unicode without NUL, so that no backend has to refuse a row: invalid UTF-8
and lone surrogates become U+FFFD, and so does NUL (SQLite's functions and PostgreSQL stop at it).
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

from nephila.kernel import messages as m
from nephila.kernel.item_parts import is_part
from nephila.native import is_storable
from nephila.storage.changes import CHANGED, NEW, StoredVersion, copy_hash_of

COLUMNS = (
    "url",
    "url_key",
    "job",
    "outcome",
    "reason",
    "status",
    "final_url",
    "depth",
    "content_type",
    "bytes",
    "sha256",
    "title",
    "lang",
    "fetched_at",
    "fetch_id",
    "fetch_no",
    "rule",
    "rule_version",
    "etag",
    "last_modified",
    "change",
    "changed_at",
    "first_at",
    "text_hash",
    "meta",
    "text",
)
"""Columns of `pages`. The text is last: what stands before it is read without walking a page's overflow chain."""

OUTCOMES = ("unspecified", "stored", "denied", "failed", "dropped")
"""Text of each `Outcome`, by number."""

NOT_MODIFIED = "not_modified"
"""Reason of a row that says only that an earlier fetch still holds (304)."""

Row = tuple[Any, ...]


class Items(NamedTuple):
    """What a rule made of a page."""

    rule: str
    version: int
    data: tuple[str, ...]
    """A JSON object each."""
    fetch_id: str
    """Of the copy that they were made of."""


URL, URL_KEY, JOB, OUTCOME, REASON, STATUS = (
    COLUMNS.index(name) for name in ("url", "url_key", "job", "outcome", "reason", "status")
)
BYTES, SHA256, FETCHED_AT, FETCH_ID, FETCH_NO, META, TEXT = (
    COLUMNS.index(name) for name in ("bytes", "sha256", "fetched_at", "fetch_id", "fetch_no", "meta", "text")
)
CONTENT_TYPE = COLUMNS.index("content_type")
CHANGE, CHANGED_AT, FIRST_AT, TEXT_HASH = (
    COLUMNS.index(name) for name in ("change", "changed_at", "first_at", "text_hash")
)


@dataclass(slots=True)
class Batch:
    """What one flush makes durable: fetches that no earlier flush has made durable, each once."""

    rows: list[Row] = field(default_factory=list)
    """Complete rows, in order of arrival."""
    not_modified: list[Row] = field(default_factory=list)
    """304: the earlier row stays; when, how and by which fetch it was confirmed changes."""
    copy_kept: list[Row] = field(default_factory=list)
    """Ends without a page where an earlier fetch brought one: outcome, reason and fetch change, the copy stays."""
    attempt_and_old_hash: dict[tuple[str, str], tuple[int, str]] = field(default_factory=dict)
    """(job, fetch_id) → what only the history keeps: the attempt and, of a changed text, the hash before."""
    changed: list[tuple[str, str]] = field(default_factory=list)
    """(job, url_key) of rows with another text than the copy that stands, which is kept as the previous one."""
    links: list[tuple[str, str, m.Outlinks]] = field(default_factory=list)
    """(job, url_key, links) of rows that keep their links."""
    items: dict[tuple[str, str], Items] = field(default_factory=dict)
    """(job, url_key) → the items of its newest copy, in place of those it had; where it has none now, none."""
    markdown: dict[tuple[str, str], bytes] = field(default_factory=dict)
    """(job, url_key) → the main text of its newest copy as Markdown, where the parser made it."""
    pages: list[m.Page] = field(default_factory=list)
    """Raw pages of these fetches, for the sinks that keep them."""
    records: dict[int, m.Record] = field(default_factory=dict)
    """id() of a raw page → its record, where both came together."""
    exchanges: list[m.Page] = field(default_factory=list)
    """Answers that are no pages, for archives."""

    def fetches(self) -> Iterator[Row]:
        """All rows, in the order in which they are to be written."""
        return chain(self.rows, self.not_modified, self.copy_kept)


def row_of(record: m.Record, stored: StoredVersion | None = None, change: str = "") -> Row:
    """The row of a record, after what `stored` says of the URL; its text stays UTF-8 bytes."""
    key = record.url_key.hex()
    at = iso(record.fetched_at)
    first_at, changed_at = (stored.first_at, stored.changed_at) if stored is not None else ("", "")
    if change == NEW:
        first_at = changed_at = at
    elif change == CHANGED:
        changed_at = at
    return (
        clean(record.url),
        key,
        clean(record.job),
        OUTCOMES[record.outcome],
        NOT_MODIFIED if record.not_modified else clean(record.reason),
        record.status,
        clean(record.final_url),
        record.depth,
        clean(record.content_type),
        record.size_bytes,
        record.sha256.hex(),
        clean(record.title),
        clean(record.lang),
        at,
        f"{key}-{record.fetch_no}-{record.attempt}",
        record.fetch_no,
        clean(record.rule),
        record.rule_version,
        clean(record.etag),
        clean(record.last_modified),
        change,
        changed_at,
        first_at,
        copy_hash_of(record).hex(),
        clean(record.meta),
        clean_utf8(record.text),
    )


def items_of(record: m.Record, fetch_id: str) -> Items:
    """The items of a record; what is escaped in JSON cannot break a row."""
    data = tuple(str(clean_utf8(one), "utf-8") for one in record.items)
    return Items(clean(record.rule), record.rule_version, data, fetch_id)


def item_rows(items: dict[tuple[str, str], Items]) -> list[tuple[str, str, str, int, int, str]]:
    """Rows of the table items; a part of an item is none."""
    return [
        (job, key, one.rule, one.version, ordinal, data)
        for (job, key), one in items.items()
        if not is_part(one.rule)
        for ordinal, data in enumerate(one.data)
    ]


def clean(text: str) -> str:
    """The text without NUL and lone surrogates."""
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def clean_utf8(data: bytes | bytearray | memoryview) -> bytes:
    """The bytes as valid UTF-8 without NUL; 1 µs for 15 KB that are it already, the memory being cold."""
    text = data if type(data) is bytes else bytes(data)
    if is_storable(text):
        return text
    return text.decode("utf-8", "replace").encode().replace(b"\0", b"\xef\xbf\xbd")


@lru_cache(maxsize=64)
def _second(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))


def iso(seconds: float) -> str:
    """2026-11-21T09:21:00.123Z; empty for 0 and for times no calendar holds."""
    if not seconds:
        return ""
    try:
        whole = int(seconds)
        return f"{_second(whole)}.{int((seconds - whole) * 1000):03d}Z"
    except (ValueError, OverflowError, OSError):
        return ""


def unpack_links(links: m.Outlinks) -> Iterator[tuple[str, str, str]]:
    """(url, url_key as hex, anchor) of each link of a packed list."""
    count = len(links.fingerprints) // 16
    url_ends = struct.unpack(f"<{count}I", links.url_ends)
    anchor_ends = struct.unpack(f"<{count}I", links.anchor_ends) if links.anchor_ends else (0,) * count
    url_start = anchor_start = 0
    for index, (url_end, anchor_end) in enumerate(zip(url_ends, anchor_ends, strict=True)):
        yield (
            clean(str(links.urls[url_start:url_end], "utf-8", "replace")),
            bytes(links.fingerprints[16 * index : 16 * index + 16]).hex(),
            clean(str(links.anchors[anchor_start:anchor_end], "utf-8", "replace")),
        )
        url_start, anchor_start = url_end, anchor_end
