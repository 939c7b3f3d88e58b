"""How far schemes are, from the rows of a crawl: states and counts per scheme, platform and group.

A search counts for every scheme and group that plans it, though its page is fetched once. O(searches + rows).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec
from nephila.kernel.documents.scheme_schema import Schemes
from nephila.kernel.fragment_routes import parse_routed
from nephila.native import UrlError
from nephila.storage.ledgers.read_connection import ReadConnection

from nephila_harvest.schemes import planner

_ROWS = 10_000
Key = tuple[str, str, str]
"""Scheme, platform, group."""


class State(StrEnum):
    """How far the searches of a scheme are."""

    READY = "ready"
    """None of them has ended."""
    EXECUTING = "executing"
    FINISHED = "finished"
    """All of them have ended, and nothing of the job is queued or in flight."""


@dataclass(slots=True)
class Count:
    """One scheme, platform and group."""

    scheme: str
    platform: str
    group: str
    searches: int = 0
    ended: int = 0
    """Searches whose first page has ended."""
    failed: int = 0
    """Of those, without a page."""
    records: int = 0
    """Records of the platform that match the group, found by any search."""


@dataclass(slots=True)
class SchemeProgress:
    """All counts, in the order of schemes, platforms and groups."""

    counts: list[Count]
    idle: bool
    """Nothing of the job is queued or in flight."""

    def state(self, scheme: str) -> State:
        """The state of one scheme."""
        own = [row for row in self.counts if row.scheme == scheme]
        ended, searches = sum(row.ended for row in own), sum(row.searches for row in own)
        if not ended:
            return State.READY
        return State.FINISHED if ended == searches and self.idle else State.EXECUTING


def read(rows: ReadConnection, job: str, state: Schemes, *, idle: bool) -> SchemeProgress:
    """The progress of all schemes of a job."""
    counts: dict[Key, Count] = {}
    outcomes = dict(_outcomes(rows, job))
    for key in planner.count(state):
        counts[key] = Count(*key)
    for seed in planner.plan(state):
        group_counts = counts[seed.scheme, seed.platform, seed.group]
        group_counts.searches += 1
        try:
            outcome = outcomes.get(parse_routed(seed.url).fingerprint)
        except UrlError:
            continue
        if outcome is not None:
            group_counts.ended += 1
            group_counts.failed += outcome != "stored"
    names = {entry.name for entry in state.platforms}
    for platform, data in _items(rows, job):
        if platform in names:
            for scheme, groups in data.get("schemes", {}).items():
                for group in groups:
                    if (scheme_counts := counts.get((scheme, platform, group))) is not None:
                        scheme_counts.records += 1
    return SchemeProgress(list(counts.values()), idle)


def _outcomes(rows: ReadConnection, job: str) -> Iterator[tuple[bytes, str]]:
    """Fingerprint and outcome of all pages that searches lead to without a link."""
    last = ""
    query = (
        "SELECT url_key, outcome FROM pages WHERE job = :job AND url_key > :last AND depth = 0"
        f" ORDER BY url_key LIMIT {_ROWS}"
    )
    while outcomes := rows.execute(query, {"job": job, "last": last}).fetchall():
        for key, outcome in outcomes:
            yield bytes.fromhex(key), outcome
        last = outcomes[-1][0]


def _items(rows: ReadConnection, job: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Rule and data of all items."""
    last = ("", "", -1)
    query = (
        "SELECT url_key, rule, ordinal, data FROM items WHERE job = :job AND (url_key, rule, ordinal) >"
        f" (:key, :rule, :ordinal) ORDER BY url_key, rule, ordinal LIMIT {_ROWS}"
    )
    while items := rows.execute(query, {"job": job, "key": last[0], "rule": last[1], "ordinal": last[2]}).fetchall():
        for _, rule, _, data in items:
            yield rule, msgspec.json.decode(data)
        last = tuple(items[-1][:3])
