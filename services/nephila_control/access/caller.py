"""The identity behind a request: operations are checked and logged for a caller, not for a connection."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import NamedTuple

from nephila_control.access.roles import Role


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller is the owner of a token, a session or a socket."""

    name: str
    """The log of changes shows this name: that of the token, or the user of the session."""
    role: Role
    tenants: frozenset[str] = frozenset()
    """The caller sees jobs, rows and rules of these tenants only; an empty set is no limit."""


class Holder(NamedTuple):
    """A holder is a caller with the token that identifies it."""

    caller: Caller
    token: str
    """Signs the webhooks of crawls that the caller starts."""


OWNER = Caller("owner of the socket", Role.ADMIN)
"""A process that reaches a socket of mode 0600."""
ANONYMOUS = Caller("anonymous", Role.NONE)
"""A request without a login."""


def digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()
