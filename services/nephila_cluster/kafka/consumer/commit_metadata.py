"""Metadata of a committed offset: is the partition held, and which message crashed its members? Pure.

Kafka stores a text with each committed offset. A living member writes `held`. A member that finds `held` takes the
partition over after a crash or a freeze, and one of the messages behind the offset may be the cause. A member that the
group had removed and that joins again has not crashed: the next owner takes the crash back. The metadata belongs to
the partition, so the count continues on any member and any machine. Invariants: a crash counts only against
an offset that has not moved since; a message there is judged as every suspect is (`bus/poison.py`). A crash of a member
without a message clears all suspicion at the offset.
"""

from __future__ import annotations

import msgspec
from nephila.kernel.bus.poison import Probe

CRASHES_TO_ISOLATE = 2
"""Crashes in a row at one offset, after which the records behind it are probed one by one. The first crash is mostly
chance: a kill, or a failed machine."""


class CommitMetadata(Probe, frozen=True, omit_defaults=True):
    """The metadata of one offset; the default is an offset that no member holds."""

    held: bool = False
    """A member holds the partition. The next member concludes from it that this one crashed."""
    crashes: int = 0
    """Crashes at this offset in a row."""
    offset: int = -1
    index: int = -1
    """The suspect: its record's offset, and its index in the record; -1: none."""

    @property
    def needs_isolation(self) -> bool:
        """The records behind the offset must be probed one by one."""
        return self.crashes >= CRASHES_TO_ISOLATE

    def of(self, offset: int, index: int) -> CommitMetadata:
        """The metadata with this message as the suspect; crashes of another one do not count."""
        if (offset, index) == (self.offset, self.index):
            return self
        return CommitMetadata(True, self.crashes, offset, index)

    def opened(self) -> CommitMetadata:
        """The metadata with which the next member starts."""
        if not self.held:
            return msgspec.structs.replace(self, held=True)
        if self.control:
            return HELD
        return msgspec.structs.replace(self.crashed(), crashes=self.crashes + 1)

    def pardoned(self, times: int = 1) -> CommitMetadata:
        """The metadata after so many crashes that were none: their members live."""
        return msgspec.structs.replace(
            self.ended(), crashes=max(self.crashes - times, 0), solo_crashes=max(self.solo_crashes - times, 0)
        )

    def probing(self, offset: int, index: int) -> CommitMetadata:
        """To commit before a suspect is delivered."""
        return self.of(offset, index).delivered()

    def survived(self) -> CommitMetadata:
        """To commit when a suspect has been processed and the next one waits, or when it is in hand for too long to be
        the cause of a crash."""
        return CommitMetadata(True, self.crashes)

    def released(self) -> CommitMetadata:
        """To commit when the member releases the partition without a crash."""
        return msgspec.structs.replace(self.ended(), held=False)


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
