"""Progress of a crawl on standard error: a live line on a terminal, else one line every 10 s.

With `verbose` each URL that ends is one line as well. `--quiet` and `--json` print none of it.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from nephila.cli.terminal import sanitize
from nephila.kernel.bus.contract import Delivery
from nephila.kernel.messages import Outcome, Record
from nephila.kernel.topics import RECORDS

if TYPE_CHECKING:
    from rich.console import Console

    from nephila.programs.crawl.program import CrawlProgram

WINDOW_S = 5.0
"""Seconds over which pages per second are averaged on a terminal."""
ESTIMATE_S = 60.0
"""Seconds over which the speed for the time left is averaged."""
REFRESH_S = 0.5
LOG_S = 10.0
"""Seconds between two lines where standard error is a file or a pipe."""
ENDING = "ending: fetches in flight get up to {grace_s:.0f} s; Ctrl-C again to stop at once"


class Mark(NamedTuple):
    """Counts of the crawl at one instant."""

    at: float
    stored: int
    ended: int
    queued: int


class ProgressPrinter:
    """Prints to one console, from `watch` to `stop`."""

    def __init__(self, console: Console | None, *, verbose: bool = False) -> None:
        """Without a console nothing is printed, and Rich is not imported."""
        self._console = console
        self._verbose = verbose
        self._marks: deque[Mark] = deque()
        self._tasks: list[asyncio.Task[None]] = []
        self._ending = ""
        self._fault = ""

    def watch(self, crawl: CrawlProgram) -> None:
        """Start; called on the loop of the crawl, before it runs."""
        if self._console is None:
            return
        if self._verbose:
            crawl.bus.subscribe(RECORDS, "progress", self._print_record, credits=1000)
        run = self._rewrite if self._console.is_terminal else self._log
        self._tasks = [asyncio.ensure_future(run(crawl))]

    def ending(self, grace_s: float) -> None:
        """The crawl drains from now on."""
        self._ending = ENDING.format(grace_s=grace_s)
        if self._console is not None and not self._console.is_terminal:
            self._print(self._ending)

    async def stop(self) -> None:
        """Remove the live line."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _rewrite(self, crawl: CrawlProgram) -> None:
        from rich.live import Live
        from rich.text import Text

        with Live(console=self._console, auto_refresh=False, transient=True) as live:
            while True:
                self._say_fault(crawl)
                live.update(Text(self.line(crawl), overflow="ellipsis", no_wrap=True), refresh=True)
                await asyncio.sleep(REFRESH_S)

    async def _log(self, crawl: CrawlProgram) -> None:
        self.line(crawl)  # sets the start of the rate of the first line
        due = time.monotonic() + LOG_S
        while True:
            await asyncio.sleep(REFRESH_S)
            self._say_fault(crawl)
            if time.monotonic() >= due:
                due += LOG_S
                self._print(self.line(crawl))

    def _say_fault(self, crawl: CrawlProgram) -> None:
        """Once: the first try that failed, while no page is stored."""
        fault = crawl.frontier.first_fault
        if fault and not self._fault:
            self._fault = fault
            if not crawl.frontier.ended(crawl.job.uid)[Outcome.STORED]:
                self._print(sanitize(fault, 800))

    def line(self, crawl: CrawlProgram) -> str:
        """The state of the crawl in one line."""
        frontier = crawl.frontier
        ended = frontier.ended(crawl.job.uid)
        total = sum(ended.values())
        limit = frontier.page_limit(crawl.job.uid)
        rate = self._rate(Mark(time.monotonic(), ended[Outcome.STORED], total, frontier.queued))
        parts = [
            duration(crawl.elapsed_s),
            f"{ended[Outcome.STORED]:,}/{limit:,} pages" if limit else f"{total:,} pages",
            f"{rate:.0f}/s" if rate >= 10 else f"{rate:.1f}/s",
            f"{frontier.queued:,} queued",
            f"{frontier.in_flight} in flight",
            f"{frontier.hosts_waiting():,} hosts waiting",
        ]
        lined, address = frontier.waiting_for_address()
        if lined:
            parts.append(f"{lined:,} wait for the address {sanitize(address, 50)} (--per-address)")
        left_s = self._left_s(limit)
        if left_s is not None:
            if crawl.plan.max_time_s:
                left_s = min(left_s, crawl.plan.max_time_s - crawl.elapsed_s)
            parts.insert(1, f"about {duration(max(left_s, 0.0))} left")
        errors = frontier.errors.most_common(3)
        if errors:
            parts.append("errors: " + ", ".join(f"{sanitize(name, 30)} {count:,}" for name, count in errors))
        if self._ending:
            parts.insert(0, self._ending)
        return " · ".join(parts)

    def _print_record(self, delivery: Delivery) -> None:
        record: Record = delivery.message
        delivery.ack()  # the record does not wait for its line
        outcome = record.outcome.name.lower() + (f"({record.reason})" if record.reason else "")
        size = f" {record.size_bytes:,} B" if record.size_bytes else ""
        self._print(f"{outcome} {record.status or '-'}{size} {sanitize(record.url, 2000)}")

    def _print(self, line: str) -> None:
        assert self._console is not None
        # Above the live line, which the console draws again afterwards.
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def _rate(self, mark: Mark) -> float:
        """URLs that ended per second, lately."""
        assert self._console is not None
        window_s = WINDOW_S if self._console.is_terminal else LOG_S
        self._marks.append(mark)
        while len(self._marks) > 2 and mark.at - self._marks[0].at > ESTIMATE_S:
            self._marks.popleft()
        before = [earlier for earlier in self._marks if mark.at - earlier.at <= window_s]
        # The line before the last is older than the window where lines come seldom.
        start = before[0] if len(before) > 1 else self._marks[max(len(self._marks) - 2, 0)]
        return (mark.ended - start.ended) / (mark.at - start.at) if mark.at > start.at else 0.0

    def _left_s(self, limit: int) -> float | None:
        """Seconds until the limit of pages, or until the end of a queue that shrinks; None: nobody knows."""
        start, mark = self._marks[0], self._marks[-1]
        took_s = mark.at - start.at
        if took_s <= 0:
            return None
        ends: list[float] = []
        if limit and mark.stored > start.stored:
            ends.append((limit - mark.stored) * took_s / (mark.stored - start.stored))
        if 0 < mark.queued < start.queued and mark.ended > start.ended:
            ends.append(mark.queued * took_s / (mark.ended - start.ended))
        return min(ends, default=None)


def duration(seconds: float) -> str:
    """12 s, 3 m 05 s, 2 h 07 m."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} m {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} m"
