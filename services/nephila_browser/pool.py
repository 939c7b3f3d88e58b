"""A pool of browser processes. Invariants: at most `processes` run, each with at most `pages` pages at once; a process
that is retired takes no new page and is closed after its last one; a process that hangs or crashes costs the pages in
it one more try, in another process.

Memory is read every `WATCH_S` while pages are rendered. Above the limit of a process, a page with more than its share
(limit / pages) is ended as browser_memory, and others continue; without such a page the process is retired. Above
`HARD_LIMIT` times the limit, its processes are killed.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter

from nephila.kernel.reasons.table import Reason
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.waits import OneTimer, wait

from nephila_browser.engine import (
    BrowserGoneError,
    BrowserProcess,
    Engine,
    RenderedPage,
    RenderError,
    RenderTask,
)

log = logging.getLogger(__name__)

HANG_S = 10.0
"""Time after a page's deadline in which its process has to react. A process that does not is killed."""
MEMORY = "memory"
"""Why a process is retired whose memory, or that of a page in it, was above its limit."""
WATCH_S = 0.25
"""Time between two readings of memory; a page can take 1 GB in it."""
HARD_LIMIT = 1.25
TRIES = 2
"""Processes in which a page may be when they end, before it fails itself."""


class _Member:
    """One process of the pool."""

    def __init__(self) -> None:
        self.process: BrowserProcess | None = None
        """None while it starts."""
        self.pages = 0
        self.uses = 0
        self.retired = ""
        """Why it takes no new page; empty: it does."""


