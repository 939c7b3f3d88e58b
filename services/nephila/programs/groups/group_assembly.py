"""One program with groups: storage and the bus of the main process, and the group processes.

The main process has the one writer of the database, the page budgets and the leases of addresses. It fetches, parses
and admits nothing. Without a number of groups it begins with one, and divides the partitions anew when they are loaded.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from nephila.kernel.bus.local import LocalBus
from nephila.kernel.layout import layout_of
from nephila.kernel.runtime.clock import Clock
from nephila.parser.rule_engine import NoJudge, RuleJudge, make_judge
from nephila.programs.control_port import Parts
from nephila.programs.groups.group_member import GroupMember
from nephila.programs.groups.grouped_frontier import GroupedFrontier
from nephila.programs.groups.members import Groups
from nephila.programs.groups.supervisor import GroupConfigs, GroupProcesses
from nephila.programs.program_metrics import program_metrics
from nephila.programs.service_configs import FLUSH_S, GRACE_S, ServiceConfigs, no_browser
from nephila.scheduler.group.partition_logs import PARTITIONS, ranges
from nephila.storage.ledgers.read_connection import NoTables, open_each
from nephila.storage.service import build as build_storage
from nephila.storage.source import Source

LOADED_AT = 8
"""Requests in flight per group above which further groups are worth their start; a crawl of one site needs one."""
if TYPE_CHECKING:
    from prometheus_client.registry import Collector

    from nephila.downloader.service import Downloader
    from nephila.programs.groups.worker.group import Group

SETTLE_S = 5.0
"""Longest wait, at the end, for groups that write the receipts of the last flush."""


class GroupAssembly:
    """The main process of a crawl by groups, while it runs."""

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
        """As `Assembly`; `on_turn` is called when a group has reported."""
        self.clock = clock
        self.bus = bus
        self.grace_s = grace_s
        self._directory = configs.storage.directory
        self._rows: Source = configs.storage.store or self._directory
        storage = msgspec.structs.replace(configs.storage, partitions=PARTITIONS)
        self.storage = build_storage(storage, bus, clock, on_fatal)
        self.judge: RuleJudge = make_judge(bus, clock) if rules else NoJudge()
        frontier = Path(configs.scheduler.directory)
        self._most = min(configs.workers, PARTITIONS, configs.scheduler.concurrency)
        self._on_turn = on_turn
        parts = ranges(min(configs.workers_first or self._most, self._most) or 1)
        self.groups = Groups(
            bus,
            clock,
            [GroupMember(number, partitions) for number, partitions in enumerate(parts)],
            layout_of(PARTITIONS),
            configs.scheduler.address_limits(),
            frontier,
            self._on_report,
            on_fatal,
            on_lost=self.storage.abandon_pages,
            fsync=configs.storage.fsync,
        )
        self._here = None if configs.workers else _group()
        """The group, where it runs in this process."""
        self.processes = GroupProcesses(
            partial(group_configs, configs), self.groups, bus, clock, on_fatal, here=self._here
        )
        self.frontier = GroupedFrontier(self.groups, self.processes)
        self._no_browser = "" if configs.downloader.browser.enabled else no_browser(configs.downloader)
        self._configs = {name: getattr(configs, name) for name in ("scheduler", "downloader", "parser", "storage")}

    def _on_report(self) -> None:
        groups = len(self.groups.members)
        if groups < self._most and not self.groups.held:
            count = groups_for(self.frontier.in_flight, groups, self._most)
            if count > groups and self.processes.whole:
                self.processes.divide(count, lambda: self.storage.drain(FLUSH_S))
        self._on_turn()

    @property
    def browser(self) -> Downloader | None:
        """The downloader whose pages a browser renders in this process."""
        fetching = self._here.downloaders if self._here is not None else []
        return next((downloader for downloader in fetching if downloader.browser is not None), None)

    @property
    def control_parts(self) -> Parts:
        """What the control API needs of the services."""
        return Parts(
            self.bus,
            self.clock,
            None,
            verdicts=self.judge.verdicts,
            pages=lambda: self.storage.outcomes["stored"],
            store=lambda: self.storage.store,
            no_browser=self._no_browser,
            downloader=self._configs["downloader"],
            processes=lambda: self.processes.pids,
            configs=self._configs,
            groups=self.frontier,
        )

    async def metrics(self, beside: Callable[[], list[Collector]] = list) -> tuple[bytes, str]:
        """The text for Prometheus, and its content type. Metrics of a group have its number as the label `worker`.
        `beside`: the metrics of what runs beside the services."""
        from nephila.downloader.metrics import METRICS as DOWNLOADER
        from nephila.kernel.runtime.metrics import WorkerMetricsCollector
        from nephila.parser.metrics import PAGE_METRICS
        from nephila.scheduler.metrics import FRONTIER_METRICS

        sent = await self.processes.metrics()
        tables = (("scheduler", FRONTIER_METRICS), ("downloader", DOWNLOADER), ("parser", PAGE_METRICS))
        services = [
            WorkerMetricsCollector(name, table, {group: values[name] for group, values in sent.items()})
            for name, table in tables
        ]
        return program_metrics(self.judge, self.storage, self.bus, services, beside())

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Read the logs, open storage, let the groups fetch."""
        self.judge.start()
        started = False
        try:
            self._divide()
            self.groups.relay.open()
            recovered = await self.processes.recover()
            self.frontier.recovered(recovered)
            await self.storage.start(self.frontier.all_ended)
            started = True
            if not any(group.commits for group in recovered):
                await self.processes.begin_after(self.storage.last_fetches)
            self.groups.start()
            self.processes.begin()
            self.judge.load(self._directory)
            yield
        finally:
            self.judge.store(self._directory)
            await self.processes.close()
            if started:
                await self.storage.close()
            self.groups.relay.close()

    def _divide(self) -> None:
        """The frontier of one process is divided before groups read it, unless the rows beside it are refused."""
        frontier, clock = self.groups.relay.path.parent, self.clock
        if any(frontier.glob("*.log")):
            with contextlib.suppress(NoTables), open_each(self._rows):
                pass
            # Few starts divide a frontier: the others do not load the scheduler.
            from nephila.scheduler.group.divide import divide

            divide(frontier, self._configs["scheduler"], clock.monotonic(), clock.now())

    def skip_grace(self) -> None:
        """End a drain at once: the one in progress, or the next one."""
        self.grace_s = 0.0
        self.processes.skip_grace()

    async def drain(self, flush: Callable[[], bool]) -> None:
        """Stop fetching, wait for fetches in flight up to the grace period, then write the rows if `flush()`."""
        until = self.clock.monotonic() + self.grace_s
        await self.processes.drain(self.grace_s)
        if flush():
            await self.storage.drain(max(until - self.clock.monotonic(), FLUSH_S))
        # The receipts of the last flush are in the logs when the groups have confirmed them.
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(_resolved(self.groups), SETTLE_S)
        for uid in self.groups.budgets:
            self.frontier.anchors_of[uid] = await self.processes.anchors(uid)


