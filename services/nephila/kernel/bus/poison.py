"""When a message counts as the cause of crashes: it is probed, and only crashes while it is probed count. Pure.

Used for a URL in worker processes (programs/groups/crash_suspects.py) and for a record of members over Kafka
(kafka/consumer/). A kill from outside or a lack of memory must not make a message poison: therefore two crashes, and a
crash of a member without any message clears the suspicion.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

MAX_CRASHES = 2
"""Crashes while a message is probed, after which it is poison: the last of them while it is alone in its member."""


class Probe(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A probe holds the facts about one suspect."""

    solo_crashes: int = 0
    """Crashes of members while this message was probed."""
    in_hand: bool = False
    """The suspect has been delivered. A crash before that does not count against it."""
    control: bool = False
    """The member waits without any message before it delivers the suspect again."""

    @property
    def is_poison(self) -> bool:
        """The message must not be delivered any more."""
        return self.solo_crashes >= MAX_CRASHES

    @property
    def needs_control(self) -> bool:
        """The suspect crashed a member: the next one waits without a message first."""
        return 0 < self.solo_crashes < MAX_CRASHES

    def delivered(self: P) -> P:
        """The suspect is alone in a member."""
        return msgspec.structs.replace(self, in_hand=True, control=False)

    def waiting(self: P) -> P:
        """A member waits without a message."""
        return msgspec.structs.replace(self, in_hand=False, control=True)

    def ended(self: P) -> P:
        """The member has ended without a crash."""
        return msgspec.structs.replace(self, in_hand=False, control=False)

    def crashed(self: P) -> P:
        solo_crashes = 0 if self.control else self.solo_crashes + self.in_hand
        return msgspec.structs.replace(self, solo_crashes=solo_crashes, in_hand=False, control=False)


P = TypeVar("P", bound=Probe)
