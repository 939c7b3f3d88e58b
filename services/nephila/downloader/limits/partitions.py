"""Partitions of requests while they are this downloader's: what may be begun for them, and how they are let go.

A partition that leaves: what is not dialled goes back at once, what is dialled may end within `move_s` and then goes
back as well, so that nobody fetches for it when its next member begins. One that is lost is another's already: all is
dropped, and nothing is said. Invariant: after a request of an owner (epoch) nothing of an earlier one is taken.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from nephila.downloader.in_flight import Flight
from nephila.kernel.messages import FetchRequest
from nephila.kernel.runtime.clock import Clock

Mine = Callable[[Flight], bool]


class Shards:
    """See the module; it is the `RebalanceListener` of the group. `flights`: all that is in hand, in order of arrival."""

    def __init__(
        self,
        clock: Clock,
        move_s: float,
        flights: dict[Flight, None],
        give_back: Callable[[Flight], None],
        drop: Callable[[Flight], None],
    ) -> None:
        self._clock = clock
        self._move_s = move_s
        self._flights = flights
        self._give_back = give_back
        self._drop = drop
        self._draining = False
        self._away: frozenset[int] = frozenset()
        self._epochs: dict[int, int] = {}
        self._waiters: set[asyncio.Event] = set()
        self.stale = 0
        """Requests ignored: a later owner of their partition had been heard of."""

    def is_stale(self, partition: int, request: FetchRequest) -> bool:
        """Whether a request comes from an owner that another has followed; then it is ignored."""
        if request.epoch < self._epochs.get(partition, 0):
            self.stale += 1
            return True
        self._epochs[partition] = request.epoch
        return False

    def is_leaving(self, partition: int) -> bool:
        """Whether nothing may begin for a partition."""
        return self._draining or partition in self._away

    def ended(self) -> None:
        """A flight is no longer in hand."""
        for changed in self._waiters:
            changed.set()

    # ---- from outside

    async def drain(self, grace_s: float) -> None:
        """All of them leave: what is not dialled goes back now, the rest has `grace_s` seconds to end."""
        self._draining = True
        await self._let_go(lambda flight: True, grace_s)

    async def on_assigned(self, partitions: frozenset[int]) -> None:
        """See `RebalanceListener`."""
        self._away -= partitions

    async def on_revoking(self, partitions: frozenset[int]) -> None:
        """See `RebalanceListener`; returns within `move_s`, and gives back what is left when it is cancelled before."""
        self._away |= partitions
        await self._let_go(lambda flight: flight.delivery.partition in partitions, self._move_s)

    def on_lost(self, partitions: frozenset[int]) -> None:
        """See `RebalanceListener`."""
        self._away |= partitions
        for flight in self._last_first(lambda flight: flight.delivery.partition in partitions):
            self._drop(flight)

    def _last_first(self, mine: Mine) -> list[Flight]:
        # Nobody in line is left when a holder gives its slot.
        return [flight for flight in reversed(list(self._flights)) if mine(flight)]

    async def _let_go(self, mine: Mine, grace_s: float) -> None:
        for flight in self._last_first(mine):
            if not flight.dialled:
                self._give_back(flight)
        until = self._clock.monotonic() + grace_s
        changed = asyncio.Event()
        timer = self._clock.call_at(until, changed.set)
        self._waiters.add(changed)
        try:
            while any(map(mine, self._flights)) and self._clock.monotonic() < until:
                changed.clear()
                await changed.wait()
        finally:
            self._waiters.discard(changed)
            timer.cancel()
            for flight in self._last_first(mine):
                self._give_back(flight)
