"""Partitions of requests assigned to this downloader: which fetches may start, and how a partition is released.

A partition is revoked: requests that are not dialled are given back at once. Dialled ones may end within `move_s` and
are given back after it, so that no fetch is in flight when the next member starts. A partition is lost: it belongs to
another member already, so its requests are dropped without an outcome. Invariant: after a request with the epoch of one
owner, no request of an earlier owner is accepted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from nephila.downloader.in_flight import InFlight
from nephila.kernel.messages import FetchRequest
from nephila.kernel.runtime.clock import Clock

Selector = Callable[[InFlight], bool]


class _Every(frozenset[int]):
    """All partitions, for good: the program ends."""

    def __contains__(self, partition: object) -> bool:
        return True

    def __sub__(self, other: object) -> _Every:
        return self

    def __or__(self, other: object) -> _Every:
        return self


_ALL: Final = _Every()


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
        self.revoked: frozenset[int] = frozenset()
        """Partitions for which no fetch may start."""
        self._epochs: dict[int, int] = {}
        self._waiters: set[asyncio.Event] = set()
        self.stale = 0
        """Requests ignored: a request of a later owner of their partition came before them."""

    def is_stale(self, partition: int, request: FetchRequest) -> bool:
        """Whether a request comes from an earlier owner of its partition; it is ignored then."""
        if request.epoch < self._epochs.get(partition, 0):
            self.stale += 1
            return True
        self._epochs[partition] = request.epoch
        return False

    def ended(self) -> None:
        for changed in self._waiters:
            changed.set()

    # ---- calls of the program and the consumer group

    async def drain(self, grace_s: float) -> None:
        """Release all partitions: requests not dialled are given back now, the rest after `grace_s` seconds."""
        self.revoked = _ALL
        await self._release(lambda fetch: True, grace_s)

    async def on_assigned(self, partitions: frozenset[int]) -> None:
        self.revoked -= partitions

    async def on_revoking(self, partitions: frozenset[int]) -> None:
        """The call returns within `move_s`; when cancelled, it gives back all remaining requests."""
        self.revoked |= partitions
        await self._release(lambda fetch: fetch.delivery.partition in partitions, self._move_s)

    def on_lost(self, partitions: frozenset[int]) -> None:
        self.revoked |= partitions
        for fetch in self._newest_first(lambda fetch: fetch.delivery.partition in partitions):
            self._drop(fetch)

    def _newest_first(self, selects: Selector) -> list[InFlight]:
        # Waiting requests end before the holders of the slots they wait for, so no slot passes to one of them.
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
