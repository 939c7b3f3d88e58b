"""The changes of a partition's turns, published in order after three gates.

1. Seeds for other partitions are at the broker. 2. The commit is in the log (`Log`). 3. The partition still belongs to
this program (`Ownership`). After the third gate, records and requests are published and inputs acked. Many batches are
in flight at once; a batch waits only to keep the order. A crash between two gates loses nothing: the inputs are not
acked, are delivered again, and are idempotent. With files all gates are open, and a batch passes them in its turn.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from nephila.kernel.bus.contract import Bus, Delivery, Receipt, settle
from nephila.kernel.messages import FrontierCommit, Seed
from nephila.kernel.runtime.failpoints import reach
from nephila.kernel.topics import RECORDS, SEEDS, requests_topic
from nephila.scheduler.frontier.frontier import FrontierCounters
from nephila.scheduler.frontier.host_state import TurnOutput
from nephila.scheduler.partition.ports import Log, Ownership, Standing

REFUSED_SEEDS = 1000


class SchedulerCounters(msgspec.Struct):
    """Counters of a program over all its partitions."""

    requests: int = 0
    errors: Counter[str] = msgspec.field(default_factory=Counter)
    refused_seeds: deque[tuple[str, str]] = msgspec.field(default_factory=lambda: deque(maxlen=REFUSED_SEEDS))
    commits: int = 0
    blocked: int = 0
    """Publications held back because the partition may have been lost."""
    frontier: FrontierCounters = msgspec.field(default_factory=FrontierCounters)


class Batch(msgspec.Struct):
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
    def __init__(
        self,
        bus: Bus,
        counts: SchedulerCounters,
        log: Log,
        ownership: Ownership,
        on_confirmed: Callable[[], None],
        on_blocked: Callable[[], None],
    ) -> None:
        """`on_confirmed`: called when the broker has confirmed a message: it calls `advance`. `on_blocked`: called when
        the group does not answer: `advance` must be called again."""
        self._bus = bus
        self._counts = counts
        self._log = log
        self._ownership = ownership
        self._on_confirmed = on_confirmed
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

    def submit(self, batch: Batch, foreign: Sequence[tuple[int, Seed]] = ()) -> None:
        """Append a batch, and its commits to the log if nothing is before them; then `advance`. `foreign`: seeds for
        other partitions."""
        self.submitted += 1
        self._publishing.append(batch)
        if foreign:
            receipts = [self._bus.publish(SEEDS, partition, seed) for partition, seed in foreign]
            batch.pending_receipts = len(receipts)
            for receipt in receipts:
                receipt.add_done_callback(lambda: self._on_receipt(batch))
        self._write()

    def _on_receipt(self, batch: Batch) -> None:
        batch.pending_receipts -= 1
        if not batch.pending_receipts:
            self._on_confirmed()

    def advance(self) -> None:
        """Publish what may pass the gates."""
        if self._advancing:
            return
        self._advancing = True
        try:
            if self._publishing:
                self._write()
            while self._committed and self._committed[0].offset >= 0:
                standing = self._ownership.standing
                if standing is not Standing.OWNED:
                    if standing is Standing.UNANSWERED:
                        self._counts.blocked += 1
                        self._on_blocked()
                    return
                self._emit(self._committed.popleft())
        finally:
            self._advancing = False

    @property
    def blocked(self) -> bool:
        """A batch waits at the third gate, for an answer of the group."""
        if not self._committed:
            return False
        return self._committed[0].offset >= 0 and self._ownership.standing is not Standing.CLAIMED

    def _write(self) -> None:
        """Append the commits of the batches whose seeds are at the broker, in order."""
        while self._publishing and not self._publishing[0].pending_receipts:
            batch = self._publishing.popleft()
            # A batch without a commit follows the one before it.
            before = self._committed[-1].receipt if self._committed else None
            self._counts.commits += len(batch.commits)
            batch.receipt = (self._log.append(batch.commits) if batch.commits else None) or before
            self._committed.append(batch)
            if batch.receipt is None:
                batch.offset = self._log.end
            else:
                batch.receipt.add_done_callback(partial(self._in_log, batch))

    def _in_log(self, batch: Batch) -> None:
        # Read now: later commits may be in the log when `advance` comes to this batch.
        batch.offset = self._log.end
        self._ownership.on_written(batch.offset)
        reach("frontier_commit_after")
        self._on_confirmed()

    def _emit(self, batch: Batch) -> None:
        publish = self._bus.publish
        for partition, record in batch.out.records:
            publish(RECORDS, partition, record)
        settle([*batch.acks])
        self._counts.requests += len(batch.out.requests)
        for partition, request in batch.out.requests:
            publish(requests_topic(request), partition, request)
        self.completed += 1
        if batch.then is not None:
            batch.then(batch.offset)

    def close(self) -> None:
        """Publish nothing more."""
        self._ownership.close()
        self._publishing.clear()
        self._committed.clear()
        self.completed = self.submitted
