"""The children of one service: who is asked next, who is replaced, who is ended for want of work.

Each task has children of its own, so that a PDF of ten seconds keeps no rule of a millisecond waiting. Invariants: the
loop never waits for a child; what a call broke is replaced before the next; after `close` there is no child left. Calls
of a task that find all its children busy wait in their order, and their payloads with them: who calls bounds how many.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from nephila.parser.sandbox.process import Child
from nephila.parser.sandbox.task import TRIES, UNAVAILABLE, Broken, Out, Task

CHILDREN: Final = 1
"""Of a task."""
IDLE_S: Final = 60.0
"""A child nobody asked for so long is ended: it holds 20 to 60 MB."""
MAX_CALLS: Final = 2_000
"""A child is replaced after so many: what leaked, and what a payload may have done to it, goes with it."""


class Sandbox:
    """See the module. For one event loop."""

    def __init__(self, children: int = CHILDREN, idle_s: float = IDLE_S) -> None:
        self.replaced = 0
        """Children that had to be killed."""
        self.children = children
        self._idle_s = idle_s
        self._families: dict[str, _Family] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._ending: set[asyncio.Task[None]] = set()

    @property
    def pids(self) -> list[int]:
        """Process ids of the children there are."""
        return [child.pid for family in self._families.values() for child in family.all]

    async def call(self, task: Task[Out], payload: bytes, *, wall_s: float = 0.0, tries: int = TRIES) -> Out:
        """What `task` gives for `payload`; a call may take `wall_s` seconds (0: as the task says).

        Raises `Broken`: the child was killed and replaced, `tries` times, or the task raised an exception.
        """
        family = self._families.get(task.name)
        if family is None:
            family = self._families[task.name] = _Family(task, self.children)
        for count in range(1, tries + 1):
            try:
                found: Out = await self._once(family, payload, wall_s or task.wall_s)
            except Broken as broken:
                if count < tries and broken.worth_another:
                    continue
                raise Broken(task.name, broken.reason, broken.detail, count) from None
            return found
        raise ValueError(f"tries must be at least 1, got {tries}")

    async def _once(self, family: _Family, payload: bytes, wall_s: float) -> Any:
        async with family.slots:
            family.check()
            child = family.idle.pop() if family.idle else await self._begin(family)
            try:
                found = await child.ask(payload, wall_s)
            except Broken as broken:
                if broken.worth_another:
                    self.replaced += 1
                    await self._let_go(family, child)
                else:
                    self._give_back(family, child)
                raise
            except BaseException:
                family.all.discard(child)
                raise
            self._give_back(family, child)
            return found

    async def _begin(self, family: _Family) -> Child:
        try:
            child = Child(family.task)
            family.all.add(child)
            try:
                await child.ready()
            except BaseException:
                await self._let_go(family, child)
                raise
        except Broken as broken:
            if broken.reason == UNAVAILABLE:
                # A missing library stays missing: no process for every page of its kind.
                family.refused = broken
            raise
        return child

    def _give_back(self, family: _Family, child: Child) -> None:
        if child.calls >= MAX_CALLS:
            self._end_later(family, child)
            return
        loop = asyncio.get_running_loop()
        family.idle.append(child)
        family.used = loop.time()
        if self._timer is None:
            self._timer = loop.call_later(self._idle_s, self._look)

    def _look(self) -> None:
        """End the children of tasks that nobody asked for."""
        self._timer = None
        loop = asyncio.get_running_loop()
        for family in self._families.values():
            if loop.time() - family.used >= self._idle_s:
                while family.idle:
                    self._end_later(family, family.idle.pop())
        if any(family.idle for family in self._families.values()):
            self._timer = loop.call_later(self._idle_s, self._look)

    def _end_later(self, family: _Family, child: Child) -> None:
        ending = asyncio.ensure_future(self._let_go(family, child))
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)

    @staticmethod
    async def _let_go(family: _Family, child: Child) -> None:
        await child.end()
        family.all.discard(child)

    async def close(self) -> None:
        """End all children; calls under way and waiting end as `Broken`, unless who made them has cancelled them."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for family in self._families.values():
            family.refused = Broken(family.task.name, UNAVAILABLE, "closed")
            for child in family.all:
                child.kill()
            # A call that loses its child begins no other, one that waits gets its turn to hear so.
            for _ in range(self.children):
                await family.slots.acquire()
            await asyncio.gather(*(self._let_go(family, child) for child in list(family.all)))
            family.idle.clear()
            for _ in range(self.children):
                family.slots.release()
        if self._ending:
            await asyncio.wait(self._ending)


class _Family:
    """The children of one task."""

    def __init__(self, task: Task[Any], children: int) -> None:
        self.task = task
        self.slots = asyncio.Semaphore(children)
        self.all: set[Child] = set()
        self.idle: list[Child] = []
        self.used = 0.0
        """When a call ended last, on the loop's time."""
        self.refused: Broken | None = None
        """Why there is no use in asking."""

    def check(self) -> None:
        """Raise `refused`, if there is one."""
        if self.refused is not None:
            raise self.refused
