"""Records of a WARC file (ISO 28500, versions 0.17 to 1.1): yields pages and faults, skips all other records.

A page is a `response` with HTTP or a `resource`. Invariants: a record is returned completely or reported as bad; after
a bad record reading continues with the next; one record of at most `max_bytes` is in memory. A wrong digest is reported
with the page, since some large archives have wrong digests throughout. Revisits hold no page and are skipped; ARC, the
older format, is reported as bad.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import BinaryIO, Final, NamedTuple

from nephila.kernel.pages import mime

from nephila_rules.warcs.message import Message, read_message
from nephila_rules.warcs.source import BrokenMember, WarcSource

MAX_BYTES: Final = 64 << 20
"""Of a page; larger ones were no pages."""
MAX_LINE_BYTES: Final = 64 << 10
MAX_LINES: Final = 1_000

_LZ4: Final = b"\x04\x22\x4d\x18"
_ALGORITHMS: Final = {"sha1": "sha1", "sha-1": "sha1", "sha256": "sha256", "sha-256": "sha256", "md5": "md5"}


class ArchivedPage(NamedTuple):
    """One page of an archive."""

    url: str
    """As the record has it."""
    fetched_at: float
    """Seconds since 1970 UTC; 0 where the record does not say."""
    status: int
    content_type: str
    charset: str
    robots_tag: str
    body: bytes
    offset: int
    """Where its record, or the member that holds it, begins in the file."""
    problem: str = ""
    """The property of the record that its headers state wrongly; "" when all are right."""


class BadRecord(NamedTuple):
    """A record that cannot be read."""

    offset: int
    reason: str
    url: str = ""


class _Head(NamedTuple):
    kind: str
    url: str
    length: int
    fields: dict[str, str]


def read_warc(file: BinaryIO, max_bytes: int = MAX_BYTES) -> Iterator[ArchivedPage | BadRecord]:
    """Pages and faults of an archive, in the order of the file. Never raises but what reading `file` does. O(bytes)."""
    source = WarcSource(file)
    while True:
        offset, url = source.line_at, ""
        try:
            first = source.line(MAX_LINE_BYTES)
            while first in (b"\r\n", b"\n"):
                first = source.line(MAX_LINE_BYTES)
            offset = source.line_at
            if first == b"":
                return
            if first is None or not first.startswith(b"WARC/"):
                yield BadRecord(offset, _no_record(first))
                source.to_next_record()
                continue
            head = _head(source)
            url = head.url
            record = _record(source, head, offset, max_bytes)
        except BrokenMember as error:
            yield BadRecord(error.offset, f"broken: {error}", url)
        except ValueError as error:
            yield BadRecord(offset, str(error), url)
            source.to_next_record()
        else:
            if record is not None:
                yield record


def _no_record(line: bytes | None) -> str:
    if line is not None and line.startswith(b"filedesc://"):
        return "ARC, not WARC: this older format is not read"
    if line is not None and line.startswith(_LZ4):
        return "packed by lz4, which is not read"
    return "no record begins here"


def _head(source: WarcSource) -> _Head:
    fields: dict[str, str] = {}
    for _ in range(MAX_LINES):
        line = source.line(MAX_LINE_BYTES)
        if line is None:
            raise ValueError("a header line is too long")
        if not line.endswith(b"\n"):
            raise ValueError("the file ends within a header")
        if not line.strip():
            break
        name, colon, value = line.decode("utf-8", "replace").partition(":")
        if colon:
            fields.setdefault(name.strip().lower(), value.strip())
    else:
        raise ValueError("its header has no end")
    length = fields.get("content-length", "")
    if not (length.isascii() and length.isdecimal() and len(length) < 16):
        raise ValueError("no Content-Length")
    # wget writes the address in angle brackets.
    url = fields.get("warc-target-uri", "").removeprefix("<").removesuffix(">")
    return _Head(fields.get("warc-type", "").lower(), url, int(length), fields)


def _record(source: WarcSource, head: _Head, offset: int, max_bytes: int) -> ArchivedPage | BadRecord | None:
    """What a record comes to, None when it is no page; the source stands behind it."""
    if head.kind not in ("response", "resource") or not head.url.lower().startswith(("http://", "https://")):
        if source.skip(head.length) < head.length:
            raise ValueError("the file ends within a record")
        return None
    if head.length > max_bytes:
        source.skip(head.length)
        return BadRecord(offset, f"more than {max_bytes:,} bytes", head.url)
    block = source.take(head.length)
    if len(block) < head.length:
        raise ValueError("the file ends within a record")
    try:
        return _page(head, block, offset, max_bytes)
    except ValueError as error:
        # Its length was right: the next record is where it should be.
        return BadRecord(offset, str(error), head.url)


def _page(head: _Head, block: bytes, offset: int, max_bytes: int) -> ArchivedPage:
    if head.kind == "response":
        message = read_message(block, max_bytes)
        # Some make the digest of the bytes with their chunks, against the standard.
        bodies = [message.payload, block.partition(b"\r\n\r\n")[2]]
    else:
        content_type, charset = mime.media_type(head.fields.get("content-type", ""))
        message = Message(200, content_type, charset, "", block, block)
        bodies = [block]
    problem = ""
    if not _matches(head.fields.get("warc-block-digest", ""), block):
        problem = "its block digest is that of other bytes"
    elif "warc-truncated" in head.fields:
        problem = f"cut off when it was fetched: {head.fields['warc-truncated'][:40]}"
    elif not any(_matches(head.fields.get("warc-payload-digest", ""), body) for body in bodies):
        problem = "its payload digest is that of other bytes"
    return ArchivedPage(
        head.url,
        _seconds(head.fields.get("warc-date", "")),
        message.status,
        message.content_type,
        message.charset,
        message.robots_tag,
        message.body,
        offset,
        problem,
    )


def _matches(digest: str, data: bytes) -> bool:
    """Whether a digest as written ("sha1:BASE32" or hex) is that of `data`; True where there is none to compare."""
    name, colon, value = digest.partition(":")
    algorithm = _ALGORITHMS.get(name.strip().lower())
    if not colon or algorithm is None:
        return True
    computed = hashlib.new(algorithm, data, usedforsecurity=False).digest()
    value = value.strip()
    try:
        written = bytes.fromhex(value) if len(value) == 2 * len(computed) else base64.b32decode(value.upper())
    except (ValueError, binascii.Error):
        return True
    return written == computed or len(written) != len(computed)


def _seconds(date: str) -> float:
    try:
        parsed = datetime.fromisoformat(date)
    except ValueError:
        return 0.0
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
