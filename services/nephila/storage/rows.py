"""Converts a record to a row: one tuple in column order, made once and shared by all outputs.

Invariant: every string of a row is valid Unicode without NUL, so no output has to refuse a row. Invalid UTF-8, lone
surrogates and NUL become U+FFFD (SQLite's functions and PostgreSQL stop at NUL).
"""

import struct
import time
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

import msgspec

from nephila.kernel import messages as m
from nephila.kernel.pages.item_parts import is_part
from nephila.kernel.reasons.table import Reason
from nephila.kernel.url_credentials import credentials_of, without_credentials
from nephila.native import is_storable
from nephila.storage.changes import CHANGED, NEW, ChangeRow, StoredVersion, copy_hash_of

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
    "simhash",
    "near_copy_of",
    "near_copy_bits",
    "meta",
    "text",
)
"""Columns of outputs. The text is last: the columns before it are read without its overflow pages."""
STORED_COLUMNS = (*COLUMNS, "structure")
"""Columns of `pages` and of a `Row`: the structure stands beside the text, and is no text."""


OUTCOMES = ("unspecified", "stored", "denied", "failed", "dropped")
"""Text of each `Outcome`, by number."""

NOT_MODIFIED = Reason.NOT_MODIFIED
"""Reason of a row whose fetch only confirmed an earlier one (304)."""

Row = tuple[Any, ...]
"""The values of `STORED_COLUMNS`."""


class Blob(bytes):
    """A value that is no text."""


class Items(NamedTuple):
    """The items that a rule extracted from a page."""

    rule: str
    version: int
    data: tuple[str, ...]
    """One JSON object each."""
    fetch_id: str
    """Fetch of the copy from which they were extracted."""


URL, URL_KEY, JOB, OUTCOME, REASON, STATUS, TITLE = (
    COLUMNS.index(name) for name in ("url", "url_key", "job", "outcome", "reason", "status", "title")
)
BYTES, SHA256, FETCHED_AT, FETCH_ID, FETCH_NO, META, TEXT = (
    COLUMNS.index(name) for name in ("bytes", "sha256", "fetched_at", "fetch_id", "fetch_no", "meta", "text")
)
STRUCTURE = STORED_COLUMNS.index("structure")
CONTENT_TYPE, FINAL_URL, LANG = (COLUMNS.index(name) for name in ("content_type", "final_url", "lang"))
CHANGE, CHANGED_AT, FIRST_AT, TEXT_HASH = (
    COLUMNS.index(name) for name in ("change", "changed_at", "first_at", "text_hash")
)


class EvaluatedRow(NamedTuple):
    """The values that an evaluation by changed schemes writes into the row of a stored page."""

    job: str
    url_key: str
    url: str
    rule: str
    rule_version: int
    meta: str


class NearCopy(NamedTuple):
    """The page of which another one is a near-copy."""

    url: str
    bits: int
    """Bits in which the two simhashes differ."""


