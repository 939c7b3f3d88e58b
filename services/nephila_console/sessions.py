"""Sessions and one-time addresses decide who may use the console. Pure; nothing is written to disk.

Invariants: a session ends `IDLE_S` after its last request and `LONGEST_S` after its login; at most `SESSIONS` are open,
and a further one ends the one that was idle longest; a one-time token opens one session; only digests of secrets are
kept. A restart ends all sessions.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from nephila.kernel.runtime.clock import Clock
from nephila_control.access.caller import Caller, digest
from nephila_control.access.roles import Role

IDLE_S: Final = 2 * 3600.0
LONGEST_S: Final = 12 * 3600.0
SESSIONS: Final = 1000
INVITATION_S: Final = 3600.0
"""A one-time address that was not opened is void after this."""
Way = Literal["token", "oidc", "proxy", "invitation"]
"""How a session began. proxy: the proxy before this server said who it is, and says so with each request."""
INVITED: Final = Caller("one-time address", Role.ADMIN)
"""The user who opens an address that a command printed."""


@dataclass(slots=True)
class Session:
    caller: Caller
    csrf: str
    """Each form of the session carries this value."""
    by: Way
    token: bytes
    """Digest of the API token that opened the session; empty for other logins."""
    opened: float
    used: float


class Sessions:
    """O(1), except for a login when all sessions are taken."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sessions: dict[bytes, Session] = {}
        self._invitations: dict[bytes, float] = {}

    def invite(self) -> str:
        """Returns a one-time token."""
        token = secrets.token_urlsafe(24)
        self._invitations[digest(token)] = self._clock.monotonic() + INVITATION_S
        return token

    def redeem(self, token: str) -> str:
        """Returns the id of a new session; empty for a one-time token that is wrong, used or too old."""
        until = self._invitations.pop(digest(token), 0.0)
        return self.open(INVITED, "invitation") if until > self._clock.monotonic() else ""

    def find(self, session_id: str, *, used: bool = True) -> Session | None:
        """Returns None without an open session of this id. `used` is false for a page that reloads itself."""
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
        self._sessions.pop(digest(session_id), None)

    def end_unless(self, stays: Callable[[Session], bool]) -> None:
        self._sessions = {key: session for key, session in self._sessions.items() if stays(session)}

    def open(self, caller: Caller, by: Way, token: str = "") -> str:
        """Returns the id of a new session. `token` is the API token that opened it."""
        now = self._clock.monotonic()
        if len(self._sessions) >= SESSIONS:
            del self._sessions[min(self._sessions, key=lambda key: self._sessions[key].used)]
        session_id = secrets.token_urlsafe(32)
        self._sessions[digest(session_id)] = Session(
            caller, secrets.token_urlsafe(24), by, digest(token) if token else b"", now, now
        )
        return session_id
