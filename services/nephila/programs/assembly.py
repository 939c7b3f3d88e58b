"""Every service of one program on one loop over the in-process bus.

`Assembly` starts them from the far end of the route, drains them within a grace period and closes them in the opposite
order. `CrawlProgram` and `UpProgram` decide what is crawled and when the program ends.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

from nephila.downloader.admission.admission import make_budget
from nephila.downloader.refusal import RefuseBrowserRequests
from nephila.downloader.service import build as build_downloader
from nephila.downloader.service import build_browser
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.pages.read_pages import ReadPages
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.lifecycle import Service
from nephila.parser.rule_engine import NoJudge, RuleJudge, make_judge
from nephila.parser.service import build as build_parser
from nephila.programs.control_port import Parts
from nephila.programs.local_frontier import LocalFrontier
from nephila.programs.program_metrics import program_metrics
from nephila.programs.service_configs import FLUSH_S, GRACE_S, ServiceConfigs, no_browser
from nephila.scheduler.standalone import Scheduler
from nephila.scheduler.standalone import build as build_scheduler
from nephila.storage.service import build as build_storage

if TYPE_CHECKING:
    from prometheus_client.registry import Collector


class Assembly:
    """The services of one program, while it runs."""

    def __init__(
        self,
        configs: ServiceConfigs,
        clock: Clock,
        bus: LocalBus,
        *,
        on_fatal: Callable[[BaseException], None],
        on_turn: Callable[[], None],
        grace_s: float = GRACE_S,
        rules: bool = True,
    ) -> None:
        """`on_fatal` is called when rows or the log can no longer be written; `on_turn`, after each scheduler turn.
        `rules`: False where no job can have rules; then nothing of them is loaded."""
        self.clock = clock
        self.grace_s = grace_s
        self._directory = configs.storage.directory
        self._downloader_config = configs.downloader
        self._configs = {name: getattr(configs, name) for name in ("scheduler", "downloader", "parser", "storage")}
        self.bus = bus
        # Storage first: a raw sink has to see a page before the parser makes its record.
        self.storage = build_storage(configs.storage, self.bus, clock, on_fatal)
        self.judge: RuleJudge = make_judge(self.bus, clock) if rules else NoJudge()
        """Whether rules still fit their sites, whichever process has read the pages."""
        budget = make_budget(configs.downloader.admission, clock)
        read_pages = ReadPages(configs.parser)
        # The parser subscribes first: a page has to find it.
        self.parser = build_parser(
            configs.parser, bus, clock, with_judge=False, rules=rules, budget=budget, read_pages=read_pages
        )
        self.downloader = build_downloader(configs.downloader, bus, clock, budget=budget, read_pages=read_pages)
        self.browser = (
            build_browser(configs.downloader, bus, clock, budget=budget) if configs.downloader.browser.enabled else None
        )
        """The downloader whose pages a browser renders; None where there is none."""
        self.fetching: tuple[Service, ...] = tuple(
            service for service in (self.browser, self.downloader, self.parser) if service is not None
        )
        """What fetches and parses, in the order in which it is drained."""
        self._no_browser = "" if self.browser is not None else no_browser(configs.downloader)
        self.scheduler: Scheduler = build_scheduler(
            configs.scheduler, self.bus, clock, on_turn=on_turn, on_fatal=on_fatal
        )
        self.frontier = LocalFrontier(self.scheduler)

    @property
    def control_parts(self) -> Parts:
        """What the control API needs of the services."""
        return Parts(
            self.bus,
            self.clock,
            self.scheduler,
            verdicts=self.judge.verdicts,
            pages=lambda: self.storage.outcomes["stored"],
            store=lambda: self.storage.store,
            no_browser=self._no_browser,
            downloader=self._downloader_config,
            downloaders=lambda: [self.downloader, *([self.browser] if self.browser is not None else [])],
            configs=self._configs,
        )

    async def metrics(self, beside: Callable[[], list[Collector]] = list) -> tuple[bytes, str]:
        """The text for Prometheus, and its content type. `beside`: the metrics of what runs beside the services."""
        from nephila.downloader.metrics import BROWSER_METRICS, PLAIN_METRICS
        from nephila.kernel.runtime.metrics import MetricsCollector
        from nephila.parser.metrics import PAGE_METRICS
        from nephila.scheduler.metrics import FRONTIER_METRICS

        services: list[Collector] = [
            MetricsCollector("scheduler", self.scheduler, FRONTIER_METRICS),
            MetricsCollector("downloader", self.downloader, PLAIN_METRICS),
            MetricsCollector("downloader", self.browser or self.downloader, BROWSER_METRICS),
            MetricsCollector("parser", self.parser, PAGE_METRICS),
        ]
        return program_metrics(self.judge, self.storage, self.bus, services, beside())

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Start from the far end of the route, close in the opposite order."""
        services: tuple[Service, ...] = (*reversed(self.fetching), self.scheduler)
        started: list[Service] = []
        # Before storage opens and truncates files: the log holds the number of rows that must exist.
        self.scheduler.recover()
        self.judge.start()
        if self.browser is None:
            RefuseBrowserRequests(self.bus, self.clock).start()
        try:
            started.append(self.storage)
            await self.storage.start(self.scheduler.all_ended)
            self.scheduler.begin_after(self.storage.last_fetches)
            for service in services:
                started.append(service)
                await service.start()
            self.judge.load(self._directory)
            yield
        finally:
            self.judge.store(self._directory)
            for service in reversed(started):
                await service.close()

    def skip_grace(self) -> None:
        """End a drain at once: the one in progress, or the next one."""
        self.grace_s = 0.0

    async def drain(self, flush: Callable[[], bool]) -> None:
        """Stop fetching, wait for fetches in flight up to the grace period, then write the rows if `flush()`."""
        grace_s = self.grace_s
        until = self.clock.monotonic() + grace_s

        def left_s() -> float:
            return max(until - self.clock.monotonic(), 0.0) if self.grace_s else 0.0

        await self.scheduler.drain(grace_s)
        for service in self.fetching:
            grace_s = left_s()
            draining = asyncio.ensure_future(service.drain(grace_s))
            while not draining.done() and self.grace_s >= grace_s:
                await asyncio.wait([draining], timeout=0.1)
            if not draining.done():
                await service.drain(0.0)
            await draining
        if flush():
            await self.storage.drain(max(left_s(), FLUSH_S))
        # The receipts of that last flush reach the log in the scheduler's next turn.
        await asyncio.sleep(0)
