"""The changes of a partition's turns, published in order after three gates.

1. Seeds for other partitions are at the broker. 2. The commit is in the log `frontier` and counts there (fencing.py).
3. This member may still emit for the partition. After the third gate, records and requests are published and inputs
acked. Many batches are in flight at once; a batch waits only to keep the order. A crash between two gates loses
nothing: the inputs are not acked, are delivered again, and are idempotent.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from nephila.kernel.bus.contract import Bus, Delivery, LogReader, Receipt
from nephila.kernel.messages import FrontierCommit, FrontierRecord, Seed
from nephila.kernel.runtime.failpoints import reach
from nephila.kernel.topics import FRONTIER, RECORDS, SEEDS, requests_topic
from nephila.scheduler.cluster.fencing import EpochFence
from nephila.scheduler.frontier.frontier import FrontierCounters
from nephila.scheduler.frontier.host_state import TurnOutput

REFUSED_SEEDS = 1000


class LogBus(Bus, LogReader, Protocol):
    """The bus that a partition needs: publish, and access to logs."""


@dataclass(slots=True)
class SchedulerCounters:
    """Counters of a program over all its partitions."""

    requests: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    refused_seeds: deque[tuple[str, str]] = field(default_factory=lambda: deque(maxlen=REFUSED_SEEDS))
    commits: int = 0
    blocked: int = 0
    """Publications held back because the partition may have been lost."""
    frontier: FrontierCounters = field(default_factory=FrontierCounters)


@dataclass(slots=True)
class Batch:
    """The changes of one turn."""

    commits: list[FrontierCommit]
    out: TurnOutput
    acks: list[Delivery]
    pending_receipts: int = 0
    """Seeds for other partitions that the broker has not confirmed."""
    receipt: Receipt | None = None
    offset: int = -1
    """An offset of the log at or before the first commit after this batch; -1 until the commit is in the log."""
    then: Callable[[int], None] | None = None
    """Called with the offset when everything before it has been published."""


class CommitPipeline:
    """The batches of one partition."""

    def __init__(
        self, partition: int, bus: LogBus, counts: SchedulerCounters, fence: EpochFence, on_blocked: Callable[[], None]
    ) -> None:
        """`on_blocked`: called when the third gate is closed; `advance` must then be called again."""
        self.epoch = 0
        self._fence = fence
        self._partition = partition
        self._bus = bus
        self._counts = counts
        self._on_blocked = on_blocked
        self._publishing: deque[Batch] = deque()
        self._committed: deque[Batch] = deque()
        self._advancing = False
        self.submitted = 0
        """Batches submitted."""
        self.completed = 0
        """Batches that passed all gates, or never will."""

    def __len__(self) -> int:
        """Batches in flight."""
        return len(self._publishing) + len(self._committed)

    def submit(self, batch: Batch, foreign: Iterable[tuple[int, Seed]] = ()) -> None:
        """Append a batch; then `advance`. `foreign`: seeds for other partitions."""
        receipts = [self._bus.publish(SEEDS, partition, seed) for partition, seed in foreign]
        batch.pending_receipts = len(receipts)
        self.submitted += 1
        self._publishing.append(batch)
        for receipt in receipts:
            receipt.add_done_callback(lambda: self._on_receipt(batch))

    def _on_receipt(self, batch: Batch) -> None:
        batch.pending_receipts -= 1
        if not batch.pending_receipts:
            self.advance()

    def advance(self) -> None:
        """Publish what may pass the gates."""
        if self._advancing:
            return
        self._advancing = True
        try:
            while self._publishing and not self._publishing[0].pending_receipts:
                self._write(self._publishing.popleft())
            while self._committed and self._committed[0].offset >= 0:
                if not self._bus.may_emit("scheduler"):
                    self._counts.blocked += 1
                    self._on_blocked()
                    return
                if self._fence.blocked:
                    return
                self._emit(self._committed.popleft())
        finally:
            self._advancing = False

    @property
    def blocked(self) -> bool:
        """A batch waits at the third gate."""
        return bool(self._committed) and self._committed[0].offset >= 0 and not self._fence.blocked

    def _write(self, batch: Batch) -> None:
        # A batch without a commit follows the one before it.
        batch.receipt = self._committed[-1].receipt if self._committed else None
        self._committed.append(batch)
        reach("frontier_commit_before")
        for commit in batch.commits:
            self._counts.commits += 1
            batch.receipt = self._bus.publish(FRONTIER, self._partition, FrontierRecord(None, commit))
        if batch.receipt is None:
            batch.offset = max(self._bus.last_offset(FRONTIER, self._partition), self.epoch)
        else:
            batch.receipt.add_done_callback(lambda: self._in_log(batch))

    def _in_log(self, batch: Batch) -> None:
        # Read now: later commits may be in the log when `advance` comes to this batch.
        batch.offset = self._bus.last_offset(FRONTIER, self._partition)
        self._fence.on_written(batch.offset)
        reach("frontier_commit_after")
        self.advance()

    def _emit(self, batch: Batch) -> None:
        publish = self._bus.publish
        for _, record in batch.out.records:
            publish(RECORDS, self._partition, record)
        for delivery in batch.acks:
            delivery.ack()
        self._counts.requests += len(batch.out.requests)
        for _, request in batch.out.requests:
            publish(requests_topic(request), self._partition, request)
        self.completed += 1
        if batch.then is not None:
            batch.then(batch.offset)

    def close(self) -> None:
        """Publish nothing more."""
        self._fence.close()
        self._publishing.clear()
        self._committed.clear()
        self.completed = self.submitted
