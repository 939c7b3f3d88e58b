"""Who may use a control API: tokens and their callers, and the API as each caller may use it."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from nephila.control.access.caller import OWNER, Caller
from nephila.control.access.guard import guarded
from nephila.control.access.roles import Role
from nephila.control.api import Control

KEPT: Final = 1000
"""Callers whose view of the API is kept."""


def digest(secret: str) -> bytes:
    """What is kept of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()


def given_token(header: str) -> str:
    """The token of an Authorization header; empty where there is none."""
    scheme, _, given = header.partition(" ")
    return given.strip() if scheme.lower() == "bearer" else ""


class Authority:
    """The callers of one server. O(1)."""

    def __init__(self, control: Control, tokens: Iterable[tuple[str, Caller]] | None = None) -> None:
        """`tokens`: (token, its caller); None: each connection is the owner's."""
        self._control = control
        self._holders = None if tokens is None else {digest(token): (caller, token) for token, caller in tokens}
        self._views: OrderedDict[Caller, Control] = OrderedDict()

    @property
    def has_tokens(self) -> bool:
        """Whether a token is configured."""
        return bool(self._holders)

    def caller(self, token: str) -> Caller | None:
        """Who has this token; None for a wrong one. Digests are compared, so the time tells nothing about a token."""
        if self._holders is None:
            return OWNER
        found = self._holders.get(digest(token))
        return found[0] if found is not None else None

    def holder(self, known: bytes) -> tuple[Caller, str] | None:
        """The caller and the token with this `digest`; None where no token has it."""
        return (self._holders or {}).get(known)

    def bearer(self, header: str) -> Caller | None:
        """The caller of an Authorization header."""
        given = given_token(header)
        return self.caller(given) if self._holders is None or given else None

    def of(self, caller: Caller) -> Control:
        """The API as this caller may use it."""
        found = self._views.pop(caller, None) or guarded(self._control, caller)
        self._views[caller] = found
        if len(self._views) > KEPT:
            self._views.popitem(last=False)
        return found


def administrator(token: str, name: str = "token") -> list[tuple[str, Caller]]:
    """One token that may do everything; none for an empty one."""
    return [(token, Caller(name, Role.ADMIN))] if token else []
