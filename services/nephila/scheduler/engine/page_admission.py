"""Admission of a page's links by one call of the native core.

The effects and their order are those of `admission`, which admits all pages that this does not: sitemaps and feeds,
scopes without a native form, jobs that take only some links or record them, links with session ids, links of other
partitions. The cost is about a microsecond per new link. Pure.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

import msgspec

from nephila.kernel.messages import Outlinks, QueuedUrl
from nephila.native import LinkScope, Trie
from nephila.scheduler.frontier.frontier import Frontier
from nephila.scheduler.frontier.host_table import novelty_of
from nephila.scheduler.jobs.job import Job
from nephila.scheduler.jobs.queue_entry import SEED, host_of, pack_context
from nephila.scheduler.jobs.strategies import MAX_PRIORITY, SEED_PRIORITY, StrategyRow, inherited

_encode = msgspec.msgpack.Encoder().encode
_JOB, _HOST, _ENTRY, *_REST = msgspec.structs.astuple(QueuedUrl())
_ROW_END: Final = b"".join(map(_encode, _REST))
"""The fields of a row of the log behind its entry."""
_SEED_FLOORS: Final = bytes([SEED_PRIORITY]) * 256
"""Seeds have one priority whatever their flags."""


class _Entries(msgspec.Struct, frozen=True, gc=False):
    """The fields that the queue entries of a page have in common."""

    job: int
    depth: int
    first_no: int
    hops: int
    flags: int
    orders: Sequence[int]
    """Order by priority, or one for all."""
    newest_first: bool
    floors: bytes
    """Least priority by the flags of a link, or empty."""
    context: bytes
    held: int
    """Limit of the job's URLs on a host; 0: none."""
    all_hosts: bool
    """Report every host that got a URL, not only those where the job had none."""
    over_budget: dict[int, None]
    row_start: bytes
    """A row of the log is this, host key, packed entry, `row_end`, as MessagePack."""
    row_end: bytes


class _Checks(msgspec.Struct, frozen=True, gc=False):
    seen: Trie
    scope: LinkScope
    rejected: Trie
    rejected_limit: int
    sessions: bool
    """Leave a page with session ids in its links to Python."""
    partition_bits: int
    partition: int
    """The top partition_bits bits of the fingerprints of this frontier; -1: it has all."""
    log_bits: int


def admit(frontier: Frontier, job: Job, links: Outlinks, rejected_limit: int) -> tuple[int, list[int]] | None:
    """Admit the new links of a page that are in scope; returns how many, and the indices of those out of scope. None,
    and no effect, where Python has to."""
    scope = job.scope.native
    if scope is None or links.source or job.compiled.picks_links:
        return None
    strategy = job.compiled.strategy
    entries = _Entries(
        job.number,
        links.depth,
        job.fetch_numbers.first,
        0,
        0,
        _orders(strategy, links.depth),
        strategy.newest_first,
        _floors(links.parent_priority) if strategy.relevance and links.parent_priority else b"",
        pack_context(links.context),
        job.compiled.host_limits.queued,
        bool(job.queue.waiting_hosts),
        job.queue.over_budget_hosts,
        _row_start(job.uid),
        _ROW_END,
    )
    checks = _checks(frontier, job, scope, job.refused.rejected, rejected_limit, not job.compiled.traps.off)
    admitted = _admit(frontier, job, links, entries, checks)
    if admitted is None:
        return None
    indices, out_of_scope = admitted
    job.refused.out_of_scope += len(out_of_scope)
    if indices:
        _record_self_links(frontier, job, links, indices)
    return len(indices), out_of_scope


def admit_seeds(frontier: Frontier, job: Job, scope: LinkScope, links: Outlinks) -> None:
    """Admit seeds that the scope is anchored at: limits of hosts, refused links and traps do not apply to them."""
    strategy = job.compiled.strategy
    entries = _Entries(
        job.number,
        0,
        job.fetch_numbers.first,
        0,
        SEED,
        (strategy.order(0, SEED_PRIORITY),),
        strategy.newest_first,
        _SEED_FLOORS,
        b"",
        0,
        bool(job.queue.waiting_hosts),
        {},
        _row_start(job.uid),
        _ROW_END,
    )
    admitted = _admit(frontier, job, links, entries, _checks(frontier, job, scope, Trie(), len(links.urls), False))
    assert admitted is not None, "seeds of a file need nothing that the core has not"


def _checks(
    frontier: Frontier, job: Job, scope: LinkScope, rejected: Trie, rejected_limit: int, sessions: bool
) -> _Checks:
    part = frontier.partition_slice
    return _Checks(
        job.seen,
        scope,
        rejected,
        rejected_limit,
        sessions,
        part.of.bit_length() - 1,
        frontier.arc if part.of > 1 else -1,
        len(frontier.partitions).bit_length() - 1,
    )


def _admit(
    frontier: Frontier, job: Job, links: Outlinks, entries: _Entries, checks: _Checks
) -> tuple[list[int], list[int]] | None:
    """Indices of the admitted links and of those out of scope."""
    admitted = frontier.store.admit(links, entries, checks)
    if admitted is None:
        return None
    indices, out_of_scope, firsts, parts = admitted
    if indices:
        frontier.pending.add_rows(parts)
    # A host where the job had a URL before is scheduled, ready, in flight or held back already.
    frontier.readiness.newly_queued_all(firsts, job)
    return indices, out_of_scope


@lru_cache(maxsize=256)
def _orders(strategy: StrategyRow, depth: int) -> Sequence[int]:
    """Orders by priority; one order where the priority has no effect."""
    return _by_priority(strategy) if strategy.relevance else (strategy.order(depth, 0),)


@lru_cache(maxsize=8)
def _by_priority(strategy: StrategyRow) -> Sequence[int]:
    return [strategy.order(0, priority) for priority in range(MAX_PRIORITY + 1)]


@lru_cache(maxsize=256)
def _floors(parent_priority: int) -> bytes:
    """The priority that a link inherits, by its flags."""
    return bytes(inherited(0, parent_priority, flag) for flag in range(256))


@lru_cache(maxsize=64)
def _row_start(uid: str) -> bytes:
    """The header of an array of up to 15 fields, and the first of them."""
    return bytes([0x90 | len(QueuedUrl.__struct_fields__)]) + _encode(uid)


def _urls(links: Outlinks, indices: Sequence[int]) -> Iterator[str]:
    ends, urls = memoryview(links.url_ends).cast("I"), links.urls
    for i in indices:
        yield urls[ends[i - 1] if i else 0 : ends[i]].decode()


def _record_self_links(frontier: Frontier, job: Job, links: Outlinks, indices: Sequence[int]) -> None:
    """Record whether a part of the site links only to itself. URLs are decoded only as far as that takes."""
    if job.compiled.traps.off or not links.parent_url:
        return
    host = frontier.hosts.find(host_of(links.parent_url))
    if host is not None:
        novelty_of(host, job).linked(links.parent_url, _urls(links, indices))
        host.changed = True
