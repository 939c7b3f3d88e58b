"""What a turn of a partition has changed, on its way out through three gates, in order.

1. what belongs to other partitions is with the broker; 2. the commit is in the log `frontier`, and counts there
(`fence.py`); 3. this member may still speak for the partition. Behind the third rows and requests are published and
inputs acked. Many steps are on their way at once, and none waits for another but to keep the order. A crash between any
two gates loses nothing: the inputs are not acked, come again, and are idempotent.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from nephila.kernel.bus.contract import Bus, Delivery, LogReader, Receipt
from nephila.kernel.messages import FrontierCommit, FrontierRecord, Seed
from nephila.kernel.runtime.failpoints import reach
from nephila.kernel.topics import FRONTIER, RECORDS, REQUESTS, SEEDS
from nephila.scheduler.cluster.fencing import Fence
from nephila.scheduler.frontier.host_state import TurnOutput

REFUSED_SEEDS = 1000


class Outside(Bus, LogReader, Protocol):
    """What a partition needs of its bus."""


@dataclass(slots=True)
class Counts:
    """What a program counts over all its partitions."""

    requests: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    refused_seeds: deque[tuple[str, str]] = field(default_factory=lambda: deque(maxlen=REFUSED_SEEDS))
    commits: int = 0
    blocked: int = 0
    """Times that something was not published because the partition may have been lost."""


@dataclass(slots=True)
class Step:
    """One turn on its way out."""

    commits: list[FrontierCommit]
    out: TurnOutput
    acks: list[Delivery]
    foreign: int = 0
    """Receipts of other partitions that are waited for."""
    receipt: Receipt | None = None
    offset: int = -1
    """A place in the log at or before the first commit after this one; -1 as long as it is not in the log."""
    then: Callable[[int], None] | None = None
    """Called with the offset once everything before is out."""


class Gates:
    """The steps of one partition."""

    def __init__(
        self, partition: int, bus: Outside, counts: Counts, fence: Fence, on_blocked: Callable[[], None]
    ) -> None:
        """`on_blocked`: called when something is held back at the third gate; `advance` has to be called again."""
        self.epoch = 0
        self._fence = fence
        self._partition = partition
        self._bus = bus
        self._counts = counts
        self._on_blocked = on_blocked
        self._sending: deque[Step] = deque()
        self._written: deque[Step] = deque()
        self._advancing = False
        self.sent = 0
        """Steps that were sent on their way."""
        self.out = 0
        """Those of them that have passed all gates, or never will."""

    def __len__(self) -> int:
        """Steps on their way."""
        return len(self._sending) + len(self._written)

    def send(self, step: Step, foreign: Iterable[tuple[int, Seed]] = ()) -> None:
        """Send a step on its way, behind all others; then `advance`."""
        receipts = [self._bus.publish(SEEDS, partition, seed) for partition, seed in foreign]
        step.foreign = len(receipts)
        self.sent += 1
        self._sending.append(step)
        for receipt in receipts:
            receipt.add_done_callback(lambda: self._sent_on(step))

    def _sent_on(self, step: Step) -> None:
        step.foreign -= 1
        if not step.foreign:
            self.advance()

    def advance(self) -> None:
        """Let through what may pass."""
        if self._advancing:
            return
        self._advancing = True
        try:
            while self._sending and not self._sending[0].foreign:
                self._write(self._sending.popleft())
            while self._written and self._written[0].offset >= 0:
                if not self._bus.may_emit("scheduler"):
                    self._counts.blocked += 1
                    self._on_blocked()
                    return
                if self._fence.shut:
                    return
                self._emit(self._written.popleft())
        finally:
            self._advancing = False

    @property
    def blocked(self) -> bool:
        """Something may not go out before it is known that the partition is still ours."""
        return bool(self._written) and self._written[0].offset >= 0 and not self._fence.shut

    def _write(self, step: Step) -> None:
        # Without a commit it goes behind the one before it, if that is still on its way.
        step.receipt = self._written[-1].receipt if self._written else None
        self._written.append(step)
        reach("frontier_commit_before")
        for commit in step.commits:
            self._counts.commits += 1
            step.receipt = self._bus.publish(FRONTIER, self._partition, FrontierRecord(None, commit))
        if step.receipt is None:
            step.offset = max(self._bus.last_offset(FRONTIER, self._partition), self.epoch)
        else:
            step.receipt.add_done_callback(lambda: self._in_log(step))

    def _in_log(self, step: Step) -> None:
        # At once: later commits may be in the log by the time that this step's turn comes.
        step.offset = self._bus.last_offset(FRONTIER, self._partition)
        self._fence.written(step.offset)
        reach("frontier_commit_after")
        self.advance()

    def _emit(self, step: Step) -> None:
        publish = self._bus.publish
        for _, record in step.out.records:
            publish(RECORDS, self._partition, record)
        for delivery in step.acks:
            delivery.ack()
        self._counts.requests += len(step.out.requests)
        for _, request in step.out.requests:
            publish(REQUESTS, self._partition, request)
        self.out += 1
        if step.then is not None:
            step.then(step.offset)

    def close(self) -> None:
        """Nothing goes out any more."""
        self._fence.close()
        self._sending.clear()
        self._written.clear()
        self.out = self.sent