def groups_for(in_flight: int, groups: int, most: int) -> int:
    """How many groups these requests are worth. A new division stops all groups for a moment, so it at least doubles
    them."""
    if in_flight <= LOADED_AT * groups:
        return groups
    return min(max(2 * groups, in_flight // LOADED_AT), most)


def _group() -> Group:
    # Most main processes fetch nothing: they do not load what fetches.
    from nephila.programs.groups.worker.group import Group

    return Group()


async def _resolved(groups: Groups) -> None:
    await groups.settled()


def group_configs(configs: ServiceConfigs, groups: int) -> GroupConfigs:
    """The settings of each group: its share of what a program may use."""
    replace, scheduler, downloader = msgspec.structs.replace, configs.scheduler, configs.downloader
    return GroupConfigs(
        replace(
            scheduler,
            concurrency=max(scheduler.concurrency // groups, 1),
            window=max(scheduler.window // groups, 1),
            hot_hosts=max(scheduler.hot_hosts // groups, 1),
            hot_robots_bytes=scheduler.hot_robots_bytes // groups,
            segment_bytes=max(scheduler.segment_bytes // groups, 1),
        ),
        replace(downloader, concurrency=max(downloader.concurrency // groups, 1)),
        replace(configs.parser, partitions=PARTITIONS),
    )
