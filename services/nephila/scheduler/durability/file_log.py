"""The log of a partition as files: a commit counts when it is written, and survives a power cut when it is synced.

fsync runs off the event loop, at most once per interval, and when `durable` waits for it. A killed process loses
nothing, a power cut what was written since the last fsync.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from enum import Enum

from nephila.kernel.messages import FrontierCommit, FrontierSnapshot
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import NotReadyError
from nephila.kernel.runtime.states import checked
from nephila.kernel.runtime.waits import OneTimer
from nephila.scheduler.durability.commit_log import CommitLog, disk_error


class SyncState(Enum):
    """The commits that a power cut would lose."""

    SYNCED = "synced"
    WRITTEN = "written"
    """Commits wait for the next fsync; its time is set."""
    SYNCING = "syncing"
    SYNCING_WRITTEN = "syncing, written"
    """Commits were written after the fsync had begun."""
    CLOSED = "closed"
    """The file is closed, or cannot be written."""


NEXT_STATES: dict[SyncState, tuple[SyncState, ...]] = {
    SyncState.SYNCED: (SyncState.WRITTEN, SyncState.CLOSED),
    SyncState.WRITTEN: (SyncState.SYNCING, SyncState.CLOSED),
    SyncState.SYNCING: (SyncState.SYNCED, SyncState.SYNCING_WRITTEN, SyncState.CLOSED),
    SyncState.SYNCING_WRITTEN: (SyncState.WRITTEN, SyncState.CLOSED),
    SyncState.CLOSED: (SyncState.CLOSED,),
}


class FileLog:
    """Positions are bytes of the present segment."""

    def __init__(
        self, file: CommitLog, clock: Clock, interval_s: float, on_fatal: Callable[[BaseException], None]
    ) -> None:
        self.file = file
        self.state = SyncState.SYNCED
        self.sync: asyncio.Task[None] | None = None
        """The fsync that runs."""
        self._clock = clock
        self._interval_s = interval_s
        self._on_fatal = on_fatal
        self._timer = OneTimer(clock, lambda: self.start_sync())

    @property
    def size(self) -> int:
        return self.file.size

    @property
    def end(self) -> int:
        return self.file.size

    def replayed(self, commit: FrontierCommit) -> None:
        """The file knows its size."""

    def begin(self, epoch: int) -> None:
        """A file log has one owner, because its directory is locked."""
        self.file.open()

    def fit(self, commits: list[FrontierCommit]) -> list[FrontierCommit]:
        """A frame has no limit that a turn could reach."""
        return commits

    def append(self, commits: list[FrontierCommit]) -> None:
        """The entries are in the file on return."""
        self.file.append(commits)
        if self.state is SyncState.SYNCED:
            self._enter(SyncState.WRITTEN)
        elif self.state is SyncState.SYNCING:
            self._enter(SyncState.SYNCING_WRITTEN)

    def _enter(self, state: SyncState) -> None:
        self.state = checked(NEXT_STATES, self.state, state, self.file.directory)
        if state is SyncState.WRITTEN:
            self._timer.start(self._interval_s)

    def start_sync(self) -> None:
        """Begin an fsync of what was written, unless one runs."""
        if self.state is not SyncState.WRITTEN:
            return
        self._timer.cancel()
        self._enter(SyncState.SYNCING)
        self.sync = asyncio.ensure_future(self._sync_now())

    async def _sync_now(self) -> None:
        try:
            await asyncio.get_running_loop().run_in_executor(None, self.file.sync)
        except OSError as error:
            self.sync = None
            if self.state is not SyncState.CLOSED:
                self._enter(SyncState.CLOSED)
                self._on_fatal(disk_error(error, self.file.directory))
            return
        self.sync = None
        if self.state is not SyncState.CLOSED:
            # Commits made during the sync may be the last for a long time: another one follows.
            self._enter(SyncState.SYNCED if self.state is SyncState.SYNCING else SyncState.WRITTEN)

    async def durable(self) -> None:
        """Return when everything appended so far survives a power cut. Raises `NotReadyError` if the write fails."""
        # Twice: a sync that runs already may have started too early. Later commits are not waited for.
        for _ in range(2):
            self.start_sync()
            await self.synced()
        if self.state is SyncState.CLOSED:
            raise NotReadyError("the program ended before this was written; do it again")

    async def synced(self) -> None:
        """Return when no fsync runs."""
        if self.sync is not None:
            await asyncio.wait([self.sync])

    def fail(self) -> None:
        """The log writes nothing more."""
        self._enter(SyncState.CLOSED)

    def close(self) -> None:
        """Make everything durable and close the file."""
        self._enter(SyncState.CLOSED)
        self._timer.cancel()
        self.file.close()


class FileSnapshots:
    """A snapshot is one file, durable when it is written; a new segment of the log follows it."""

    overdue = False
    """The log of one machine has no retention."""

    def __init__(self, log: FileLog, clock: Clock, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self._log = log
        self._clock = clock
        self._written_at = clock.monotonic()

    @property
    def ready(self) -> bool:
        """The segment that an fsync works on stays open."""
        return self._log.sync is None

    @property
    def age_s(self) -> float:
        """The age counts from the start of the program if there is no snapshot."""
        return self._clock.monotonic() - self._written_at if self._log.size else 0.0

    def write(self, states: Iterable[FrontierSnapshot], sequence: int) -> None:
        try:
            self._log.file.snapshot(states)
        except OSError as error:
            raise disk_error(error, self._log.file.directory) from None
        self._written_at = self._clock.monotonic()

    def commit(self, sequence: int, offset: int) -> None:
        """A snapshot counts from the moment it is written."""

    def drop(self) -> None:
        """A file log has no snapshot in progress."""
