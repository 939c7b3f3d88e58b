"""The session of a member in its group, proved by answered heartbeats: does it still own its partitions, or does
another member use its name? Pure.

A broker that has just started answers all heartbeats until it has loaded its groups, including those of members that
it had expelled. After a silence as long as a session, therefore, the first answers prove nothing; a join does.

Every proof counts from the time at which its request was sent. A process without CPU may read the answer to a join when
the session that the join began has ended. Counted from the reading, the expulsion that follows looked like another
member with this name. Times are monotonic.
"""

from __future__ import annotations

import math

SESSION_SHARE = 0.8
"""Part of the session after which a member without an answered heartbeat must not emit."""
SETTLED_SHARE = 0.25
"""Part of the session for which answers must arrive after a silence before they prove the session."""
RECENT_SHARE = 0.5
"""Part of the session within which an expelled member got an answer, if another member uses its name."""


class MemberSession:
    """The session of one member. O(1)."""

    def __init__(self, session_s: float) -> None:
        self._session_s = session_s
        self._last = -math.inf
        self._steady_since = -math.inf
        """No silence as long as a session since then."""
        self._synced = -math.inf
        """Sending time of the last request for an assignment that was answered."""
        self._outdated = False
        """The broker knows the member and refuses its generation: nobody has taken its name."""
        self.fenced = False
        """The broker refuses the member because another one has joined under its static id."""

    def on_sync(self, sent: float) -> None:
        """A request for an assignment, sent at this time, was answered."""
        self._synced = sent

    def on_outdated(self) -> None:
        """The group has a newer generation, without this member."""
        self._outdated = True

    def on_fenced(self) -> None:
        """Another member has joined under the static id of this one."""
        self.fenced = True

    def on_join(self) -> None:
        """The assignment has arrived: the group knows this member since it asked for it."""
        self._last, self._steady_since = self._synced, -math.inf
        self._outdated = self.fenced = False

    def on_answer(self, sent: float) -> None:
        """A heartbeat sent at this time was answered."""
        if sent > self._last + self._session_s:
            self._steady_since = sent
        self._last = sent

    def may_emit(self, now: float) -> bool:
        """False once the broker may have assigned this member's partitions to others."""
        settled = now >= self._steady_since + SETTLED_SHARE * self._session_s
        return settled and now < self._last + SESSION_SHARE * self._session_s

    def steady(self, now: float) -> bool:
        """Answers arrived without interruption: if the group does not know this member, another one uses its name."""
        recent = now < self._last + RECENT_SHARE * self._session_s
        return recent and now >= self._steady_since + self._session_s and not self._outdated
