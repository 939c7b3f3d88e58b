"""Whether the log of a partition is still this owner's: nobody else has claimed it since.

A claim may be late: its writer had been given the partition, stood still, and does not know yet that it was given on.
From then on the commits of the living owner would count for nobody, and it would not hear of it. Its records follow
each other in the log; where one of them does not follow the one before, what lies between is read, and nothing passes
meanwhile. Another's commit is of who was here before, and counts for nobody. Another's claim means that one of the two
is wrong: the group tells whoever has lost the partition within REBALANCE_NOTICE_S; who has it still then begins anew.
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

log = logging.getLogger(__name__)

REBALANCE_NOTICE_S = 30.0
"""Longer than a group takes to go on without a member, and to tell it so."""
RETRY_S = 1.0


class EpochFence:
    """Of one partition. `on_open`: called when it opens; `on_claimed`: when this owner has to begin anew."""

    def __init__(
        self,
        partition: int,
        bus: LogReader,
        clock: Clock,
        on_open: Callable[[], None],
        on_claimed: Callable[[UserError], None],
    ) -> None:
        self.blocked = False
        """Nothing may pass."""
        self._partition = partition
        self._bus = bus
        self._clock = clock
        self._on_open = on_open
        self._on_claimed = on_claimed
        self._epoch = -1
        self._next = 0
        """Offset of this owner's next record if nobody else writes."""
        self._unknown: deque[tuple[int, int]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self._timer: Timer | None = None

    def start(self, epoch: int) -> None:
        """The partition was claimed there."""
        self._epoch, self._next = epoch, epoch + 1

    def on_written(self, offset: int) -> None:
        """A record of this owner lies there; its answer may come when the partition is another's already."""
        if offset > self._next and not self._closed:
            self._unknown.append((self._next, offset))
            self.blocked = True
            if self._task is None:
                self._task = asyncio.ensure_future(self._check_gaps())
        self._next = max(self._next, offset + 1)

    def close(self) -> None:
        """The partition is another's, or nobody's."""
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
                log.info("partition %d waits to see who writes its log: %s", self._partition, error)
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
        self.blocked = False
        self._on_open()

    async def _claim(self, start: int, end: int) -> str:
        """The first claim in a part of the log, in words."""
        async for _, records in self._bus.read(FRONTIER, {self._partition: (start, end)}):
            for offset, record in records:
                if record.claim is not None:
                    return f"{record.claim.member!r} at {offset}"
        return ""

    def _wait(self, claim: str) -> None:
        what = f"frontier/{self._partition} was claimed by {claim}, and is here since {self._epoch}"
        log.warning("%s: nothing goes out until the group has told who has it", what)
        self._end_later(UserError(f"{what}: ending, to claim it anew; nothing is lost, start this scheduler again"))

    def _end_later(self, error: UserError) -> None:
        self._timer = self._clock.call_at(self._clock.monotonic() + REBALANCE_NOTICE_S, lambda: self._end(error))

    def _end(self, error: UserError) -> None:
        # While the group does not answer, it may still be this one that has lost the partition.
        if self._bus.may_emit("scheduler"):
            self._on_claimed(error)
        else:
            self._end_later(error)
