"""Reads the pages or items that an audit may draw from the rows of a crawl."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import blake2b
from typing import NamedTuple

from nephila.storage.ledgers.read_connection import ReadConnection
from nephila.storage.read.items import all_items

from nephila_harvest.audit.left_out import VERSION, anchors, is_left_out
from nephila_harvest.audit.sampling import LINK, Candidate

_ROWS = 1000
"""Rows of one query."""


class Shown(NamedTuple):
    """What a person judges."""

    title: str
    text: str


def pages(connection: ReadConnection, job: str) -> Iterator[Candidate]:
    """The stored pages of a job, or of all jobs, in the order of job and key. O(rows)."""
    only = "AND job = :only" if job else ""
    last = ("", "")
    query = (
        "SELECT job, url_key, url, rule, text_hash, sha256 FROM pages WHERE outcome = 'stored'"
        f" AND (job, url_key) > (:job, :key) {only} ORDER BY job, url_key LIMIT {_ROWS}"
    )
    while True:
        rows = connection.execute(query, {"job": last[0], "key": last[1], "only": job}).fetchall()
        for name, key, url, rule, text_hash, sha256 in rows:
            yield Candidate(name, key, "", -1, page_version(text_hash, sha256), url, rule or "")
        if len(rows) < _ROWS:
            return
        last = rows[-1][:2]


def items(connection: ReadConnection, job: str) -> Iterator[Candidate]:
    """The items of a job, or of all jobs. O(items)."""
    for item in all_items(connection, job or None):
        yield Candidate(item.job, item.url_key, item.rule, item.ordinal, item_version(item.data), item.url, item.rule)


def version_now(connection: ReadConnection, candidate: Candidate) -> str:
    """The version of a page or item as the crawl has it now; empty: the crawl has it no more."""
    if candidate.ordinal == LINK:
        return VERSION if is_left_out(connection, candidate) else ""
    values = {"job": candidate.job, "key": candidate.url_key, "rule": candidate.rule, "ordinal": candidate.ordinal}
    if candidate.ordinal < 0:
        query = "SELECT text_hash, sha256 FROM pages WHERE job = :job AND url_key = :key AND outcome = 'stored'"
        row = connection.execute(query, values).fetchone()
        return page_version(*row) if row else ""
    query = "SELECT data FROM items WHERE job = :job AND url_key = :key AND rule = :rule AND ordinal = :ordinal"
    row = connection.execute(query, values).fetchone()
    return item_version(row[0]) if row else ""


def page_version(text_hash: str | None, sha256: str | None) -> str:
    """The version of a page: the hash of its text, or of its body."""
    return str(text_hash or sha256 or "")


def item_version(data: str) -> str:
    """The version of an item: a hash of its data."""
    return blake2b(data.encode(errors="surrogatepass"), digest_size=8).hexdigest()


def shown(connection: ReadConnection, candidate: Candidate) -> Shown | None:
    """Title and text of a page, an item as indented JSON, or the text of a link and the pages that have it; None: the
    crawl has it no more."""
    if candidate.ordinal == LINK:
        text, pages_with_it = anchors(connection, candidate)
        lines = ["not stored; linked from:", *pages_with_it]
        return Shown(text, "\n".join(lines)) if is_left_out(connection, candidate) else None
    values = {"job": candidate.job, "key": candidate.url_key, "rule": candidate.rule, "ordinal": candidate.ordinal}
    if candidate.ordinal < 0:
        query = "SELECT title, text FROM pages WHERE job = :job AND url_key = :key AND outcome = 'stored'"
        row = connection.execute(query, values).fetchone()
        return Shown(row[0] or "", row[1] or "") if row else None
    query = "SELECT data FROM items WHERE job = :job AND url_key = :key AND rule = :rule AND ordinal = :ordinal"
    row = connection.execute(query, values).fetchone()
    return Shown(candidate.rule, json.dumps(json.loads(row[0]), ensure_ascii=False, indent=2)) if row else None
