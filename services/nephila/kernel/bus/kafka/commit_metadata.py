"""What is written beside a committed position: whether its member ended as it should, and what it died of. Pure.

A position that is held by a living member says so. Who opens it and finds it held has come after a crash (or a freeze):
what lay behind the position was in hand then, and one of it may be what ends members. The note travels with the
partition, so it does not matter which member comes next, on which machine. Invariants: a crash is counted only against
a position that has not moved since; a message is found guilty only after `GUILTY` ends of a member that had nothing
else in its hands.
"""

from __future__ import annotations

import msgspec

CRASHES = 2
"""Ends at one position, one after the other, after which what lies behind it is tried one message at a time. The first
is mostly chance: somebody killed the process, a machine failed."""
GUILTY = 2
"""Ends alone, as in one program with workers (suspects.py)."""


class Note(msgspec.Struct, frozen=True, omit_defaults=True):
    """See the module; the default is a position that nobody holds."""

    held: bool = False
    """A member is at work here; found by the next one, it was not ended as it should be."""
    crashes: int = 0
    """Ends at this position in a row."""
    offset: int = -1
    index: int = -1
    """The message that is being tried alone: its record and its place in it; -1: none."""
    deaths: int = 0
    """Members that ended while this message was tried alone."""

    @property
    def suspicious(self) -> bool:
        """What lies behind the position has to be tried one by one."""
        return self.crashes >= CRASHES

    def deaths_of(self, offset: int, index: int) -> int:
        """How many members a message has ended alone."""
        return self.deaths if (offset, index) == (self.offset, self.index) else 0

    def opened(self) -> Note:
        """What the next member begins with."""
        if not self.held:
            return msgspec.structs.replace(self, held=True)
        deaths = self.deaths + 1 if self.index >= 0 else 0
        return msgspec.structs.replace(self, crashes=self.crashes + 1, deaths=deaths)

    def trying(self, offset: int, index: int) -> Note:
        """To be written before a suspect is delivered."""
        return Note(True, self.crashes, offset, index, self.deaths_of(offset, index))

    def through(self) -> Note:
        """To be written when a suspect has come through and what lies behind it waits: nothing is tried here now."""
        return Note(True, self.crashes)

    def left(self) -> Note:
        """To be written when the member lets go: nobody has crashed."""
        return msgspec.structs.replace(self, held=False)


AT_WORK = Note(held=True)
"""With every position that has moved."""


def read_note(text: str | None) -> Note:
    """The note of a committed position; what cannot be read, as that of another program, says nothing."""
    if not text:
        return Note()
    try:
        return msgspec.json.decode(text, type=Note)
    except (msgspec.DecodeError, UnicodeError):
        return Note()


def written(note: Note) -> str:
    """The text of a note; far below the 4,096 bytes that a broker takes by default."""
    return msgspec.json.encode(note).decode()
