"""Repeats work while the database, or the broker of items, cannot be reached."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import UserError
from nephila.kernel.runtime.waits import Backoff, wait
from nephila.storage.faults import StoreLost, StoreRefused

T = TypeVar("T")

log = logging.getLogger(__name__)

RETRY = Backoff(0.2, 5.0)


class LostStore:
    """The class repeats work while the store is lost; `closing` ends all waits."""

    def __init__(self, clock: Clock, closing: asyncio.Event) -> None:
        self._clock = clock
        self._closing = closing
        self.trouble = ""
        """Why nothing can be made durable now, in one line. Empty: no problem."""
        self.since = 0.0
        """When the trouble began, in seconds since 1970 UTC."""
        self.refused = False
        """The trouble is a refused login."""

    def note(self, error: StoreLost) -> None:
        """The store is lost now."""
        refused = isinstance(error, StoreRefused)
        if not self.trouble or refused != self.refused:
            self.since = self._clock.now()
        self.trouble, self.refused = str(error), refused

    async def repeat(self, work: Callable[[], Awaitable[T]], waiting: int, patience_s: float = 0.0) -> T:
        """Run `work` until it does not raise `StoreLost`. `waiting`: records that wait for it. Raises `UserError` after
        `patience_s` (0: never), `StoreLost` if the service is closed meanwhile."""
        since, failures = self._clock.monotonic(), 0
        while True:
            try:
                result = await work()
            except StoreLost as error:
                now = self._clock.monotonic()
                failures += 1
                since = since if failures > 1 else now
                if not self.trouble:
                    log.warning("storage: %s; retrying, %d records wait", error, waiting)
                self.note(error)
                if patience_s and now - since >= patience_s:
                    raise UserError(f"{error}; waited {now - since:.0f} s, run again with --resume") from error
                if await wait(self._clock, RETRY.after(failures), self._closing):
                    raise
            else:
                if self.trouble:
                    waited = f" after {self._clock.monotonic() - since:.1f} s" if failures else ""
                    log.warning("storage: the database is back%s", waited)
                    self.trouble, self.refused = "", False
                return result