class BrowserPool:
    """Renders pages in browser processes that are started on demand."""

    def __init__(
        self, engine: Engine, clock: Clock, *, processes: int, pages: int, max_uses: int, max_memory_bytes: int
    ) -> None:
        """`max_uses`: pages after which a process is retired; `max_memory_bytes`: limit of a process; 0 = none."""
        self._engine = engine
        self._clock = clock
        self._limit = processes
        self._pages = pages
        self._max_uses = max_uses
        self._max_memory_bytes = max_memory_bytes
        self._members: list[_Member] = []
        self._room = asyncio.Condition()
        self._closing: set[asyncio.Task[None]] = set()
        self._closed = False
        self._watch_timer = OneTimer(clock, self._watch)
        self.pages = 0
        """Pages rendered."""
        self.seconds = 0.0
        """Time that pages took, in total."""
        self._ended_cpu_s = 0.0
        """CPU of processes that have ended."""
        self.launched = 0
        self.crashes = 0
        """Processes that ended by themselves, or were killed because they hung."""
        self.retired: Counter[str] = Counter()

    @property
    def processes(self) -> int:
        """Processes that run."""
        return sum(member.process is not None for member in self._members)

    def cpu_s(self) -> float:
        """CPU of all processes so far."""
        return self._ended_cpu_s + sum(member.process.cpu_s() for member in self._members if member.process is not None)

    def memory_bytes(self) -> int:
        """Resident memory of all processes."""
        return sum(member.process.memory_bytes() for member in self._members if member.process is not None)

    @property
    def pids(self) -> list[int]:
        """Process ids of the browsers."""
        return [member.process.pid for member in self._members if member.process is not None]

    async def render(self, task: RenderTask) -> RenderedPage:
        """Render a page. Raises `RenderError`; the reason is browser where the browser failed, not the page."""
        reason = Reason.BROWSER
        for _ in range(TRIES):
            member = await self._acquire()
            started = self._clock.monotonic()
            try:
                return await self._render_in(member, task)
            except BrowserGoneError:
                reason = Reason.BROWSER_MEMORY if member.retired == MEMORY else Reason.BROWSER
                log.warning("the browser ended while it rendered %s", task.url)
            except RenderError as error:
                if error.reason == Reason.BROWSER_MEMORY and not member.retired:
                    member.retired = MEMORY
                    log.warning("%s: %s", task.url, error.detail)
                raise
            finally:
                self.seconds += self._clock.monotonic() - started
                await self._release(member)
        raise RenderError(reason, f"the browser ended {TRIES} times while it rendered the page")

    async def close(self) -> None:
        """End all processes. Pages in them fail."""
        self._closed = True
        self._watch_timer.cancel()
        members, self._members = self._members, []
        for member in members:
            if member.process is not None:
                self._ended_cpu_s += member.process.cpu_s()
                await member.process.close()
        if self._closing:
            await asyncio.wait(self._closing)
        await self._engine.close()

    async def _render_in(self, member: _Member, task: RenderTask) -> RenderedPage:
        process = member.process
        assert process is not None
        self._watch_later()
        rendering = asyncio.ensure_future(process.render(task))
        try:
            done = await self._done_within(rendering, task.timeout_s + HANG_S)
        except asyncio.CancelledError:
            rendering.cancel()
            if not await self._done_within(rendering, HANG_S):
                self._on_hang(member, rendering)
            raise
        if not done:
            log.warning("the browser hangs with %s and is killed", task.url)
            self._on_hang(member, rendering)
            raise RenderError(Reason.RENDER_TIMEOUT, "render: the browser did not answer")
        page = rendering.result()
        self.pages += 1
        return page

    async def _done_within(self, rendering: asyncio.Future[RenderedPage], seconds: float) -> bool:
        over = asyncio.Event()
        rendering.add_done_callback(lambda _: over.set())
        await wait(self._clock, seconds, over)
        return rendering.done()

    def _on_hang(self, member: _Member, rendering: asyncio.Future[RenderedPage]) -> None:
        rendering.cancel()
        rendering.add_done_callback(lambda done: done.cancelled() or done.exception())
        self.crashes += 1
        self._remove(member, "hang")

    async def _acquire(self) -> _Member:
        """A process with room for a page; the one with the fewest pages, or a new one."""
        async with self._room:
            while True:
                if self._closed:
                    raise RenderError(Reason.BROWSER, "the browser is closed")
                able = [member for member in self._members if member.process is not None and self._has_room(member)]
                if able and (len(self._members) >= self._limit or min(member.pages for member in able) == 0):
                    member = min(able, key=lambda member: member.pages)
                    break
                if len(self._members) < self._limit:
                    member = _Member()
                    self._members.append(member)
                    break
                await self._room.wait()
            member.pages += 1
            member.uses += 1
        if member.process is None:
            await self._launch(member)
        return member

    def _has_room(self, member: _Member) -> bool:
        return not member.retired and member.pages < self._pages

    async def _launch(self, member: _Member) -> None:
        try:
            process = await self._engine.launch(lambda gone: self._on_gone(member))
        except BaseException:
            member.pages -= 1
            await self._drop(member)
            raise
        if self._closed:
            await process.close()
            raise RenderError(Reason.BROWSER, "the browser is closed")
        member.process = process
        self.launched += 1
        async with self._room:
            self._room.notify_all()

    async def _drop(self, member: _Member) -> None:
        if member in self._members:
            self._members.remove(member)
        async with self._room:
            self._room.notify_all()

    def _on_gone(self, member: _Member) -> None:
        """A process ended by itself."""
        if member in self._members:
            self.crashes += 1
            self._remove(member, "crash")

    def _remove(self, member: _Member, reason: str) -> None:
        member.retired = member.retired or reason
        self.retired[reason] += 1
        if member in self._members:
            self._members.remove(member)
        if member.process is not None:
            self._ended_cpu_s += member.process.cpu_s()
            self._close_later(member.process)

    def _close_later(self, process: BrowserProcess) -> None:
        """Kill what is left of a process and delete its profile."""
        closing = asyncio.get_running_loop().create_task(process.close())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    def _watch_later(self) -> None:
        if self._max_memory_bytes:
            self._watch_timer.start(WATCH_S)

    def _watch(self) -> None:
        """Hold the limit of memory of each process with pages."""
        used = [member for member in self._members if member.pages and member.process is not None]
        for member in used:
            self._limit_memory(member)
        if used:
            self._watch_later()

    def _limit_memory(self, member: _Member) -> None:
        process, limit = member.process, self._max_memory_bytes
        assert process is not None
        size = process.memory_bytes()
        if size <= limit or process.end_page_above(limit // self._pages):
            return
        if size > limit * HARD_LIMIT:
            log.warning("a browser has %d MB of memory, and is ended", size >> 20)
            self._remove(member, MEMORY)
        else:
            member.retired = member.retired or MEMORY

    async def _release(self, member: _Member) -> None:
        member.pages -= 1
        if not member.retired:
            member.retired = self._reason_to_retire(member)
        if member.retired and not member.pages and member in self._members:
            self._remove(member, member.retired)
        async with self._room:
            self._room.notify_all()

    def _reason_to_retire(self, member: _Member) -> str:
        if self._max_uses and member.uses >= self._max_uses:
            return "uses"
        if self._max_memory_bytes and member.process is not None:
            return MEMORY if member.process.memory_bytes() > self._max_memory_bytes else ""
        return ""
