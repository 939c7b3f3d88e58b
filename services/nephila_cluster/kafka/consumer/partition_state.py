"""One partition of one topic while this member owns it: its phase, its position, and what holds its next record up."""

from __future__ import annotations

from enum import Enum

from nephila_cluster.kafka.consumer.commit_metadata import HELD
from nephila_cluster.kafka.consumer.offsets import PartitionPosition


class Phase(Enum):
    """A partition at one member, from its assignment to its revocation."""

    OPENING = "opening"
    """Its start offset is looked up, and the service loads what it needs."""
    OPEN = "open"
    LEAVING = "leaving"
    """Another member will own it: nothing more is delivered, messages in handlers finish."""
    REVOKED = "revoked"
    """Another member owns it: messages that finish now change nothing."""


NEXT_PHASES: dict[Phase, tuple[Phase, ...]] = {
    Phase.OPENING: (Phase.OPEN, Phase.LEAVING, Phase.REVOKED),
    Phase.OPEN: (Phase.LEAVING, Phase.REVOKED),
    Phase.LEAVING: (Phase.REVOKED,),
    Phase.REVOKED: (),
}


class PartitionState:
    """One partition of one topic while this member owns it."""

    __slots__ = (
        "held_bytes",
        "metadata",
        "missing_objects",
        "objects",
        "pardons",
        "phase",
        "position",
        "stopped",
        "waits_at",
    )

    def __init__(self) -> None:
        self.position: PartitionPosition | None = None
        self.phase = Phase.OPENING
        self.metadata = HELD
        """Committed with the offset."""
        self.pardons = 0
        """Crashes to take back once its metadata is read (`Share.pardoned`)."""
        self.held_bytes = 0
        self.stopped = False
        """This program must not read the next record."""
        self.missing_objects: tuple[int, list[str]] | None = None
        """The record that waits for objects of the blob store, and their names."""
        self.waits_at = -1
        """Offset of the record with a message of a partition that is not served yet; -1: none waits."""
        self.objects: dict[str, bytes | None] = {}
        """Objects fetched for that record; None: the object is gone."""

    @property
    def is_held_up(self) -> bool:
        """Whether the next record cannot be taken at present."""
        return self.stopped or self.missing_objects is not None or self.waits_at >= 0

    @property
    def is_opened(self) -> bool:
        """Whether its records were read, and it is still owned."""
        return self.phase in (Phase.OPEN, Phase.LEAVING)

    def enter(self, phase: Phase) -> None:
        """Change the phase as far as `NEXT_PHASES` allows; else nothing happens."""
        if phase in NEXT_PHASES[self.phase]:
            self.phase = phase
