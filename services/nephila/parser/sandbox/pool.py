"""The child processes of one service: selection, replacement, and shutdown of idle ones.

Each task has its own children, so that a PDF of ten seconds does not delay a rule of a millisecond. Invariants: the
loop never blocks on a child; a failed child is replaced before the next call; no child survives `close`. If all
children of a task are busy, calls wait in order with their payloads; the caller bounds their number.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from nephila.parser.sandbox.process import ChildProcess
from nephila.parser.sandbox.task import ATTEMPTS, UNAVAILABLE, ChildError, Out, Task

CHILDREN: Final = 1
"""Children per task."""
IDLE_S: Final = 60.0
"""Seconds after which an idle child is stopped: it holds 20 to 60 MB."""
MAX_CALLS: Final = 2_000
"""Calls after which a child is replaced, against leaks and effects of hostile payloads."""


class Sandbox:
    """Runs tasks in child processes, for one event loop."""

    def __init__(self, children: int = CHILDREN, idle_s: float = IDLE_S) -> None:
        self.replaced = 0
        """Children that were killed."""
        self.children = children
        self._idle_s = idle_s
        self._pools: dict[str, _TaskPool] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._stopping: set[asyncio.Task[None]] = set()

    @property
    def pids(self) -> list[int]:
        """Process ids of the running children."""
        return [child.pid for pool in self._pools.values() for child in pool.children]

    def runs(self, task: Task[Any]) -> bool:
        """Whether a child of this task is running."""
        pool = self._pools.get(task.name)
        return pool is not None and bool(pool.children)

    async def call(self, task: Task[Out], payload: bytes, *, wall_s: float = 0.0, attempts: int = ATTEMPTS) -> Out:
        """The result of `task` for `payload`; `wall_s`: time limit in seconds (0: the task's).

        Raises `ChildError`: the child was killed and replaced, `attempts` times, or the task raised an exception.
        """
        pool = self._pools.get(task.name)
        if pool is None:
            pool = self._pools[task.name] = _TaskPool(task, self.children)
        elif pool.task != task:
            pool.task, pool.unavailable = task, None
        for count in range(1, attempts + 1):
            try:
                answer: Out = await self._call_once(pool, payload, wall_s or task.wall_s)
            except ChildError as failure:
                if count < attempts and failure.retryable:
                    continue
                raise ChildError(task.name, failure.reason, failure.detail, count) from None
            return answer
        raise ValueError(f"attempts must be at least 1, got {attempts}")

    async def _call_once(self, pool: _TaskPool, payload: bytes, wall_s: float) -> Any:
        async with pool.slots:
            pool.check()
            child = self._idle_child(pool) or await self._start_child(pool)
            try:
                answer = await child.request(payload, wall_s)
            except ChildError as failure:
                if failure.retryable:
                    self.replaced += 1
                    await self._stop(pool, child)
                else:
                    self._release(pool, child)
                raise
            except BaseException:
                pool.children.discard(child)
                raise
            self._release(pool, child)
            return answer

    def _idle_child(self, pool: _TaskPool) -> ChildProcess | None:
        while pool.idle:
            child = pool.idle.pop()
            if child.task == pool.task:
                return child
            self._stop_later(pool, child)
        return None

    async def _start_child(self, pool: _TaskPool) -> ChildProcess:
        try:
            child = ChildProcess(pool.task)
            pool.children.add(child)
            try:
                await child.ready()
            except BaseException:
                await self._stop(pool, child)
                raise
        except ChildError as failure:
            if failure.reason == UNAVAILABLE:
                # A missing library stays missing: do not start a process for every further page.
                pool.unavailable = failure
            raise
        return child

    def _release(self, pool: _TaskPool, child: ChildProcess) -> None:
        if child.calls >= MAX_CALLS:
            self._stop_later(pool, child)
            return
        loop = asyncio.get_running_loop()
        pool.idle.append(child)
        pool.last_used = loop.time()
        if self._timer is None:
            self._timer = loop.call_later(self._idle_s, self._stop_idle)

    def _stop_idle(self) -> None:
        """Stop the children of idle tasks."""
        self._timer = None
        loop = asyncio.get_running_loop()
        for pool in self._pools.values():
            if loop.time() - pool.last_used >= self._idle_s:
                while pool.idle:
                    self._stop_later(pool, pool.idle.pop())
        if any(pool.idle for pool in self._pools.values()):
            self._timer = loop.call_later(self._idle_s, self._stop_idle)

    def _stop_later(self, pool: _TaskPool, child: ChildProcess) -> None:
        stopping = asyncio.ensure_future(self._stop(pool, child))
        self._stopping.add(stopping)
        stopping.add_done_callback(self._stopping.discard)

    @staticmethod
    async def _stop(pool: _TaskPool, child: ChildProcess) -> None:
        await child.stop()
        pool.children.discard(child)

    async def close(self) -> None:
        """Stop all children. Calls that run or wait raise `ChildError`, unless their caller has cancelled them."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for pool in self._pools.values():
            pool.unavailable = ChildError(pool.task.name, UNAVAILABLE, "closed")
            for child in pool.children:
                child.kill()
            # A call that loses its child starts no other; a waiting call gets a slot and finds the task unavailable.
            for _ in range(self.children):
                await pool.slots.acquire()
            await asyncio.gather(*(self._stop(pool, child) for child in list(pool.children)))
            pool.idle.clear()
            for _ in range(self.children):
                pool.slots.release()
        if self._stopping:
            await asyncio.wait(self._stopping)


class _TaskPool:
    def __init__(self, task: Task[Any], children: int) -> None:
        self.task = task
        self.slots = asyncio.Semaphore(children)
        self.children: set[ChildProcess] = set()
        self.idle: list[ChildProcess] = []
        self.last_used = 0.0
        """Loop time at which the last call ended."""
        self.unavailable: ChildError | None = None
        """Why the task cannot run here."""

    def check(self) -> None:
        """Raise `unavailable`, if set."""
        if self.unavailable is not None:
            raise self.unavailable
