"""Long work in slices, one per turn of the loop, so that a sitemap of 50,000 URLs delays nothing else.

Tasks run in rotation, so that a short one does not wait for a long one. Invariants: work that fits the first slice is
finished before `begin` returns; number and bytes of the tasks are bounded: beyond the bound the oldest is finished at
once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

from nephila.kernel.runtime.clock import Clock

MAX_TASKS: Final = 8
MAX_BYTES: Final = 64 << 20


class CooperativeTasks:
    def __init__(self, clock: Clock) -> None:
        self.slices = 0
        """Slices run so far, in turns of their own."""
        self._clock = clock
        self._tasks: deque[tuple[Iterator[None], int]] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._tasks)

    def begin(self, task: Iterator[None], size_bytes: int) -> None:
        """Take the first slice now, the others in turns to come; `size_bytes` is what the work holds until its end. The
        work sees to its own errors."""
        if not _step(task):
            return
        self._tasks.append((task, size_bytes))
        self._bytes += size_bytes
        while len(self._tasks) > MAX_TASKS or (len(self._tasks) > 1 and self._bytes > MAX_BYTES):
            self._finish_first()
        if len(self._tasks) == 1:
            self._clock.call_soon(self._turn)

    def finish(self) -> None:
        """Finish all tasks now."""
        while self._tasks:
            self._finish_first()

    def drop(self) -> None:
        self._tasks.clear()
        self._bytes = 0

    def _turn(self) -> None:
        if not self._tasks:
            return
        task, size_bytes = self._tasks.popleft()
        self.slices += 1
        if _step(task):
            self._tasks.append((task, size_bytes))
        else:
            self._bytes -= size_bytes
        if self._tasks:
            self._clock.call_soon(self._turn)

    def _finish_first(self) -> None:
        task, size_bytes = self._tasks.popleft()
        self._bytes -= size_bytes
        for _ in task:
            pass


def _step(task: Iterator[None]) -> bool:
    """Run one slice; False if it was the last."""
    for _ in task:
        return True
    return False