class RowBatch(msgspec.Struct):
    """The content of one flush: fetches that no earlier flush has made durable, each once."""

    rows: list[Row] = msgspec.field(default_factory=list)
    """Complete rows, in order of arrival."""
    added: Counter[str] = msgspec.field(default_factory=Counter)
    """Job → rows of URLs that have none yet."""
    not_modified: list[Row] = msgspec.field(default_factory=list)
    """304: the earlier row stays; only the fields of the fetch change."""
    copy_kept: list[Row] = msgspec.field(default_factory=list)
    """Fetches that ended without a page where an earlier fetch brought one: outcome, reason and fetch change, the copy
    stays."""
    attempt_and_old_hash: dict[tuple[str, str], tuple[int, str]] = msgspec.field(default_factory=dict)
    """(job, fetch_id) → fields of the history alone: the attempt and, of a changed text, the previous hash."""
    changed: list[tuple[str, str]] = msgspec.field(default_factory=list)
    """(job, url_key) of rows whose text differs from the stored copy; that copy becomes the previous version."""
    changes: list[ChangeRow] = msgspec.field(default_factory=list)
    """Rows of the change feed, in order."""
    links: list[tuple[str, str, m.Outlinks]] = msgspec.field(default_factory=list)
    """(job, url_key, links) of rows whose links are stored."""
    items: dict[tuple[str, str], Items] = msgspec.field(default_factory=dict)
    """(job, url_key) → the items of its newest copy, which replace the earlier items; empty if there are none now."""
    pages: list[m.Page] = msgspec.field(default_factory=list)
    """Raw pages of these fetches, for the sinks that store them."""
    records: dict[int, m.Record] = msgspec.field(default_factory=dict)
    """id() of a raw page → its record, if both arrived together."""
    exchanges: list[m.Page] = msgspec.field(default_factory=list)
    """Answers that are not pages, for WARC files."""
    evaluated: list[EvaluatedRow] = msgspec.field(default_factory=list)
    """Stored pages that were evaluated by changed schemes; `items` has the items of those whose item changed."""
    finds: list[tuple[str, str, str]] = msgspec.field(default_factory=list)
    """(job, url_key, platform) of content pages that searches of a platform lead to, each new."""
    removed: list[tuple[str, bytes]] = msgspec.field(default_factory=list)
    """Platform and last line of each item that such a page no longer has."""
    reports: dict[tuple[str, str], str] = msgspec.field(default_factory=dict)
    """(job, writer) → the report of the evaluation, as JSON."""

    def fetches(self) -> Iterator[Row]:
        """All rows, in the order of writing."""
        return chain(self.rows, self.not_modified, self.copy_kept)


def hide_credentials(record: m.Record) -> None:
    """Remove user and password of the URL of a record, and of the links that inherit them. `unpack_links` does the same
    for its links."""
    if "@" not in record.url and "@" not in record.final_url:
        return
    record.final_url = without_credentials(record.final_url)
    credentials = credentials_of(record.url)
    if not credentials:
        return
    record.url = without_credentials(record.url)
    text, data = f"//{credentials}@", f"//{credentials}@".encode()
    record.meta = record.meta.replace(text, "//")
    if data in record.structure:
        # Its lengths would be wrong. The text stays.
        record.structure = b""
    record.items = [bytes(item).replace(data, b"//") for item in record.items]


def row_of(
    record: m.Record, stored: StoredVersion | None = None, change: str = "", near: NearCopy | None = None
) -> Row:
    """The row of a record; `stored` is the present version of its URL, `near` the page of which it is a near-copy. The
    text stays UTF-8 bytes."""
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
        record.simhash.hex(),
        near.url if near is not None else "",
        near.bits if near is not None else 0,
        clean(record.meta),
        clean_utf8(record.text),
        Blob(record.structure),
    )


def items_of(record: m.Record, fetch_id: str) -> Items:
    """The items of a record, as valid text."""
    data = tuple(str(clean_utf8(item), "utf-8") for item in record.items)
    return Items(clean(record.rule), record.rule_version, data, fetch_id)


def item_rows(items: dict[tuple[str, str], Items]) -> list[tuple[str, str, str, int, int, str]]:
    """Rows of the table items, without parts of items."""
    return [
        (job, key, page_items.rule, page_items.version, ordinal, data)
        for (job, key), page_items in items.items()
        if not is_part(page_items.rule)
        for ordinal, data in enumerate(page_items.data)
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
    """The bytes as valid UTF-8 without NUL; 1 µs for 15 KB of valid text that is not in the CPU's cache."""
    text = data if type(data) is bytes else bytes(data)
    if is_storable(text):
        return text
    return text.decode("utf-8", "replace").encode().replace(b"\0", b"\xef\xbf\xbd")


@lru_cache(maxsize=64)
def _second(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))


def iso(seconds: float) -> str:
    """The time as 2026-11-21T09:21:00.123Z; empty for 0 and for times outside the calendar."""
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
            clean(without_credentials(str(links.urls[url_start:url_end], "utf-8", "replace"))),
            bytes(links.fingerprints[16 * index : 16 * index + 16]).hex(),
            clean(str(links.anchors[anchor_start:anchor_end], "utf-8", "replace")),
        )
        url_start, anchor_start = url_end, anchor_end
