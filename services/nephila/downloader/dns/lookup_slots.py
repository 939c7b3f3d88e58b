"""A bound on concurrent look-ups; further ones wait in order. The time limit of a look-up starts with its slot."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from nephila.downloader.dns.contract import NotLookedUpError


class LookupSlots:
    """Look-ups share at most `max_lookups` slots; a look-up waits for one at most `wait_s` seconds."""

    def __init__(self, max_lookups: int, wait_s: float) -> None:
        self._free = asyncio.Semaphore(max_lookups)
        self._wait_s = wait_s

    async def acquire(self) -> None:
        """Wait for a slot; raises `NotLookedUpError` when none is free within `wait_s`."""
        try:
            async with asyncio.timeout(self._wait_s):
                await self._free.acquire()
        except TimeoutError:
            raise NotLookedUpError(f"not looked up: too many look-ups in flight for {self._wait_s:g} s") from None

    def release(self) -> None:
        self._free.release()

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Hold a slot for the time of a block."""
        await self.acquire()
        try:
            yield
        finally:
            self.release()
