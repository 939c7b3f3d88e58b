"""Reads the history of recrawls from the table `fetches`: fetches that brought or confirmed a copy, and changes.

When a page changed is known only to lie between two fetches; the instant is drawn uniformly from that time, the same in
each run. So shares for intervals far below the recorded ones rest on that assumption, and changes that were replaced
before a fetch are not known at all.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from hashlib import blake2b
from itertools import groupby
from operator import itemgetter
from typing import Final

from nephila.kernel.documents.field_types import instant_s
from nephila.storage.changes import CHANGED, SAME
from nephila.storage.ledgers.read_connection import ReadConnection

from nephila_harvest.what_if.replay import PageHistory

MAX_PAGES: Final = 5_000
"""Pages of a replay; of more the sample is taken by a hash of their keys."""


def histories(connection: ReadConnection, job: str, most: int = MAX_PAGES) -> tuple[list[PageHistory], int]:
    """Pages of a job, or of all jobs, that were fetched at least twice, and how many there are. O(fetches log fetches)
    in the database, O(most) in memory."""
    only = "WHERE job = :job" if job else ""
    query = f"SELECT job, url_key, fetched_at, change FROM fetches {only} ORDER BY job, url_key, fetch_no, attempt"
    rows = connection.execute(query, {"job": job})
    newest: list[tuple[int, int, PageHistory]] = []
    count = 0
    for number, ((name, key), group) in enumerate(groupby(rows, key=itemgetter(0, 1))):
        page = _history(f"{name}\0{key}", bytes.fromhex(key), ((at, change) for _, _, at, change in group))
        if page is None:
            continue
        count += 1
        # The largest of the kept hashes leaves first.
        entry = (-_hash(f"{name}\0{key}"), number, page)
        if len(newest) < most:
            heapq.heappush(newest, entry)
        elif entry > newest[0]:
            heapq.heapreplace(newest, entry)
    return [page for _, _, page in sorted(newest, key=itemgetter(1))], count


def _history(seed: str, key: bytes, rows: Iterator[tuple[str, str]]) -> PageHistory | None:
    fetches: list[float] = []
    changes: list[float] = []
    for written, change in rows:
        if not written:
            continue
        at = instant_s(written)
        if fetches and at <= fetches[-1]:
            continue
        if change in (SAME, CHANGED) and fetches:
            if change == CHANGED:
                share = (_hash(f"{seed}\0{at}") % 1_000_003 + 0.5) / 1_000_003
                changes.append(fetches[-1] + share * (at - fetches[-1]))
            fetches.append(at)
        elif not fetches and change not in ("gone", "moved", ""):
            fetches.append(at)
    return PageHistory(key, tuple(fetches), tuple(changes)) if len(fetches) > 1 else None


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest())
