"""Sessions in a file, so that a restart of the server is no logout for those who work in it.

A signed cookie would need a key in a file as well, and could not end a session before its time. Invariants: the file
has mode 0600, and a file that others can read or write counts for nothing; it has digests of session ids and of tokens,
so reading it opens no session; a file that cannot be read or written costs the sessions, not the server.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

log = logging.getLogger(__name__)
VERSION: Final = 1
MAX_BYTES: Final = 4 << 20


class StoredSession(msgspec.Struct, kw_only=True):
    """A session as the file has it. Instants are seconds since 1970 UTC."""

    name: str
    role: int
    tenants: list[str]
    csrf: str
    by: str
    proof: bytes
    opened: float
    used: float


class _File(msgspec.Struct, kw_only=True):
    version: int
    sessions: dict[str, StoredSession]
    """Digest of the id, in hex → session."""


class SessionFile:
    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> dict[bytes, StoredSession]:
        """Returns nothing without a file that can be used. Blocks."""
        try:
            with self.path.open("rb") as file:
                state = os.fstat(file.fileno())
                if state.st_mode & (stat.S_IRWXG | stat.S_IRWXO) or state.st_uid != os.geteuid():
                    log.warning("%s is not used: it has to be this user's, with mode 0600", self.path)
                    return {}
                stored = msgspec.json.decode(file.read(MAX_BYTES), type=_File)
            return {bytes.fromhex(key): session for key, session in stored.sessions.items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, msgspec.MsgspecError) as error:
            log.warning("%s is not used, and all sessions end: %s", self.path, error)
            return {}

    def write(self, sessions: Mapping[bytes, StoredSession]) -> None:
        """Replaces the file. Blocks; a failure is logged."""
        body = msgspec.json.encode(
            _File(version=VERSION, sessions={key.hex(): session for key, session in sessions.items()})
        )
        part = self.path.with_name(f"{self.path.name}.{os.getpid()}.part")
        try:
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                os.fchmod(file.fileno(), 0o600)
                file.write(body)
            os.replace(part, self.path)
        except OSError as error:
            log.warning("%s is not written: a restart ends all sessions: %s", self.path, error.strerror or error)
