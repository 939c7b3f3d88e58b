"""Late address check: a fetch was leased before the address of its host was known, and is about to start there. Pure.

All downloader processes use the pace of the one scheduler. With a pace per process, the server would see their sum.
"""

from __future__ import annotations

from nephila.scheduler.frontier.frontier import Frontier, Key
from nephila.scheduler.frontier.host_state import OutstandingState


def check_late_address(frontier: Frontier, key: Key, attempt: int, address: str, now: float) -> bool:
    """Whether an attempt may start on an address now. If so, it counts there, and the host has that address from now
    on.

    If not, the downloader gives it back with the address, and the host enters the queue of the address. O(1).
    """
    waiting = frontier.partition(key[1]).outstanding.get(key)
    if waiting is None or waiting.state is not OutstandingState.LEASED or waiting.attempt != attempt:
        return False
    if waiting.address == address:
        return True
    addresses = frontier.addresses
    if addresses.room(address, now) != 0.0:
        return False
    if waiting.address:
        addresses.end(waiting.address, now)
    addresses.start(address, now)
    waiting.address = waiting.host.address = address
    return True
