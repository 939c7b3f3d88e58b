"""Who may use a control API: tokens and their callers, and the API as each caller may use it."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from nephila.kernel.runtime.clock import Clock, SystemClock
from nephila.kernel.runtime.errors import UserError

from nephila_control.access.caller import OWNER, Caller, Holder, digest
from nephila_control.access.guard import guarded
from nephila_control.access.live_access import LiveAccess
from nephila_control.access.roles import Role
from nephila_control.access.tries import MOST, WITHIN_S, Tries
from nephila_control.api import Control

KEPT: Final = 1000
"""Callers whose view of the API is kept."""


def given_token(header: str) -> str:
    """The token of an Authorization header; empty where there is none."""
    scheme, _, given = header.partition(" ")
    return given.strip() if scheme.lower() == "bearer" else ""


class TooManyTries(UserError):
    """An address has sent too many wrong tokens."""

    def __init__(self, wait_s: float) -> None:
        self.retry_after_s = math.ceil(wait_s)
        super().__init__(
            f"{MOST} wrong tokens came from this address within {WITHIN_S:.0f} s; wait {self.retry_after_s} s"
        )


class Authority:
    """The callers of one server. O(1)."""

    def __init__(
        self,
        control: Control,
        tokens: Iterable[tuple[str, Caller]] | None = None,
        live: LiveAccess | None = None,
        clock: Clock | None = None,
    ) -> None:
        """`tokens`: (token, its caller); None: each connection is the owner's. `live`: the access file with more."""
        self._control = control
        self._holders = None if tokens is None else {digest(token): Holder(caller, token) for token, caller in tokens}
        self._live = live
        self.tries = Tries(clock or SystemClock())
        """Of wrong tokens."""
        self._views: OrderedDict[Caller, Control] = OrderedDict()

    @property
    def has_tokens(self) -> bool:
        """Whether a token is configured."""
        return bool(self._holders or (self._live is not None and self._live.holders))

    def caller(self, token: str) -> Caller | None:
        """Who has this token; None for a wrong one. Digests are compared, so the time tells nothing about a token."""
        if self._holders is None:
            return OWNER
        if self._live is not None:
            self._live.refresh()
        found = self.holder(digest(token))
        return found.caller if found is not None else None

    def holder(self, known: bytes) -> Holder | None:
        """Who has the token of this digest; None for one that counts no more."""
        live = self._live.holders if self._live is not None else {}
        return (self._holders or {}).get(known) or live.get(known)

    def bearer(self, header: str, address: str) -> Caller | None:
        """The caller of an Authorization header; None for a missing or wrong token. Raises `TooManyTries`."""
        if self._holders is None:
            return OWNER
        given = given_token(header)
        if not given:
            return None
        known = digest(given)
        if (wait_s := self.tries.wait_s(address)) > 0 and not self.tries.was_accepted(address, known):
            raise TooManyTries(wait_s)
        found = self.caller(given)
        if found is None:
            self.tries.failed(address)
        else:
            self.tries.accepted(address, known)
        return found

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
