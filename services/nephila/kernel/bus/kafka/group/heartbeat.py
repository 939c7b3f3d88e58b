"""What answers to heartbeats prove of a member: its partitions are its own, or another one has its name. Pure.

A broker that has just been started answers all heartbeats until it has read its groups, those of members it had thrown
out as well. So after a silence as long as a session the first answers prove nothing; a join does. Instants are
monotonic.
"""

from __future__ import annotations

import math

LEASE_SHARE = 0.8
"""Part of the session after which a member that got no heartbeat through must not emit."""
SETTLED_SHARE = 0.25
"""Part of the session for which answers have to come again after a silence before they prove that it may."""
RECENT_SHARE = 0.5
"""Part of the session within which a member was heard that is thrown out for another of its name."""


class HeartbeatLease:
    """Of one member. O(1)."""

    def __init__(self, session_s: float) -> None:
        self._session_s = session_s
        self._last = -math.inf
        self._steady_since = -math.inf
        """No silence as long as a session since then."""

    def on_join(self, now: float) -> None:
        """The group has answered a join: whoever is in it is known."""
        self._last, self._steady_since = now, -math.inf

    def on_answer(self, sent: float) -> None:
        """A heartbeat that was sent then was answered."""
        if sent > self._last + self._session_s:
            self._steady_since = sent
        self._last = sent

    def may_emit(self, now: float) -> bool:
        """False once the broker may have given this member's partitions to others."""
        settled = now >= self._steady_since + SETTLED_SHARE * self._session_s
        return settled and now < self._last + LEASE_SHARE * self._session_s

    def steady(self, now: float) -> bool:
        """Heard all the time: if the group does not know this member, only another of its name can be the cause."""
        recent = now < self._last + RECENT_SHARE * self._session_s
        return recent and now >= self._steady_since + self._session_s
