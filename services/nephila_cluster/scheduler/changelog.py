"""The log of one partition on the topic `frontier`: ownership claims, and the commits that count.

A claim starts an epoch; the epoch's number is the offset of the claim. A commit counts only if its epoch is that of the
latest claim before it. Commits of an older epoch come from an owner that had lost the partition without knowing it, and
every reader ignores them. Invariant: the commits that count have consecutive sequence numbers. A gap is refused,
because a frontier with a hole silently loses URLs. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nephila.kernel.messages import FrontierBirth, FrontierClaim, FrontierCommit, FrontierRecord
from nephila.kernel.runtime.errors import UserError

RECORD_BYTES = 256 << 10
"""A commit above about this size is split: log records have a size limit."""
_FIELDS = (
    *("jobs", "uses", "anchors", "quarantines", "ended", "urls"),
    *("held", "domains", "forgotten", "queued", "hosts", "robots", "leased"),
)
"""Parts of a commit, in the order of replay."""
_TEXTS = ("url", "entry", "body", "packed", "sources")
_ITEM_BYTES = 100


class LogFilter:
    """Filters the log of a partition, from an offset on."""

    def __init__(self, partition: int, epoch: int = -1, sequence: int = 0) -> None:
        """`epoch`, `sequence`: those of the snapshot; without a snapshot the log must begin with a claim."""
        self.partition = partition
        self.sequence = sequence
        self.ignored = 0
        """Commits that did not count."""
        self._claim: FrontierClaim | None = None
        self._epochs = {epoch}
        self._begins = False
        """No commit of the latest claim has been read yet."""
        self.partitions = 0
        """Largest number of partitions of the system in a claim."""
        self.birth: FrontierBirth | None = None
        """The first record of a log that begins with a split."""

    def take(self, offset: int, record: FrontierRecord) -> FrontierCommit | None:
        """The commit of a record if it counts and is new. Raises `UserError` for a gap."""
        if record.birth is not None and self.birth is None:
            self.birth = record.birth
        if record.claim is not None:
            self.partitions = max(self.partitions, record.claim.partitions)
            # A claim that the producer sent twice, after a lost answer, is the same claim.
            if record.claim != self._claim:
                self._claim = record.claim
                self._epochs = set()
                self._begins = True
            self._epochs.add(offset)
        commit = record.commit
        if commit is None:
            return None
        if commit.epoch not in self._epochs:
            self.ignored += 1
            return None
        if commit.sequence <= self.sequence and not self._begins:
            return None  # in the snapshot, or sent twice
        self._begins = False
        if commit.sequence != self.sequence + 1:
            raise UserError(
                f"frontier/{self.partition} at {offset}: commit {commit.sequence} follows {self.sequence}: the log has "
                "a hole, or its snapshot is of another system; restore the blob store that belongs to this broker"
            )
        self.sequence = commit.sequence
        return commit


def commit_bytes(commit: FrontierCommit) -> int:
    """Approximate size of a commit in bytes. O(items)."""
    return sum(_item_bytes(item) for name in _FIELDS for item in getattr(commit, name))


def _item_bytes(item: Any) -> int:
    return _ITEM_BYTES + sum(len(getattr(item, name, "")) for name in _TEXTS)


def split_commit(commit: FrontierCommit, limit: int = RECORD_BYTES) -> Iterator[FrontierCommit]:
    """The commit as several commits with consecutive numbers, none much above the limit. Replaying them gives the same
    state. A crash between two pieces leaves the inputs unacked, so they are delivered again."""
    piece = FrontierCommit(commit.partition, commit.epoch, commit.sequence)
    size = 0
    for name in _FIELDS:
        for item in getattr(commit, name):
            if size > limit:
                yield piece
                piece = FrontierCommit(commit.partition, commit.epoch, piece.sequence + 1)
                size = 0
            getattr(piece, name).append(item)
            size += _item_bytes(item)
    yield piece
