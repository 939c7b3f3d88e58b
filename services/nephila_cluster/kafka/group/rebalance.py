"""Callbacks of a service about its partitions: assigned, revoked in order, or lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.waits import sleep

OnMemberCrash = Callable[[dict[int, int], float], Awaitable[None]]
"""Called for partitions of a leased topic whose last member did not release them. Arguments: the offset of each
partition below which everything was delivered, and a time (seconds since 1970 UTC) after which no earlier owner could
emit. It must not raise."""


SILENT_SHARE = 0.5
"""Part of a session after the opening at which no earlier owner can emit any more."""


async def report_crash(on_member_crash: OnMemberCrash, starts: dict[int, int], session_s: float, clock: Clock) -> None:
    """Call back after a session: an earlier process with our own name may not have been expelled before."""
    gone_at = clock.now() + session_s * SILENT_SHARE
    await sleep(clock, session_s)
    await on_member_crash(starts, gone_at)


class RebalanceListener(Protocol):
    """A service that follows its partitions. All topics of a group share the partition numbers. Where its topics have
    lanes, it gets the partitions of the system in its lanes."""

    async def on_assigned(self, partitions: frozenset[int]) -> None:
        """This member owns these partitions; nothing of them is delivered before this returns."""

    async def on_revoking(self, partitions: frozenset[int]) -> None:
        """These partitions go to another member. Deliveries have stopped: finish, return or abort the work, and ack.
        Cancelled after `drain_s`; unacked messages are delivered to the next member. Waiting messages of leased topics
        are not delivered there; they are delivered here after this call, to be returned."""

    def on_lost(self, partitions: frozenset[int]) -> None:
        """Another member owns these partitions already: emit nothing more for them."""


class Deliveries(Protocol):
    """The records of a group at this member."""

    def force_deliver(self, lanes: frozenset[int]) -> None:
        """Deliver messages that the service has to return, without regard to credit."""

    async def idle(self, lanes: frozenset[int]) -> None:
        """Return when no message of these lanes is in a handler."""


async def finish(
    listener: RebalanceListener | None,
    deliveries: Deliveries,
    lanes: frozenset[int],
    partitions: frozenset[int],
    limit_s: float,
) -> bool:
    """Notify a service of the revoked partitions of these lanes, deliver the messages that it has to return, and wait
    for its work; False when it takes longer than `limit_s`."""
    try:
        async with asyncio.timeout(limit_s):
            if listener is not None and partitions:
                revoking = asyncio.ensure_future(listener.on_revoking(partitions))
                await asyncio.sleep(0)  # the service has started to return messages
                deliveries.force_deliver(lanes)
                await revoking
            await deliveries.idle(lanes)
    except TimeoutError:
        return False
    return True
