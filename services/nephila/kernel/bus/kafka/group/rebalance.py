"""What a service of a group is told of its partitions: they come, leave in order, or are lost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Protocol

OnMemberCrash = Callable[[dict[int, int], float], Awaitable[None]]
"""Called for partitions of a leased topic whose last member did not let go of them, with the offsets before which all
was delivered to it or to others before, and the instant (seconds since 1970 UTC) at which none of those could emit any
more. It must not raise."""


SILENT_SHARE = 0.5
"""Part of a session after an opening at which messages of this member are told from those of the one before."""


async def report_crash(on_member_crash: OnMemberCrash, starts: dict[int, int], session_s: float) -> None:
    """After a session: an earlier process of our own name need not have been thrown out yet."""
    gone_at = time.time() + session_s * SILENT_SHARE
    await asyncio.sleep(session_s)
    await on_member_crash(starts, gone_at)


class RebalanceListener(Protocol):
    """What a service hears of its partitions. Topics of the group follow the partition numbers."""

    async def on_assigned(self, partitions: frozenset[int]) -> None:
        """These are ours; nothing of them is delivered before this returns."""

    async def on_revoking(self, partitions: frozenset[int]) -> None:
        """These go to another member: deliveries have stopped; finish, give back or abort, and ack. Cancelled when
        `drain_s` is over; what is unacked then comes again there. What waited of leased topics does not come again
        there: it is delivered once this has been called, to be given back."""

    def on_lost(self, partitions: frozenset[int]) -> None:
        """These are another member's already: emit nothing more for them."""


async def revoke(
    listener: RebalanceListener, partitions: frozenset[int], press: Callable[[frozenset[int]], None]
) -> None:
    """Tell a service that partitions leave, then deliver what has to be given back of them, and wait for it."""
    told = asyncio.ensure_future(listener.on_revoking(partitions))
    await asyncio.sleep(0)  # it knows by now that what follows is for giving back
    press(partitions)
    await told
