"""The access file of a running server: it is read again when it, or a file of a secret that it names, has changed.

Invariant: a file with a mistake changes nothing; `problem` says why until a file without one is there. The files are
looked at when a request comes, at most every `CHECK_S`: without requests nothing is done.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping
from typing import Final

from nephila.kernel.runtime.clock import Clock, SystemClock
from nephila.kernel.runtime.errors import UsageError

from nephila_control.access.access_file import AccessFile, callers, read_access
from nephila_control.access.caller import Holder, digest
from nephila_control.http.tokens import read_token

log = logging.getLogger(__name__)
CHECK_S: Final = 2.0
_State = tuple[tuple[str, tuple[int, int, int] | None], ...]


class LiveAccess:
    def __init__(self, path: str, option: str, clock: Clock | None = None) -> None:
        """Raises `UsageError` for a file that cannot be used."""
        self._path = path
        self._option = option
        self._clock = clock or SystemClock()
        self._next = self._clock.monotonic() + CHECK_S
        self._seen = _state([path])
        self.file = AccessFile()
        self.holders: Mapping[bytes, Holder] = {}
        """Digest of a token → its holder."""
        self.problem = ""
        """One line says why the present file is not used; it is empty if the file is used."""
        self.version = 0
        """Number of versions of the file that were taken."""
        self._take()

    def refresh(self) -> None:
        """Read the file if it has changed."""
        now = self._clock.monotonic()
        if now < self._next:
            return
        self._next = now + CHECK_S
        if _state(name for name, _ in self._seen) == self._seen:
            return
        try:
            self._take()
        except UsageError as error:
            self.problem = str(error)
            log.error("the access file has changed and is not used, the one before stays in effect: %s", error)
        else:
            log.warning("the access file has changed and is in effect")

    def _take(self) -> None:
        # The state before the files are read: a change while they are read is seen by the next look.
        before = dict(_state([self._path, *_secrets(self.file)]))
        self._seen = tuple(before.items())
        file = read_access(self._path, self._option)
        # A file of a secret that is new in this version is looked at from now on.
        self._seen = tuple({**dict(_state(_secrets(file))), **before}.items())
        tokens = callers(file, f"{self._option} {self._path}")
        self.holders = {digest(token): Holder(caller, token) for token, caller in tokens}
        self.file, self.problem = file, ""
        self.version += 1


def _secrets(file: AccessFile) -> list[str]:
    names = [token.token_file for token in file.tokens]
    if file.oidc is not None:
        names.append(file.oidc.client_secret_file)
    return [name for name in names if name]


def _state(names: Iterable[str]) -> _State:
    return tuple((name, _of_file(name)) for name in dict.fromkeys(names))


def _of_file(name: str) -> tuple[int, int, int] | None:
    try:
        stat = os.stat(name)
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


def read_logins(
    token_file: str, token_option: str, access_file: str, access_option: str
) -> tuple[str, LiveAccess | None]:
    """Returns the token that may do everything (empty: none) and the access file. Raises `UsageError` without
    either."""
    logins = LiveAccess(access_file, access_option) if access_file else None
    token = read_token(token_file, token_option) if token_file or logins is None else ""
    return token, logins
