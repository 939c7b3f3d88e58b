"""Near-copies: pages of a job whose text is nearly that of another page, found by their simhashes. One thread.

The index in memory gives candidates; the ledger confirms them, so an outdated entry costs a query and no wrong row.
Only pages that are no near-copies are in the index: every near-copy of a text names one page. The index is filled from
the ledger's rows when the first page of a job arrives that has to be looked up.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Final, Protocol

from nephila.kernel import messages as m
from nephila.kernel.reasons.table import Reason
from nephila.native import NearCopyIndex
from nephila.storage.rows import NearCopy

REASON: Final = Reason.NEAR_COPY
"""Reason of a URL that ended as dropped, because its page is a near-copy."""
_PREFIX: Final = 5
"""Hexadecimal digits of a url_key that an entry of the index holds."""
_CANDIDATES: Final = 8
"""Candidates of one page that are looked up in the ledger: a bound on the queries."""


class Simhashes(Protocol):
    """The part of a ledger that the search for near-copies reads."""

    def simhashes(self, job: str) -> Iterable[tuple[str, str]]:
        """(url_key, simhash in hex) of all pages of a job that are no near-copies, in the order of their fetches."""

    def pages_by_prefix(self, job: str, prefix: str) -> Iterable[tuple[str, str, str]]:
        """(url_key, URL, simhash in hex) of those whose url_key begins with `prefix`."""


class NearCopies:
    """Finds the page of which a page is a near-copy. Memory: 16 bytes per entry, for all jobs together."""

    def __init__(self, ledger: Simhashes, entries: int, distance: int) -> None:
        self._ledger = ledger
        self._entries = entries
        self._distance = distance
        self._index: NearCopyIndex | None = None
        self._salts: dict[str, int] = {}
        self._batch: dict[tuple[str, str], dict[str, tuple[str, str]]] = {}
        """(job, prefix of the url_key) → url_key → (URL, simhash in hex) of the rows of this batch, which the ledger
        does not have yet; the simhash is empty for a near-copy and for a page without one."""

    def begin_batch(self) -> None:
        """Forget the pages of the batch before: they are in the ledger, or were rolled back."""
        self._batch.clear()

    def find(self, record: m.Record) -> NearCopy | None:
        """The nearest other page within the distance; without one, the page itself becomes a candidate."""
        if not record.near_copies or not record.simhash or record.outcome is not m.Outcome.STORED:
            return None
        index = self._opened()
        key, job = record.url_key.hex(), record.job
        simhash = int.from_bytes(record.simhash, "big")
        salted = simhash ^ self._salt(index, job)
        candidates = [f"{page:05x}" for _, page in index.near(salted, self._distance)[:_CANDIDATES]]
        pages = [page for candidate in candidates for page in self._pages(job, candidate) if page[0] != key]
        near = [((simhash ^ int(theirs, 16)).bit_count(), url) for _, url, theirs in pages]
        bits, url = min(near, default=(self._distance + 1, ""))
        if bits <= self._distance:
            return NearCopy(url, bits)
        index.add(salted, int(key[:_PREFIX], 16))
        return None

    def replaced(self, record: m.Record, near: NearCopy | None) -> None:
        """The batch has a new row of this page, which is a near-copy of `near`."""
        if record.near_copies:
            key = record.url_key.hex()
            simhash = record.simhash.hex() if near is None else ""
            self._batch.setdefault((record.job, key[:_PREFIX]), {})[key] = (record.url, simhash)

    def _pages(self, job: str, prefix: str) -> Iterator[tuple[str, str, str]]:
        """The ledger's pages with this prefix as they are after this batch."""
        batch = self._batch.get((job, prefix), {})
        yield from ((key, url, simhash) for key, (url, simhash) in batch.items() if simhash)
        yield from (page for page in self._ledger.pages_by_prefix(job, prefix) if page[0] not in batch)

    def _opened(self) -> NearCopyIndex:
        if self._index is None:
            self._index = NearCopyIndex(self._entries)
        return self._index

    def _salt(self, index: NearCopyIndex, job: str) -> int:
        """A number that separates the simhashes of jobs and keeps distances within a job. The first call for a job
        reads its rows: O(rows)."""
        salt = self._salts.get(job)
        if salt is None:
            salt = int.from_bytes(hashlib.sha256(job.encode("utf-8", "replace")).digest()[:8], "big")
            for key, simhash in self._ledger.simhashes(job):
                index.add(int(simhash, 16) ^ salt, int(key[:_PREFIX], 16))
            self._salts[job] = salt
        return salt


def skipped_record(record: m.Record) -> m.Record:
    """The record of a page that is not stored: its fetch and its simhash, without its content."""
    return m.Record(
        job=record.job,
        url_key=record.url_key,
        url=record.url,
        fetch_no=record.fetch_no,
        attempt=record.attempt,
        outcome=m.Outcome.DROPPED,
        reason=REASON,
        status=record.status,
        final_url=record.final_url,
        depth=record.depth,
        content_type=record.content_type,
        fetched_at=record.fetched_at,
        simhash=record.simhash,
        context=record.context,
    )
