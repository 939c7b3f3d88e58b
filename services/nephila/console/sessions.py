"""Who may use the console: sessions, one-time addresses, and a limit of tries. Pure; nothing is written to disk.

Invariants: a session ends `IDLE_S` after its last request and `LONGEST_S` after its login; at most `SESSIONS` are open,
and a further one ends the one that was idle longest; a one-time token opens one session; only digests of secrets are
kept. A restart ends all sessions.
"""

from __future__ import annotations

import secrets
from collections import deque
from dataclasses import dataclass, field
from typing import Final

from nephila.control.access.authority import digest
from nephila.control.access.caller import Caller
from nephila.control.access.roles import Role
from nephila.kernel.runtime.clock import Clock

IDLE_S: Final = 2 * 3600.0
LONGEST_S: Final = 12 * 3600.0
SESSIONS: Final = 1000
INVITATION_S: Final = 3600.0
"""A one-time address that was not opened is void after this."""
TRIES: Final = 10
"""Wrong tokens in `TRIES_S` after which an address has to wait; ten times as many for all addresses together."""
TRIES_S: Final = 60.0
ADDRESSES: Final = 1000
"""Addresses whose tries are counted."""
INVITED: Final = Caller("one-time address", Role.ADMIN)
"""The user who opens an address that a command printed."""


@dataclass(slots=True)
class Session:
    """One login."""

    caller: Caller
    csrf: str
    """The value that each form of the session carries."""
    by_proxy: bool
    """The proxy before this server said who it is, and says so with each request."""
    opened: float
    used: float


@dataclass(slots=True)
class _Tries:
    of: dict[str, deque[float]] = field(default_factory=dict)
    all: deque[float] = field(default_factory=deque)


class Sessions:
    """The sessions of one server. O(1), but for a login when all sessions are taken."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sessions: dict[bytes, Session] = {}
        self._invitations: dict[bytes, float] = {}
        self._tries = _Tries()

    def invite(self) -> str:
        """A one-time token."""
        token = secrets.token_urlsafe(24)
        self._invitations[digest(token)] = self._clock.monotonic() + INVITATION_S
        return token

    def redeem(self, token: str) -> str:
        """The id of a new session for a one-time token; empty for one that is wrong, used or too old."""
        until = self._invitations.pop(digest(token), 0.0)
        return self.open(INVITED) if until > self._clock.monotonic() else ""

    def find(self, session_id: str, *, used: bool = True) -> Session | None:
        """The open session of this id. `used`: a person used it now, not a page that loads itself again."""
        if not session_id:
            return None
        key, now = digest(session_id), self._clock.monotonic()
        session = self._sessions.get(key)
        if session is None:
            return None
        if now - session.used > IDLE_S or now - session.opened > LONGEST_S:
            del self._sessions[key]
            return None
        if used:
            session.used = now
        return session

    def close(self, session_id: str) -> None:
        """End a session."""
        self._sessions.pop(digest(session_id), None)

    def wait_s(self, address: str) -> float:
        """Seconds until an address may try a token; 0: now."""
        now = self._clock.monotonic()
        waits = [_wait_s(self._tries.all, TRIES * 10, now), _wait_s(self._tries.of.get(address, deque()), TRIES, now)]
        return max(waits)

    def failed(self, address: str) -> None:
        """A token was wrong."""
        now = self._clock.monotonic()
        if address not in self._tries.of and len(self._tries.of) >= ADDRESSES:
            del self._tries.of[next(iter(self._tries.of))]
        self._tries.of.setdefault(address, deque()).append(now)
        self._tries.all.append(now)

    def open(self, caller: Caller, *, by_proxy: bool = False) -> str:
        """The id of a new session."""
        now = self._clock.monotonic()
        if len(self._sessions) >= SESSIONS:
            del self._sessions[min(self._sessions, key=lambda key: self._sessions[key].used)]
        session_id = secrets.token_urlsafe(32)
        self._sessions[digest(session_id)] = Session(caller, secrets.token_urlsafe(24), by_proxy, now, now)
        return session_id


def _wait_s(tries: deque[float], most: int, now: float) -> float:
    while tries and tries[0] <= now - TRIES_S:
        tries.popleft()
    return tries[-most] + TRIES_S - now if len(tries) >= most else 0.0
