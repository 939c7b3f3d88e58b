"""The search index is read on behind searches that found it behind, in steps with pauses.

A search itself only reads. The first one of a crawl waits for the index for `WAIT_S`, so that a small crawl is answered
as a whole; of a large one it answers with what is there, and the index is read on at half of one core until it has
everything. Without searches nothing runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import Final

from nephila.kernel.runtime.errors import UserError
from nephila.storage.source import Source

WAIT_S: Final = 2.0
"""Time that a search waits for an index that is behind."""
STEP_S: Final = 0.2
"""Time of a step; its last batch ends after it."""


class SearchReader:
    """Keeps the index of one database up to date. `pause` waits for some seconds."""

    def __init__(self, source: Source, pause: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._source = source
        self._pause = pause
        self._task: asyncio.Task[None] | None = None

    async def read_on(self) -> bool:
        """Begins to read if no reader runs, and waits WAIT_S at most. Returns False at once if a reader runs
        already."""
        if self._task is not None and not self._task.done():
            return False
        self._task = asyncio.ensure_future(self._read())
        await asyncio.wait((self._task,), timeout=WAIT_S)
        return True

    async def _read(self) -> None:
        waited_for = time.monotonic() + WAIT_S
        with contextlib.suppress(UserError):  # the search that is next says what is wrong
            while await asyncio.to_thread(self._step):
                if time.monotonic() > waited_for:
                    await self._pause(STEP_S)

    def _step(self) -> int:
        from nephila_stores.search.search import open_index  # loaded by the first search

        with open_index(self._source) as index:
            return [*index.read_on(self._source, STEP_S)][-1]
