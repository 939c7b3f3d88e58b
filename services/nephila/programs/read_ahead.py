"""Values of an iterator that may block, read by a thread of its own, so that the loop goes on meanwhile.

Invariant: they come in their order, and at most `ahead` of them are read and not yet taken. The thread is a daemon: one
that waits for a pipe nobody writes to does not keep the program from ending.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

T = TypeVar("T")


class _Reader:
    """What the thread and the loop share."""

    def __init__(self, ahead: int) -> None:
        self.found: deque[object] = deque()
        self.room = threading.Semaphore(ahead)
        self.available = asyncio.Event()
        self.woken = False
        """The loop has been woken and has not looked yet; a second wake-up would be wasted."""
        self.ended = False
        self.error: BaseException | None = None
        self.abandoned = False
        """Nobody takes values any more."""
        self._loop = asyncio.get_running_loop()

    def read(self, source: Iterable[object]) -> None:
        """The thread's life."""
        try:
            for value in source:
                self.found.append(value)
                self._wake()
                self.room.acquire()
                if self.abandoned:
                    return
        except BaseException as error:
            self.error = error
        self.ended = True
        self._wake(always=True)

    def _wake(self, always: bool = False) -> None:
        if always or not self.woken:
            self.woken = True
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self.available.set)


async def read_ahead(source: Iterable[T], ahead: int = 1000) -> AsyncIterator[T]:
    """The values of `source`; what it raises is raised here, after the values before it."""
    reader = _Reader(ahead)
    threading.Thread(target=reader.read, args=(source,), name="nephila-read-ahead", daemon=True).start()
    try:
        while True:
            await reader.available.wait()
            reader.available.clear()
            # In this order: what is appended from here on wakes the loop again, what ended before has all appended.
            reader.woken = False
            ended = reader.ended
            while reader.found:
                value: T = reader.found.popleft()  # type: ignore[assignment]
                reader.room.release()
                yield value
            if ended:
                if reader.error is not None:
                    raise reader.error
                return
    finally:
        reader.abandoned = True
        reader.room.release()
