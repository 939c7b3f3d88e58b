"""The pending commit: changes that are applied to the views and not yet written to the log, per partition. Pure.

Every change of a view adds to the pending commit of its partition. `commits` returns them all, once per turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from nephila.kernel.messages import FrontierCommit, Outcome, QueuedUrl
from nephila.native import partition_of
from nephila.scheduler.jobs.queue_entry import packed_rows, unpacked_rows
from nephila.scheduler.tenants.quotas import own_accounts

PackedRows = tuple[int, int, bytes]
"""Partition, number of queued URLs, and their rows as MessagePack."""


class Partition:
    """One slice of the MD5 circle: its position in the log, its ended URLs, and its pending commit."""

    __slots__ = ("ended", "epoch", "number", "pending", "sequence")

    def __init__(self, number: int) -> None:
        self.number = number
        self.epoch = 0
        self.sequence = 0
        self.pending: FrontierCommit | None = None
        self.ended: Counter[tuple[str, Outcome]] = Counter()


class PendingCommit:
    """One commit for each changed partition of a frontier."""

    def __init__(self, numbers: Iterable[int]) -> None:
        self.partitions = [Partition(number) for number in numbers]
        self._dirty: list[Partition] = []
        self._rows: list[Sequence[PackedRows]] = []
        """Rows of admitted links that are not in a pending commit yet, by page."""

    def partition(self, url_key: bytes) -> Partition:
        """The partition a fingerprint belongs to."""
        return self.partitions[partition_of(url_key, len(self.partitions))]

    def of(self, partition: Partition) -> FrontierCommit:
        """The pending commit of a partition, created when there is none."""
        commit = partition.pending
        if commit is None:
            commit = partition.pending = FrontierCommit(partition=partition.number, epoch=partition.epoch)
            self._dirty.append(partition)
        return commit

    def queued(self, partition: Partition) -> list[QueuedUrl]:
        """The queued URLs of the pending commit, to append to."""
        self.merge_rows()
        return self.of(partition).queued

    def add_rows(self, rows: Sequence[PackedRows]) -> None:
        """Log the admitted links of a page. Pages are merged once per turn: a page has links in most partitions."""
        self._rows.append(rows)

    def merge_rows(self) -> None:
        """Move the rows of `add_rows` to the pending commits. O(pages x partitions)."""
        if not self._rows:
            return
        pages, self._rows = self._rows, []
        merged: dict[int, tuple[list[int], list[bytes]]] = {}
        for page in pages:
            for number, count, data in page:
                counts, parts = merged.setdefault(number, ([], []))
                counts.append(count)
                parts.append(data)
        for number, (counts, parts) in merged.items():
            self.of(self.partitions[number]).queued.extend(packed_rows(b"".join(parts), sum(counts)))

    def commits(self) -> list[FrontierCommit]:
        """Return the pending commits, one per changed partition. Partition 0 comes first, because it holds the jobs."""
        self.merge_rows()
        commits = []
        if len(self._dirty) > 1:
            self._dirty.sort(key=lambda partition: partition.number)
        for partition in self._dirty:
            commit = partition.pending
            if commit is not None:
                partition.sequence += 1
                commit.sequence = partition.sequence
                partition.pending = None
                commits.append(commit)
        self._dirty.clear()
        return commits

    def drop_job(self, uid: str) -> None:
        """A job was deleted. Its changes are removed: the same commit may bring a new job of that name."""
        self.merge_rows()
        for partition in self.partitions:
            if partition.pending is not None:
                _without(partition.pending, uid)
            for counted in [key for key in partition.ended if key[0] == uid]:
                del partition.ended[counted]


def _without(commit: FrontierCommit, uid: str) -> None:
    commit.queued = [queued for queued in unpacked_rows(commit.queued) if queued.job != uid]
    commit.held = [held for held in commit.held if held.job != uid]
    commit.leased = [leased for leased in commit.leased if leased.job != uid]
    commit.ended = [ended for ended in commit.ended if ended.job != uid]
    commit.urls = [state for state in commit.urls if state.job != uid]
    commit.anchors = [anchor for anchor in commit.anchors if anchor.job != uid]
    commit.uses = [use for use in commit.uses if use.account not in own_accounts(uid)]
    commit.forgotten = [forgotten for forgotten in commit.forgotten if forgotten.job != uid]
    commit.quarantines = [quarantine for quarantine in commit.quarantines if quarantine.job != uid]
    commit.domains = [state for state in commit.domains if state.job != uid]
    for host in commit.hosts:
        host.uses = [use for use in host.uses if use.job != uid]
