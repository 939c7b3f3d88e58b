"""Values of an iterator that may block, read in a separate thread, so that the event loop is never blocked.

Invariant: they come in their order, and at most `ahead` of them are read and not yet consumed. The thread is a
daemon: a thread that waits for an idle pipe does not keep the program alive.
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
        """The loop was woken and has not read yet; a second wake-up is not needed."""
        self.ended = False
        self.error: BaseException | None = None
        self.abandoned = False
        """The consumer has stopped."""
        self._loop = asyncio.get_running_loop()

    def read(self, source: Iterable[object]) -> None:
        """The body of the thread."""
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
    """The values of `source`. An error of `source` is raised here, after the values before it."""
    reader = _Reader(ahead)
    threading.Thread(target=reader.read, args=(source,), name="nephila-read-ahead", daemon=True).start()
    try:
        while True:
            await reader.available.wait()
            reader.available.clear()
            # In this order: a value appended after this line wakes the loop again; `ended` is set after the last.
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
