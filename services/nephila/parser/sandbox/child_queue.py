"""Pages that are read in a child process: accepted in the delivery call, finished in an asyncio task.

Invariants: such a page ends by its record or as failed(dead_letter) and is acked afterwards; a cancelled page stays
unacked and is fetched or delivered again. The bus' credits bound the number of waiting pages. Bodies beyond SPOOL_BYTES
wait in unnamed temporary files.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import Callable, Coroutine
from typing import IO, Any, Final, TypeVar

from nephila.kernel.process.memory_budget import BODY_FACTOR, CHILD_BYTES, MemoryBudget, ReservationKind, unlimited
from nephila.parser.sandbox import Sandbox, Task

Out = TypeVar("Out")

SPOOL_BYTES: Final = 64 << 20
"""Bytes of waiting bodies in memory."""


class ChildProcessQueue:
    """Pages in progress. Owns the sandbox."""

    def __init__(self, sandbox: Sandbox, spool_bytes: int = SPOOL_BYTES, budget: MemoryBudget | None = None) -> None:
        """The queue reserves the memory of children in `budget`; None: no limit."""
        self.sandbox = sandbox
        self._budget = budget or unlimited()
        self.waiting_bytes = 0
        """Bytes of bodies in memory."""
        self._spool_bytes = spool_bytes
        self._tasks: set[asyncio.Task[None]] = set()
        self._stop_draining = asyncio.Event()
        # Per task: a body is read from disk only when a child is free for it.
        self._slots: dict[str, asyncio.Semaphore] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` as a task; it must handle its own errors."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def spool(self, body: bytes) -> SpooledBody:
        """Keep a body until a child is free."""
        return SpooledBody(self, body, self.waiting_bytes + len(body) > self._spool_bytes)

    async def run(self, task: Task[Out], spooled: SpooledBody, payload: Callable[[bytes], bytes]) -> Out:
        """The result of `task` for a body. Raises `ChildError` (see `Sandbox.call`), or `OSError` when the disk
        fails."""
        slot = self._slots.get(task.name)
        if slot is None:
            slot = self._slots[task.name] = asyncio.Semaphore(self.sandbox.children)
        async with slot:
            # A child that runs already is part of the memory in use.
            base = 0 if self.sandbox.runs(task) else CHILD_BYTES
            memory = await self._budget.reserve(ReservationKind.CHILD, base + BODY_FACTOR * spooled.size_bytes)
            try:
                return await self.sandbox.call(task, payload(spooled.take()))
            finally:
                memory.release()

    async def drain(self, grace_s: float) -> None:
        """Wait for pages in progress, at most `grace_s` seconds; 0 ends a drain that waits."""
        if grace_s <= 0:
            self._stop_draining.set()
        if not self._tasks or self._stop_draining.is_set():
            return
        stop = asyncio.ensure_future(self._stop_draining.wait())
        all_done = asyncio.ensure_future(self._until_idle())
        await asyncio.wait((stop, all_done), timeout=grace_s, return_when=asyncio.FIRST_COMPLETED)
        for wait in (stop, all_done):
            wait.cancel()

    async def _until_idle(self) -> None:
        # A page may wait for several children, one after the other.
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def close(self) -> None:
        """Cancel pages in progress, stop all children."""
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self.sandbox.close()


class SpooledBody:
    """A waiting body, in memory or on disk."""

    def __init__(self, queue: ChildProcessQueue, body: bytes, to_file: bool) -> None:
        self.size_bytes = len(body)
        self._queue = queue
        self._body = body
        self._file: IO[bytes] | None = None
        if to_file:
            # If the disk is full, the body stays in memory.
            with contextlib.suppress(OSError):
                self._file = tempfile.TemporaryFile(prefix="nephila-")  # noqa: SIM115 - open as long as this
                self._file.write(body)
                self._file.flush()
                self._body = b""
        queue.waiting_bytes += len(self._body)

    def take(self) -> bytes:
        """The body, which is freed here. Raises `OSError` if the disk fails."""
        body, self._body = self._body, b""
        self._queue.waiting_bytes -= len(body)
        if self._file is not None:
            with self._file as file:
                file.seek(0)
                if not body:
                    body = file.read()
        return body
