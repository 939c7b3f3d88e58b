"""Sessions and one-time addresses decide who may use the console.

Invariants: a session ends `IDLE_S` after its last request and `LONGEST_S` after its login; at most `SESSIONS` are open,
and a further one ends the one that was idle longest; a one-time token opens one session; only digests of secrets are
kept. With a file sessions outlive the server; one-time tokens do not.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, get_args

from nephila.kernel.runtime.clock import Clock
from nephila_control.access.caller import Caller, digest
from nephila_control.access.roles import Role

from nephila_console.session_file import SessionFile, StoredSession

IDLE_S: Final = 2 * 3600.0
LONGEST_S: Final = 12 * 3600.0
SESSIONS: Final = 1000
INVITATION_S: Final = 3600.0
"""A one-time address that was not opened is void after this."""
WRITTEN_S: Final = 60.0
"""The use of a session is written after this time at the earliest."""
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
    proof: bytes
    """Digest of what opened the session and has to be valid still: the API token, or the settings of the OIDC provider;
    empty for other logins."""
    opened: float
    used: float
    """Instants in seconds since 1970 UTC."""

    def is_open(self, now: float) -> bool:
        """A clock that was set back ends the sessions of the time after."""
        return 0 <= now - self.opened <= LONGEST_S and 0 <= now - self.used <= IDLE_S


class Sessions:
    """O(1), except for a login when all sessions are taken, and for the file."""

    def __init__(self, clock: Clock, file: SessionFile | None = None) -> None:
        """Reads the file of the server before. Blocks."""
        self._clock = clock
        self._file = file
        self._sessions = {key: _session(stored) for key, stored in _valid(file.read() if file is not None else {})}
        self._invitations: dict[bytes, float] = {}
        self._write_at = 0.0

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
        key, now = digest(session_id), self._clock.now()
        session = self._sessions.get(key)
        if session is None:
            return None
        if not session.is_open(now):
            del self._sessions[key]
            return None
        if used:
            session.used = now
            if now >= self._write_at:
                self._write()
        return session

    def close(self, session_id: str) -> None:
        if self._sessions.pop(digest(session_id), None) is not None:
            self._write()

    def end_unless(self, stays: Callable[[Session], bool]) -> None:
        ended = [key for key, session in self._sessions.items() if not stays(session)]
        for key in ended:
            del self._sessions[key]
        if ended:
            self._write()

    def open(self, caller: Caller, by: Way, proof: bytes = b"") -> str:
        """Returns the id of a new session."""
        now = self._clock.now()
        if len(self._sessions) >= SESSIONS:
            del self._sessions[min(self._sessions, key=lambda key: self._sessions[key].used)]
        session_id = secrets.token_urlsafe(32)
        self._sessions[digest(session_id)] = Session(caller, secrets.token_urlsafe(24), by, proof, now, now)
        self._write()
        return session_id

    def _write(self) -> None:
        if self._file is not None:
            now = self._clock.now()
            self._write_at = now + WRITTEN_S
            self._file.write({key: _stored(session) for key, session in self._sessions.items() if session.is_open(now)})


def _valid(stored: dict[bytes, StoredSession]) -> list[tuple[bytes, StoredSession]]:
    """The newest sessions of a file, without those that this version cannot read."""
    known = [
        (key, session)
        for key, session in stored.items()
        if session.by in get_args(Way) and session.role in list(Role) and len(session.csrf) >= 16
    ]
    return sorted(known, key=lambda entry: entry[1].used)[-SESSIONS:]


def _session(stored: StoredSession) -> Session:
    caller = Caller(stored.name, Role(stored.role), frozenset(stored.tenants))
    return Session(caller, stored.csrf, stored.by, stored.proof, stored.opened, stored.used)  # type: ignore[arg-type]


def _stored(session: Session) -> StoredSession:
    return StoredSession(
        name=session.caller.name,
        role=int(session.caller.role),
        tenants=sorted(session.caller.tenants),
        csrf=session.csrf,
        by=session.by,
        proof=session.proof,
        opened=session.opened,
        used=session.used,
    )
