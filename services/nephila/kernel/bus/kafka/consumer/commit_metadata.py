"""Metadata of a committed offset: is the partition held, and which message crashed its members? Pure.

Kafka stores a text beside each committed offset. A living member writes `held`. A member that finds `held` takes the
partition over after a crash or a freeze, and one of the messages behind the offset may be the cause. The metadata
belongs to the partition, so the count continues on any member and any machine. Invariants: a crash counts only against
an offset that has not moved since; a message is poison only after `MAX_CRASHES` crashes of a member that processed
nothing else.
"""

from __future__ import annotations

import msgspec

CRASHES_TO_ISOLATE = 2
"""Ends at one position, one after the other, after which what lies behind it is tried one message at a time. The first
is mostly chance: somebody killed the process, a machine failed."""
MAX_CRASHES = 2
"""Ends alone, as in one program with workers (suspects.py)."""


class CommitMetadata(msgspec.Struct, frozen=True, omit_defaults=True):
    """See the module; the default is a position that nobody holds."""

    held: bool = False
    """A member is at work here; found by the next one, it was not ended as it should be."""
    crashes: int = 0
    """Ends at this position in a row."""
    offset: int = -1
    index: int = -1
    """The message that is being tried alone: its record and its place in it; -1: none."""
    solo_crashes: int = 0
    """Members that ended while this message was tried alone."""

    @property
    def needs_isolation(self) -> bool:
        """What lies behind the position has to be tried one by one."""
        return self.crashes >= CRASHES_TO_ISOLATE

    def solo_crashes_of(self, offset: int, index: int) -> int:
        """How many members a message has ended alone."""
        return self.solo_crashes if (offset, index) == (self.offset, self.index) else 0

    def opened(self) -> CommitMetadata:
        """What the next member begins with."""
        if not self.held:
            return msgspec.structs.replace(self, held=True)
        solo_crashes = self.solo_crashes + 1 if self.index >= 0 else 0
        return msgspec.structs.replace(self, crashes=self.crashes + 1, solo_crashes=solo_crashes)

    def probing(self, offset: int, index: int) -> CommitMetadata:
        """To be written before a suspect is delivered."""
        return CommitMetadata(True, self.crashes, offset, index, self.solo_crashes_of(offset, index))

    def survived(self) -> CommitMetadata:
        """To be written when a suspect has come through and what lies behind it waits: nothing is tried here now."""
        return CommitMetadata(True, self.crashes)

    def released(self) -> CommitMetadata:
        """To be written when the member lets go: nobody has crashed."""
        return msgspec.structs.replace(self, held=False)


HELD = CommitMetadata(held=True)
"""With every position that has moved."""


def parse_metadata(text: str | None) -> CommitMetadata:
    """The metadata of a committed position; what cannot be read, as that of another program, says nothing."""
    if not text:
        return CommitMetadata()
    try:
        return msgspec.json.decode(text, type=CommitMetadata)
    except (msgspec.DecodeError, UnicodeError):
        return CommitMetadata()


def encode_metadata(metadata: CommitMetadata) -> str:
    """The text of a metadata; far below the 4,096 bytes that a broker takes by default."""
    return msgspec.json.encode(metadata).decode()
