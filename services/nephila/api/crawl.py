"""One crawl as an iterable: `nephila crawl` in a separate thread, its pages yielded one by one.

Invariants: nothing is fetched before the first page is requested; leaving the iteration stops the crawl and waits for
its end; errors are raised in the iteration. The crawl has its own event loop, so a slow consumer or a notebook does not
delay its fetches.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures.thread  # noqa: F401 - registers its end before that of crawls
import contextlib
import inspect
import logging
import shutil
import tempfile
import threading
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from msgspec.structs import replace

from nephila.api.handover import Handover
from nephila.api.options import Rules, crawl_request
from nephila.api.page import Page
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.runtime.errors import UsageError
from nephila.programs.crawl.plan import Plan
from nephila.programs.crawl.program import CrawlProgram, Result
from nephila.programs.crawl.run import Run, execute
from nephila.programs.crawl.stored import read_plan

if TYPE_CHECKING:
    from collections.abc import Mapping

log = logging.getLogger("nephila")

AHEAD: Final = 64
"""URLs fetched, or in flight, ahead of the page that the caller works on."""
LEAVE_S: Final = 15.0
"""Longest wait for the end of the crawl when the iteration is left; it takes a second or two."""

_running: weakref.WeakSet[Crawl] = weakref.WeakSet()
"""Crawls whose iteration has started."""

OnPage = Callable[[Page], "Iterable[str] | Awaitable[Iterable[str] | None] | None"]


@dataclass(frozen=True, slots=True)
class End:
    """How a crawl has ended."""

    reason: str
    """done, max_pages, quota, max_time, waiting, interrupted or failed."""
    outcomes: dict[str, int] = field(default_factory=dict)
    """Rows by outcome: stored, denied, failed, dropped."""
    reasons: dict[str, int] = field(default_factory=dict)
    """Rows by "outcome(reason)"."""
    left: int = 0
    """URLs left in the queues; `resume=True` continues with them."""
    elapsed_s: float = 0.0
    problem: str = ""
    """Why no page is stored, in one line; empty when one is."""
    refused_seeds: list[tuple[str, str]] = field(default_factory=list)
    """(seed, why it is not crawled)."""


class Crawl:
    """A crawl that yields its pages; `nephila.crawl` creates it. Iterable once, by `for` or `async for`."""

    def __init__(
        self,
        seeds: tuple[str, ...],
        *,
        out: Path | None,
        resume: bool,
        rules: Rules | None,
        on_page: OnPage | None,
        ahead: int,
        all_outcomes: bool,
        found_links: bool,
        fresh: bool = False,
        refresh: bool = False,
        retry_failed: bool = False,
        options: Mapping[str, Any],
    ) -> None:
        """Raises `UsageError`, `UserError`."""
        if type(ahead) is not int or ahead < 1:
            raise UsageError(f"ahead is {ascii(ahead)[:60]}; at least one page has to be fetched at a time")
        if on_page is not None and not callable(on_page):
            raise UsageError(f"on_page: {ascii(on_page)[:60]} cannot be called with a page")
        if (resume or refresh or retry_failed) and out is None:
            raise UsageError("resume, refresh and retry_failed need out, the directory of the crawl")
        self.out: Path = Path(tempfile.mkdtemp(prefix="nephila-")) if out is None else out
        """Directory of the result; without `out` a temporary one, removed after the end of the crawl."""
        self._remove = weakref.finalize(self, shutil.rmtree, self.out, True) if out is None else None
        self.end: End | None = None
        """How it ended, once it has."""
        self._on_page = on_page
        self._all_outcomes = all_outcomes
        modes = {"resume": resume, "fresh": fresh, "refresh": refresh, "retry_failed": retry_failed}
        plan = read_plan(crawl_request(seeds, self.out, rules, options=options, modes=modes))
        self._plan = _handed_over(plan, ahead, temporary=out is None)
        clock = SystemClock()
        self._bus = Handover(clock, all_outcomes=all_outcomes, found_links=found_links, on_quiet=self._on_quiet)
        self._clock = clock
        self._crawl: CrawlProgram | None = None
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._leaving = False

    # ---- iteration

    def __iter__(self) -> Iterator[Page]:
        self._start()
        try:
            while (page := self._bus.next_page().result()) is not None:
                if self._on_page is not None:
                    links = self._on_page(page)
                    if inspect.isawaitable(links):
                        raise UsageError("on_page is a coroutine function: iterate with async for")
                    _follow(page, links)
                yield page
        finally:
            self.close()

    async def __aiter__(self) -> AsyncIterator[Page]:
        self._start()
        try:
            while (page := await asyncio.wrap_future(self._bus.next_page())) is not None:
                if self._on_page is not None:
                    links = self._on_page(page)
                    _follow(page, await links if inspect.isawaitable(links) else links)
                yield page
        finally:
            await self.aclose()

    # ---- life

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.aclose()

    def close(self) -> None:
        """Stop the crawl and wait for its end. The last page that was yielded counts as not taken."""
        self._leave()
        if self._thread is not None:
            self._thread.join(LEAVE_S)
        self._remove_temporary()

    async def aclose(self) -> None:
        """The same without blocking the event loop."""
        self._leave()
        thread = self._thread
        if thread is not None and thread.is_alive():
            await asyncio.get_running_loop().run_in_executor(None, thread.join, LEAVE_S)
        self._remove_temporary()

    def _remove_temporary(self) -> None:
        if self._remove is not None and (self._thread is None or not self._thread.is_alive()):
            self._remove()

    def _leave(self) -> None:
        self._leaving = True
        loop, crawl = self._loop, self._crawl
        if loop is not None and crawl is not None:
            with contextlib.suppress(RuntimeError):  # it has ended
                loop.call_soon_threadsafe(_stop_at_once, crawl)

    def _start(self) -> None:
        if self._thread is not None or self._leaving:
            raise UsageError("a crawl is iterated over once; start another one, or continue with resume=True")
        self._thread = threading.Thread(target=self._work, name="nephila-crawl", daemon=True)
        self._thread.start()
        _running.add(self)

    # ---- in the thread

    def _work(self) -> None:
        error: BaseException | None = None
        try:
            run = execute(self._plan, self._go, warn=log.warning, info=log.info)
            result = run.result
            error = result.error
            self.end = End(
                result.reason,
                run.counts.outcomes,
                dict(run.file.reasons),
                result.left,
                result.elapsed_s,
                _problem(run),
                result.refused_seeds,
            )
            self._log_result(self.end)
        except BaseException as failed:
            error = failed
        self._bus.finish(error)

    def _go(self, build: Callable[..., CrawlProgram]) -> Result:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            return runner.run(self._main(build))

    async def _main(self, build: Callable[..., CrawlProgram]) -> Result:
        self._crawl = build(self._clock, self._bus)
        self._loop = asyncio.get_running_loop()
        self._bus.begin()
        if self._leaving:
            self._loop.call_soon(_stop_at_once, self._crawl)
        return await self._crawl.run()

    def _on_quiet(self) -> None:
        if self._crawl is not None:
            self._crawl.on_quiet()

    def _log_result(self, end: End) -> None:
        for url, reason in end.refused_seeds:
            log.warning("%s: not crawled: %s", url, reason)
        if end.problem and end.reason != "interrupted" and not self._all_outcomes:
            log.warning("%s", end.problem)


def _handed_over(plan: Plan, ahead: int, *, temporary: bool) -> Plan:
    """The plan for a caller who takes page after page, `ahead` of them fetched before they are taken."""
    configs, run = plan.configs, replace(plan.run, window=ahead)
    # A temporary result need not survive a power cut, and a small flush interval yields pages sooner.
    storage = replace(configs.storage, fsync=False, flush_interval_s=0.02) if temporary else configs.storage
    scheduler = replace(configs.scheduler, window=ahead)
    return replace(plan, run=run, configs=replace(configs, scheduler=scheduler, storage=storage))


def _problem(run: Run) -> str:
    result = run.result
    if result.error is not None:
        return str(result.error)
    if run.counts.outcomes.get("stored"):
        return ""
    reasons = sorted(run.file.reasons)
    refused = [f"{url}: {reason}" for url, reason in result.refused_seeds[:1]]
    return f"no page was stored: {', '.join([*reasons, *refused]) or 'no URL belongs to the crawl'}"


def _close_all() -> None:
    """At the exit of the interpreter: stop the crawls whose iteration has not ended."""
    for crawl in list(_running):
        crawl.close()


# Before the pools of threads are shut, by which storage writes: the last that is registered runs first, and atexit
# comes after all of them.
getattr(threading, "_register_atexit", atexit.register)(_close_all)


def _stop_at_once(crawl: CrawlProgram) -> None:
    crawl.stop("interrupted")
    crawl.assembly.skip_grace()


def _follow(page: Page, links: Iterable[str] | None) -> None:
    if links is not None:
        page.follow(links)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
