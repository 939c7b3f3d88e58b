"""An authority maps tokens to callers, and gives each caller its own view of the control API."""

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
from nephila_control.http.tokens import present_token

KEPT: Final = 1000
"""Callers whose view of the API is kept."""


def bearer_token(header: str) -> str:
    """Returns an empty string if the header holds no bearer token."""
    scheme, _, token = header.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


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
        """`tokens` pairs each token with its caller; None makes each connection the owner's. `live` adds an access
        file."""
        self._control = control
        self._tokens = None if tokens is None else list(tokens)
        self._live = live
        self.tries = Tries(clock or SystemClock())
        self._views: OrderedDict[Caller, Control] = OrderedDict()

    @property
    def has_tokens(self) -> bool:
        return bool(self._tokens or (self._live is not None and self._live.holders))

    def caller(self, token: str) -> Caller | None:
        """Returns None for a wrong token. Digests are compared, so the time of an answer tells nothing about a
        token."""
        if self._tokens is None:
            return OWNER
        if self._live is not None:
            self._live.refresh()
        holder = self.holder(digest(token))
        return holder.caller if holder is not None else None

    def holder(self, token_digest: bytes) -> Holder | None:
        """Returns None for a digest of no valid token."""
        live = self._live.holders if self._live is not None else {}
        return self._fixed().get(token_digest) or live.get(token_digest)

    def _fixed(self) -> dict[bytes, Holder]:
        """The tokens of files are those of now: they may be rotated at any time."""
        pairs = [(present_token(token), caller) for token, caller in self._tokens or ()]
        return {digest(token): Holder(caller, token) for token, caller in pairs}

    def bearer(self, header: str, address: str) -> Caller | None:
        """Returns None for a missing or wrong token. Raises `TooManyTries`."""
        if self._tokens is None:
            return OWNER
        token = bearer_token(header)
        if not token:
            return None
        token_digest = digest(token)
        if (wait_s := self.tries.wait_s(address)) > 0 and not self.tries.was_accepted(address, token_digest):
            raise TooManyTries(wait_s)
        caller = self.caller(token)
        if caller is None:
            self.tries.failed(address)
        else:
            self.tries.accepted(address, token_digest)
        return caller

    def of(self, caller: Caller) -> Control:
        view = self._views.pop(caller, None) or guarded(self._control, caller)
        self._views[caller] = view
        if len(self._views) > KEPT:
            self._views.popitem(last=False)
        return view


def administrator(token: str, name: str = "token") -> list[tuple[str, Caller]]:
    """The token may do everything. An empty token gives no caller."""
    return [(token, Caller(name, Role.ADMIN))] if token else []
