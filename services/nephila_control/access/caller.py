"""Who calls an operation."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import NamedTuple

from nephila_control.access.roles import Role


@dataclass(frozen=True, slots=True)
class Caller:
    """One token, session or socket."""

    name: str
    """As the log of changes names it: of a token its name, of a session the user."""
    role: Role
    tenants: frozenset[str] = frozenset()
    """Limited to jobs, rows and rules of these; empty: not limited."""


class Holder(NamedTuple):
    """Who has a token."""

    caller: Caller
    token: str
    """Webhooks of its crawls are signed with it."""


OWNER = Caller("owner of the socket", Role.ADMIN)
"""A process that reaches a socket of mode 0600."""
ANONYMOUS = Caller("anonymous", Role.NONE)
"""A request without a login."""


def digest(secret: str) -> bytes:
    """What is kept of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()
