"""URLs of a directory that have ended and have no row, and what is known of them.

A URL has ended when it is in the seen set of its job and is not open. Each has one row, because the row is durable
before the URL ends; a database that lost data, or that was put back from an older copy, lacks some. Keys are compared
in their order, so that memory does not grow with the crawl.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from nephila.kernel.documents.job_document import urls_of
from nephila.kernel.fragment_routes import parse_for
from nephila.kernel.messages import FrontierCommit, FrontierSnapshot, Outcome, UrlState
from nephila.native import UrlError
from nephila.scheduler.engine.dispatch import Dispatcher
from nephila.scheduler.jobs.job import Job
from nephila.scheduler.jobs.queue_entry import fill, unpack
from nephila.storage.ledgers.read_connection import ReadConnection
from nephila.storage.rows import OUTCOMES

_KEYS: Final = 10_000
_KEY_BYTES: Final = 16
_NUMBERS: Final = {name: Outcome(number) for number, name in enumerate(OUTCOMES)}


def ended_keys(dispatcher: Dispatcher, job: Job) -> Iterator[bytes]:
    """Keys of the URLs of a job that have ended, in order. Memory: the keys of open URLs."""
    frontier = dispatcher.frontier
    opened = {packed[:_KEY_BYTES] for _, _, uid, packed in frontier.delayed.items() if uid == job.uid}
    opened.update(key for uid, key in frontier.in_flight.urls if uid == job.uid)
    for host in frontier.store.hosts_of(job.number):
        opened.update(packed[:_KEY_BYTES] for _, packed in frontier.store.items(host, job.number))
    start = b"\0" * _KEY_BYTES
    while keys := job.seen.keys(start, _KEYS):
        for at in range(0, len(keys), _KEY_BYTES):
            key = keys[at : at + _KEY_BYTES]
            if key not in opened:
                yield key
        following = int.from_bytes(keys[-_KEY_BYTES:], "big") + 1
        if following >> (8 * _KEY_BYTES):
            return
        start = following.to_bytes(_KEY_BYTES, "big")


class Counted:
    """Passes keys on and counts them."""

    def __init__(self, keys: Iterator[bytes]) -> None:
        self.number = 0
        self._keys = keys

    def __iter__(self) -> Iterator[bytes]:
        for key in self._keys:
            self.number += 1
            yield key


def row_keys(rows: ReadConnection, uid: str) -> Iterator[bytes]:
    """Keys of the rows of a job, in order."""
    query = "SELECT url_key FROM pages WHERE job = :job AND url_key > :last ORDER BY url_key LIMIT :most"
    last = ""
    while rows_read := rows.execute(query, {"job": uid, "last": last, "most": _KEYS}).fetchall():
        for (last,) in rows_read:
            yield bytes.fromhex(last)


def missing(ended: Iterator[bytes], rows: Iterator[bytes]) -> Iterator[bytes]:
    """Members of the first ordered sequence that the second one lacks. O(both)."""
    row = next(rows, None)
    for key in ended:
        while row is not None and row < key:
            row = next(rows, None)
        if row != key:
            yield key


def states(
    jobs: Sequence[Job], keys: Iterable[bytes], log: Iterable[FrontierSnapshot | FrontierCommit], rows: ReadConnection
) -> dict[bytes, UrlState]:
    """What is known of these URLs; `jobs`: one job in each of its partitions. A URL that nothing names any more has an
    empty `url`. Sources: the due table, the commits behind the last snapshot, the table of links, the change feed, the
    seeds. O(commits + links + changes)."""
    job = jobs[0]
    states_by_key = {key: _known(jobs, key) or UrlState(job.uid, key, fetch_no=1) for key in keys}
    for entry in log:
        if isinstance(entry, FrontierCommit):
            for queued in entry.queued:
                if queued.job == job.uid and queued.entry[:_KEY_BYTES] in states_by_key:
                    last = unpack(queued.entry)
                    fill(states_by_key[last.url_key], last).fetch_no = last.fetch_no
            for ended in entry.ended:
                if ended.job == job.uid and ended.url_key in states_by_key:
                    states_by_key[ended.url_key].outcome = ended.outcome
                    states_by_key[ended.url_key].fetch_no = ended.fetch_no
    unknown = {key for key, state in states_by_key.items() if not state.url}
    if unknown:
        for key, url, depth in _named_by_rows(rows, job.uid):
            if key in unknown and (not states_by_key[key].url or depth < states_by_key[key].depth):
                states_by_key[key].url, states_by_key[key].depth = url, depth
    for url in urls_of(job.compiled.document):
        try:
            key = parse_for(job.compiled.routes, url).fingerprint
        except UrlError:
            continue
        if key in unknown:
            states_by_key[key].url, states_by_key[key].depth = url, 0
    return states_by_key


def _known(jobs: Sequence[Job], key: bytes) -> UrlState | None:
    return next((state for job in jobs if (state := job.due_table.get(key)) is not None), None)


def _named_by_rows(rows: ReadConnection, uid: str) -> Iterator[tuple[bytes, str, int]]:
    """(url_key, URL, depth) of links and changes."""
    links = (
        "SELECT links.to_key, links.to_url, pages.depth + 1 FROM links JOIN pages ON pages.job = links.job"
        " AND pages.url_key = links.from_key WHERE links.job = :job"
    )
    for query in (links, "SELECT url_key, url, 0 FROM changes WHERE job = :job"):
        for key, url, depth in rows.execute(query, {"job": uid}):
            yield bytes.fromhex(key), url, depth


def complete_outcomes(jobs: Sequence[Job], rows: ReadConnection, states: Mapping[bytes, UrlState]) -> None:
    """Give URLs whose outcome is not known the outcomes that the table lacks: the counts of the job are right then."""
    query = "SELECT outcome, count(*) FROM pages WHERE job = :job GROUP BY outcome"
    lacking: Counter[Outcome] = Counter()
    for job in jobs:
        lacking.update({Outcome(outcome): count for outcome, count in job.counts.ended.items()})
    for name, count in rows.execute(query, {"job": jobs[0].uid}):
        lacking[_NUMBERS[name]] -= count
    for state in states.values():
        if state.outcome:
            lacking[state.outcome] -= 1
    left = (outcome for outcome, count in lacking.items() for _ in range(max(count, 0)))
    for state in states.values():
        if not state.outcome:
            state.outcome = next(left, Outcome.STORED)
