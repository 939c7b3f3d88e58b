"""Metadata of a committed offset: is the partition held, and which message crashed its members? Pure.

Kafka stores a text with each committed offset. A living member writes `held`. A member that finds `held` takes the
partition over after a crash or a freeze, and one of the messages behind the offset may be the cause. The metadata
belongs to the partition, so the count continues on any member and any machine. Invariants: a crash counts only against
an offset that has not moved since; a message is poison only after `MAX_CRASHES` crashes of a member that processed
nothing else, and only if members that waited before it with no message survived. A crash of a member without a message
has another cause, and clears all suspicion at the offset.
"""

from __future__ import annotations

import msgspec

CRASHES_TO_ISOLATE = 2
"""Crashes in a row at one offset, after which the records behind it are probed one by one. The first crash is mostly
chance: a kill, or a failed machine."""
MAX_CRASHES = 2
"""Crashes while a message is probed alone, as for worker processes (workers/poison.py)."""


class CommitMetadata(msgspec.Struct, frozen=True, omit_defaults=True):
    """The metadata of one offset; the default is an offset that no member holds."""

    held: bool = False
    """A member holds the partition. The next member concludes from it that this one crashed."""
    crashes: int = 0
    """Crashes at this offset in a row."""
    offset: int = -1
    index: int = -1
    """The suspect: its record's offset, and its index in the record; -1: none."""
    solo_crashes: int = 0
    """Crashes of members while this message was probed alone."""
    in_hand: bool = False
    """The suspect has been delivered, and nothing else. A crash before that does not count against it."""
    control: bool = False
    """The member waits without any message before it delivers the suspect again."""

    @property
    def needs_isolation(self) -> bool:
        """The records behind the offset must be probed one by one."""
        return self.crashes >= CRASHES_TO_ISOLATE

    def solo_crashes_of(self, offset: int, index: int) -> int:
        """Crashes of members while this message was probed alone."""
        return self.solo_crashes if (offset, index) == (self.offset, self.index) else 0

    def opened(self) -> CommitMetadata:
        """The metadata with which the next member starts."""
        if not self.held:
            return msgspec.structs.replace(self, held=True)
        if self.control:
            return HELD
        solo_crashes = self.solo_crashes + self.in_hand
        return msgspec.structs.replace(self, crashes=self.crashes + 1, solo_crashes=solo_crashes, in_hand=False)

    def probing(self, offset: int, index: int) -> CommitMetadata:
        """To commit before a suspect is delivered."""
        return CommitMetadata(True, self.crashes, offset, index, self.solo_crashes_of(offset, index), in_hand=True)

    def waiting(self, offset: int, index: int) -> CommitMetadata:
        """To commit before the wait without a message."""
        return msgspec.structs.replace(self.probing(offset, index), in_hand=False, control=True)

    def survived(self) -> CommitMetadata:
        """To commit when a suspect has been processed and the next one waits, or when it is in hand for too long to be
        the cause of a crash."""
        return CommitMetadata(True, self.crashes)

    def released(self) -> CommitMetadata:
        """To commit when the member releases the partition without a crash."""
        return msgspec.structs.replace(self, held=False, in_hand=False, control=False)


HELD = CommitMetadata(held=True)
"""Committed with every offset that has moved."""


def parse_metadata(text: str | None) -> CommitMetadata:
    """The metadata of a committed offset; text of another program counts as none."""
    if not text:
        return CommitMetadata()
    try:
        return msgspec.json.decode(text, type=CommitMetadata)
    except (msgspec.DecodeError, UnicodeError):
        return CommitMetadata()


def encode_metadata(metadata: CommitMetadata) -> str:
    """The text to commit; far below a broker's default limit of 4,096 bytes."""
    return msgspec.json.encode(metadata).decode()
