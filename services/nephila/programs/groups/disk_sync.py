"""What waits until all logs are on the disk.

Each group syncs its own logs once a second. That alone would let a power cut keep the end of a page in one log and lose
its links in another. So the main process passes on what depends on other logs (receipts of rows, the deletion of seeds
that have arrived) after a sync that began later than their append. A sync serves all that has come meanwhile.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from nephila.kernel.runtime.errors import UserError
from nephila.scheduler.durability.commit_log import CommitLog, disk_error

After = Callable[[Callable[[], None]], None]
"""Calls back once everything that is written now survives a power cut."""


def at_once(done: Callable[[], None]) -> None:
    """The operating system decides when data reaches the disk."""
    done()


class DiskSync:
    """`after` is an `After`."""

    def __init__(self, sync: Callable[[], None], on_fatal: Callable[[BaseException], None]) -> None:
        """`sync` runs in a thread. Raises `UserError` there when the disk refuses."""
        self._sync = sync
        self._on_fatal = on_fatal
        self._waiting: list[Callable[[], None]] = []
        self._task: asyncio.Task[None] | None = None

    def after(self, done: Callable[[], None]) -> None:
        self._waiting.append(done)
        if self._task is None:
            self._task = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                await asyncio.get_running_loop().run_in_executor(None, self._sync)
                for done in batch:
                    done()
        except UserError as error:
            self._on_fatal(error)
        else:
            self._task = None


class LogFiles:
    """The newest segments of some logs. Older ones were synced before these began."""

    def __init__(self, directories: Sequence[Path]) -> None:
        self._logs = [CommitLog(directory, read_only=True) for directory in directories]
        self._synced: dict[Path, tuple[int, int]] = {}
        """Directory → (segment, bytes) at its last sync."""

    def sync(self) -> None:
        """Sync those that were written since. Raises `UserError`."""
        for log in self._logs:
            segments = log.segments()
            if segments:
                self._sync(log, segments[-1])

    def _sync(self, log: CommitLog, segment: int) -> None:
        path = log.segment(segment)
        try:
            with path.open("rb") as file:
                state = segment, os.fstat(file.fileno()).st_size
                if self._synced.get(log.directory) != state:
                    os.fdatasync(file.fileno())
                    self._synced[log.directory] = state
        except FileNotFoundError:
            return  # a snapshot has replaced it, and is on the disk
        except OSError as error:
            raise disk_error(error, path) from None
