"""Epoch fencing: is the log of a partition still this owner's, or has another member claimed it since?

A claim can come late: a member was assigned the partition, froze, and does not know that the partition has moved on.
From then on the commits of the current owner would be ignored by every reader. The offsets of an owner's records are
consecutive. A gap means that another member wrote. The records in the gap are read, and nothing is published
meanwhile. A commit in the gap is from an earlier owner and is ignored. A claim in the gap means that two members
consider themselves the owner: the group notifies the wrong one within REBALANCE_NOTICE_S. A member that still owns the
partition after that time stops its work on it and claims it again.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from nephila.kernel.bus.contract import LogReader
from nephila.kernel.runtime.clock import Clock, Timer
from nephila.kernel.runtime.errors import TemporaryError, UserError
from nephila.kernel.topics import FRONTIER
from nephila.scheduler.partition.ports import Standing

log = logging.getLogger(__name__)

REBALANCE_NOTICE_S = 30.0
"""Longer than a group takes to continue without a member and to notify it."""
RETRY_S = 1.0


class EpochFence:
    """The `Ownership` of a partition over a broker. `on_open`: called when it opens; `on_claimed`: called when this
    owner must claim again."""

    def __init__(
        self,
        partition: int,
        bus: LogReader,
        clock: Clock,
        on_open: Callable[[], None],
        on_claimed: Callable[[UserError], None],
    ) -> None:
        self._blocked = False
        """Nothing may be published."""
        self._partition = partition
        self._bus = bus
        self._clock = clock
        self._on_open = on_open
        self._on_claimed = on_claimed
        self._epoch = -1
        self._next = 0
        """Offset of this owner's next record if no other member writes."""
        self._unknown: deque[tuple[int, int]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self._timer: Timer | None = None

    @property
    def standing(self) -> Standing:
        if not self._bus.may_emit("scheduler"):
            return Standing.UNANSWERED
        return Standing.CLAIMED if self._blocked else Standing.OWNED

    def begin(self, epoch: int) -> None:
        """The partition was claimed at this offset."""
        self._epoch, self._next = epoch, epoch + 1

    def on_written(self, offset: int) -> None:
        """The answer can arrive after the partition was lost."""
        if offset > self._next and not self._closed:
            self._unknown.append((self._next, offset))
            self._blocked = True
            if self._task is None:
                self._task = asyncio.ensure_future(self._check_gaps())
        self._next = max(self._next, offset + 1)

    def close(self) -> None:
        self._closed = True
        if self._task is not None:
            self._task.cancel()
        if self._timer is not None:
            self._timer.cancel()

    async def _check_gaps(self) -> None:
        while self._unknown:
            try:
                claim = await self._claim(*self._unknown[0])
            except TemporaryError as error:
                log.info("partition %d: its log cannot be read, nothing is published: %s", self._partition, error)
                await asyncio.sleep(RETRY_S)
                continue
            except UserError as error:
                self._on_claimed(error)
                return
            if claim:
                self._wait(claim)
                return
            self._unknown.popleft()
        self._task = None
        self._blocked = False
        self._on_open()

    async def _claim(self, start: int, end: int) -> str:
        """The first claim in a range of the log, in words; empty when there is none."""
        async for _, records in self._bus.read(FRONTIER, {self._partition: (start, end)}):
            for offset, record in records:
                if record.claim is not None:
                    return f"{record.claim.member!r} at {offset}"
        return ""

    def _wait(self, claim: str) -> None:
        claim_text = (
            f"frontier/{self._partition} was claimed by {claim}, after the claim of this scheduler at {self._epoch}"
        )
        log.warning("%s: nothing is published until the group has named the owner", claim_text)
        self._end_later(UserError(f"{claim_text}: this scheduler ends, to claim it again; nothing is lost, restart it"))

    def _end_later(self, error: UserError) -> None:
        self._timer = self._clock.call_at(self._clock.monotonic() + REBALANCE_NOTICE_S, lambda: self._end(error))

    def _end(self, error: UserError) -> None:
        # While the group does not answer, this member may be the one that has lost the partition.
        if self._bus.may_emit("scheduler"):
            self._on_claimed(error)
        else:
            self._end_later(error)
