"""The live line of a crawl: on a terminal one line that is rewritten, elsewhere nothing."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING

from nephila import jobview
from nephila.cli.safe import plain

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from nephila.embedded import Crawl

WINDOW_S = 5.0
"""Seconds over which pages per second are averaged."""


class Progress:
    """Shows pages/s, queued, in flight, hosts waiting and errors by class twice a second."""

    def __init__(self, console: Console | None) -> None:
        """Without a console nothing is shown, and nothing loaded that could."""
        self._console = console
        self._marks: deque[tuple[float, int]] = deque()
        self._task: asyncio.Task[None] | None = None

    def watch(self, crawl: Crawl) -> None:
        """Start showing a crawl; harmless when the output is not a terminal."""
        if self._console is not None and self._console.is_terminal:
            self._task = asyncio.ensure_future(self._run(crawl))

    async def stop(self) -> None:
        """Take the line away."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self, crawl: Crawl) -> None:
        from rich.live import Live

        with Live(console=self._console, auto_refresh=False, transient=True) as live:
            while True:
                live.update(self.line(crawl), refresh=True)
                await asyncio.sleep(0.5)

    def line(self, crawl: Crawl) -> Text:
        """The line as it is now."""
        from rich.text import Text

        scheduler = crawl.scheduler
        ended = scheduler.ended(crawl.plan.job.uid)
        total = sum(ended.values())
        rate = self._rate(total)
        parts = [
            f"{total:,} pages",
            f"{rate:.0f}/s" if rate >= 10 else f"{rate:.1f}/s",
            f"{scheduler.queued:,} queued",
            f"{jobview.in_flight(scheduler)} in flight",
            f"{scheduler.hosts_waiting():,} hosts waiting",
        ]
        errors = scheduler.errors.most_common(3)
        if errors:
            parts.append("errors: " + ", ".join(f"{plain(name, 30)} {count:,}" for name, count in errors))
        return Text(" · ".join(parts), overflow="ellipsis", no_wrap=True)

    def _rate(self, total: int) -> float:
        now = time.monotonic()
        self._marks.append((now, total))
        while len(self._marks) > 2 and now - self._marks[0][0] > WINDOW_S:
            self._marks.popleft()
        (start, before) = self._marks[0]
        return (total - before) / (now - start) if now > start else 0.0
