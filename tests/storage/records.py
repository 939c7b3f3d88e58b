"""Records of pages as storage receives them, and one flush of them."""

from __future__ import annotations

import hashlib
from typing import Any

from nephila.kernel import messages as m
from nephila.storage.writer import Writer


def record(number: int, fetch_no: int = 1, attempt: int = 1, **fields: Any) -> m.Record:
    """A stored page."""
    values: dict[str, Any] = {
        "job": "job",
        "url_key": hashlib.md5(b"%d" % number).digest(),
        "url": f"http://h{number % 3}.test/{number}",
        "outcome": m.Outcome.STORED,
        "status": 200,
        "depth": 1,
        "content_type": "text/html",
        "size_bytes": number,
        "sha256": hashlib.sha256(b"%d" % number).digest(),
        "title": f"Page {number}",
        "text": f"text {number} of fetch {fetch_no}, żółć".encode(),
        "lang": "en",
        "fetched_at": 1_800_000_000.25 + 86_400 * fetch_no,
        "meta": '{"description": "d"}',
    }
    return m.Record(fetch_no=fetch_no, attempt=attempt, **{**values, **fields})


def not_modified(number: int, fetch_no: int) -> m.Record:
    """A 304."""
    return record(number, fetch_no, status=304, text=b"", title="", not_modified=True, sha256=b"", meta="")


def page_of(item: m.Record) -> m.Page | None:
    """The raw page of a record that had one."""
    if item.outcome != m.Outcome.STORED:
        return None
    return m.Page(
        job=item.job,
        url_key=item.url_key,
        url=item.url,
        fetch_no=item.fetch_no,
        attempt=item.attempt,
        status=item.status,
        body=item.text,
        fetched_at=item.fetched_at,
        request_head=b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        response_head=b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n" % (item.status, len(item.text)),
        not_modified=item.not_modified,
    )


def put(writer: Writer, *records: m.Record) -> list[m.Outcome]:
    """One flush."""
    result = writer.commit(records, [page_of(item) for item in records], [])
    writer.after_commit()
    return result.outcomes
