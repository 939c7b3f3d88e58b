"""A first contact: a fetch that was handed out before the address of its host was known, and is about to begin there.

Whoever fetches asks, where several fetch for one scheduler: each of them alone would keep a pace of its own. Pure.
"""

from __future__ import annotations

from nephila.scheduler.frontier.frontier import Frontier, Key
from nephila.scheduler.frontier.host_state import OutstandingState


def check_late_address(frontier: Frontier, key: Key, attempt: int, address: str, now: float) -> bool:
    """Whether an attempt may begin on an address now; it is counted there from then on, and its host lives there.

    False: it is to be given back with the address, so that its host gets in line. O(1).
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
