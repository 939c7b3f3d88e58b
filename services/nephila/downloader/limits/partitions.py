"""Partitions of requests while they are this downloader's: what may be begun for them, and how they are let go.

A partition that leaves: what is not dialled goes back at once, what is dialled may end within `move_s` and then goes
back as well, so that nobody fetches for it when its next member begins. One that is lost is another's already: all is
dropped, and nothing is said. Invariant: after a request of an owner (epoch) nothing of an earlier one is taken.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from nephila.downloader.in_flight import InFlight
from nephila.kernel.messages import FetchRequest
from nephila.kernel.runtime.clock import Clock

Selector = Callable[[InFlight], bool]


class Partitions:
    """The `RebalanceListener` of the downloaders' group. `fetches`: all fetches in flight, in order of arrival."""

    def __init__(
        self,
        clock: Clock,
        move_s: float,
        fetches: dict[InFlight, None],
        give_back: Callable[[InFlight], None],
        drop: Callable[[InFlight], None],
    ) -> None:
        self._clock = clock
        self._move_s = move_s
        self._fetches = fetches
        self._give_back = give_back
        self._drop = drop
        self._draining = False
        self._revoked: frozenset[int] = frozenset()
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

    def is_revoked(self, partition: int) -> bool:
        """Whether nothing may begin for a partition."""
        return self._draining or partition in self._revoked

    def ended(self) -> None:
        """A flight is no longer in hand."""
        for changed in self._waiters:
            changed.set()

    # ---- from outside

    async def drain(self, grace_s: float) -> None:
        """All of them leave: what is not dialled goes back now, the rest has `grace_s` seconds to end."""
        self._draining = True
        await self._release(lambda fetch: True, grace_s)

    async def on_assigned(self, partitions: frozenset[int]) -> None:
        """See `RebalanceListener`."""
        self._revoked -= partitions

    async def on_revoking(self, partitions: frozenset[int]) -> None:
        """See `RebalanceListener`; returns within `move_s`, and gives back what is left when it is cancelled before."""
        self._revoked |= partitions
        await self._release(lambda fetch: fetch.delivery.partition in partitions, self._move_s)

    def on_lost(self, partitions: frozenset[int]) -> None:
        """See `RebalanceListener`."""
        self._revoked |= partitions
        for fetch in self._newest_first(lambda fetch: fetch.delivery.partition in partitions):
            self._drop(fetch)

    def _newest_first(self, selects: Selector) -> list[InFlight]:
        # Nobody in line is left when a holder gives its slot.
        return [fetch for fetch in reversed(list(self._fetches)) if selects(fetch)]

    async def _release(self, selects: Selector, grace_s: float) -> None:
        for fetch in self._newest_first(selects):
            if not fetch.started:
                self._give_back(fetch)
        until = self._clock.monotonic() + grace_s
        changed = asyncio.Event()
        timer = self._clock.call_at(until, changed.set)
        self._waiters.add(changed)
        try:
            while any(map(selects, self._fetches)) and self._clock.monotonic() < until:
                changed.clear()
                await changed.wait()
        finally:
            self._waiters.discard(changed)
            timer.cancel()
            for fetch in self._newest_first(selects):
                self._give_back(fetch)
