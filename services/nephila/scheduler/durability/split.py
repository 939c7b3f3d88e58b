"""The split of a partition: of a restored state, the part that belongs to one of the two or more new partitions.

All new partitions begin with the same state of the one before: that of its log up to the claim that splits it. Each
keeps the hosts of its arc of the MD5 circle, with queues, seen URLs, leases and robots.txt. Totals that have no URL
stay with the partition that keeps its number: URLs that have ended, uses of quotas, lost links. So every sum over the
partitions stays the same. Page budget in use goes with its URLs (`Job.split_pages`). Pure, apart from the files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from nephila.scheduler.durability.restored import Restored
from nephila.scheduler.frontier.frontier import Frontier, PartitionSlice
from nephila.scheduler.jobs.job import Job

IsOther = Callable[[bytes], bool]


def keep_part(frontier: Frontier, restored: Restored, part: PartitionSlice, *, born: bool) -> None:
    """Remove what belongs to other partitions than this one, before `Replay.finish`. `born`: the partition is new.
    O(hosts + watched URLs + URLs in flight)."""
    layout = part.layout

    def is_other(url_key: bytes) -> bool:
        return layout.of(url_key) != part.number

    here, gone = dict.fromkeys(frontier.jobs, 0), dict.fromkeys(frontier.jobs, 0)
    """Job → leases of pages."""
    for (uid, url_key), leased in list(restored.leases.items()):
        counts = gone if is_other(url_key) else here
        if counts is gone:
            del restored.leases[uid, url_key]
        if leased.record is None and uid in counts:
            counts[uid] += 1
    for table in (restored.outstanding, restored.delayed, restored.attempts):
        for key in [key for key in table if is_other(key[1])]:
            del table[key]
    for host in [host for host in restored.robots_pending if is_other(_md5(host))]:
        del restored.robots_pending[host]
    _keep_hosts(frontier, is_other)
    for job in frontier.jobs.values():
        reserved = job.budget.reserved | job.budget.priority_refetch
        others = sum(map(is_other, reserved))
        _keep_urls(job, part, is_other)
        job.refused.held.lost = 0 if born else job.refused.held.lost
        if born:
            job.counts.ended.clear()
            job.counts.split_pages = here[job.uid] + len(reserved) - others
            if job.domains is not None:
                job.domains.forget_use()
        else:
            job.counts.split_pages -= gone[job.uid] + others
    if born:
        for partition in frontier.partitions:
            partition.ended.clear()
            partition.sequence = 0
        frontier.quotas.forget_uses()


def _keep_hosts(frontier: Frontier, is_other: IsOther) -> None:
    store = frontier.store
    for number in store.ids():
        if is_other(_md5(store.name(number))):
            frontier.hosts.drop(number)


def _keep_urls(job: Job, part: PartitionSlice, is_other: IsOther) -> None:
    layout = part.layout
    arc = layout.arc(part.number)
    for bits in range(1, layout.bits + 1):
        # The arc beside the own one at each level: together they are all others.
        sibling = (arc >> layout.bits - bits ^ 1) << 32 - bits
        job.seen.discard_prefix(sibling.to_bytes(4, "big"), bits)
    for url_key in [packed[:16] for packed in job.due_table.dump() if is_other(packed[:16])]:
        job.due_table.remove(url_key)
    for packed in job.refused.held.packed():
        if is_other(packed[:16]):
            job.refused.held.discard(packed[:16])
    job.budget.reserved = {url_key for url_key in job.budget.reserved if not is_other(url_key)}
    job.budget.priority_refetch = {url_key for url_key in job.budget.priority_refetch if not is_other(url_key)}
    job.quarantines = {key: quarantine for key, quarantine in job.quarantines.items() if not is_other(_md5(key[0]))}


def _md5(host: str) -> bytes:
    return hashlib.md5(host.encode(), usedforsecurity=False).digest()
