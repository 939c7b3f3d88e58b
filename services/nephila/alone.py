"""One scheduler at a time: until frontiers are handed over, all partitions belong to one member or nobody works.

A scheduler that was given only some of the partitions takes nothing of them and ends after a while: another one holds
the rest, and gets these back. The one that lost some hands out nothing until it has all again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from nephila.kernel.clock import Clock
from nephila.kernel.errors import UserError

PATIENCE_S = 15.0
"""How long the rest of the partitions may take to come: longer than a dead member's session."""


class Holding(Protocol):
    """A service that can be told to hand out nothing."""

    def hold(self, held: bool) -> None:
        """Hand out nothing, or go on."""


class Alone:
    """See the module; the Kafka bus tells it of partitions."""

    def __init__(self, service: Holding, partitions: int, clock: Clock, fatal: Callable[[BaseException], None]) -> None:
        self._service = service
        self._all = frozenset(range(partitions))
        self._held: frozenset[int] = frozenset()
        self._clock = clock
        self._fatal = fatal
        self._complete = asyncio.Event()
        self._was_complete = False

    async def gained(self, partitions: frozenset[int]) -> None:
        """Nothing of these is delivered before all are here."""
        self._held |= partitions
        if self._held == self._all:
            self._was_complete = True
            self._complete.set()
            self._service.hold(False)
            return
        patience = self._clock.call_at(self._clock.monotonic() + PATIENCE_S, self._give_up)
        try:
            await self._complete.wait()
        finally:
            patience.cancel()

    async def leaving(self, partitions: frozenset[int]) -> None:
        """Another scheduler has come."""
        self._drop(partitions)

    def lost(self, partitions: frozenset[int]) -> None:
        """They are another's already."""
        self._drop(partitions)

    def _drop(self, partitions: frozenset[int]) -> None:
        self._held -= partitions
        self._complete.clear()
        self._service.hold(True)

    def _give_up(self) -> None:
        if not self._complete.is_set() and not self._was_complete:
            missing = len(self._all - self._held)
            self._fatal(
                UserError(f"another scheduler holds {missing} of {len(self._all)} partitions; run one at a time")
            )
