"""The states of a partition at one owner, and which follows which."""

from __future__ import annotations

from enum import Enum


class OwnerState(Enum):
    """The life of a partition at one owner. Only a serving partition dispatches requests."""

    LOADING = "loading"
    ANNOUNCING = "announcing"
    """The other schedulers do not know yet that it is here, and what it has in flight."""
    SERVING = "serving"
    HELD = "held"
    """Nothing is dispatched while a person's change comes in."""
    DRAINING = "draining"
    LOST = "lost"
    """It belongs to another owner, or its program ends."""


NEXT_STATES: dict[OwnerState, tuple[OwnerState, ...]] = {
    OwnerState.LOADING: (
        *(OwnerState.ANNOUNCING, OwnerState.SERVING, OwnerState.HELD),
        *(OwnerState.DRAINING, OwnerState.LOST),
    ),
    OwnerState.ANNOUNCING: (OwnerState.SERVING, OwnerState.DRAINING, OwnerState.LOST),
    OwnerState.SERVING: (OwnerState.HELD, OwnerState.DRAINING, OwnerState.LOST),
    OwnerState.HELD: (OwnerState.SERVING, OwnerState.DRAINING, OwnerState.LOST),
    # The program drains, and then the bus revokes the partition.
    OwnerState.DRAINING: (OwnerState.DRAINING, OwnerState.LOST),
    OwnerState.LOST: (),
}
SNAPSHOTS = frozenset({OwnerState.SERVING, OwnerState.HELD})
"""States in which snapshots are taken: before them the log may still be read, after them the next owner takes one."""
