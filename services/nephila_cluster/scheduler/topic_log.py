"""The log of a partition as a topic: commits are records of `frontier`, and count once the broker has them."""

from __future__ import annotations

from nephila.kernel.bus.contract import LogBus, Receipt
from nephila.kernel.messages import FrontierCommit, FrontierRecord
from nephila.kernel.runtime.failpoints import reach
from nephila.kernel.topics import FRONTIER
from nephila.scheduler.jobs.queue_entry import unpacked_rows

from nephila_cluster.scheduler.changelog import RECORD_BYTES, commit_bytes, split_commit


class TopicLog:
    """Positions are offsets; `size` is approximate."""

    def __init__(self, partition: int, bus: LogBus) -> None:
        self.size = 0
        self._partition = partition
        self._bus = bus
        self.epoch = 0

    @property
    def end(self) -> int:
        """The claim is the first record of this owner."""
        return max(self._bus.last_offset(FRONTIER, self._partition), self.epoch)

    def replayed(self, commit: FrontierCommit) -> None:
        self.size += commit_bytes(commit)

    def begin(self, epoch: int) -> None:
        self.epoch = epoch

    def fit(self, commits: list[FrontierCommit]) -> list[FrontierCommit]:
        """Entries are split to the size of a record."""
        parts: list[FrontierCommit] = []
        for commit in commits:
            commit.queued = unpacked_rows(commit.queued)
            size = commit_bytes(commit)
            self.size += size
            parts += [commit] if size <= RECORD_BYTES else split_commit(commit)
        return parts

    def append(self, commits: list[FrontierCommit]) -> Receipt | None:
        """Returns the receipt of the last record."""
        reach("frontier_commit_before")
        receipt = None
        for commit in commits:
            receipt = self._bus.publish(FRONTIER, self._partition, FrontierRecord(None, commit))
        return receipt
