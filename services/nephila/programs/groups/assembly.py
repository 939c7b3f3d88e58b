"""One crawl by groups: storage and the bus of the main process, and the group processes.

The main process has the one writer of the database, the page budgets and the leases of addresses. It fetches, parses
and admits nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import msgspec

from nephila.kernel.bus.local import LocalBus
from nephila.kernel.bus.workers import protocol as p
from nephila.kernel.layout import layout_of
from nephila.kernel.messages import CrawlJob, Outcome
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import UserError
from nephila.parser.rule_engine import NoJudge, RuleJudge, make_judge
from nephila.programs.groups.members import GroupMember, Groups
from nephila.programs.groups.supervisor import GroupConfigs, GroupProcesses
from nephila.programs.service_configs import FLUSH_S, GRACE_S, ServiceConfigs
from nephila.scheduler.frontier.frontier import address_limits
from nephila.scheduler.group.scheduler import PARTITIONS, ranges
from nephila.storage.service import build as build_storage

SETTLE_S = 5.0
"""Longest wait, at the end, for groups that write the receipts of the last flush."""


class GroupAssembly:
    """The main process of a crawl by groups, while it runs."""

    browser = None
    """Pages are not rendered."""

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
        storage = msgspec.structs.replace(configs.storage, partitions=PARTITIONS)
        self.storage = build_storage(storage, bus, clock, on_fatal)
        self.judge: RuleJudge = make_judge(bus, clock) if rules else NoJudge()
        frontier = Path(configs.scheduler.directory)
        parts = ranges(min(configs.workers, PARTITIONS, configs.scheduler.concurrency))
        self.groups = Groups(
            bus,
            clock,
            [GroupMember(number, partitions) for number, partitions in enumerate(parts)],
            layout_of(PARTITIONS),
            address_limits(configs.scheduler),
            frontier,
            on_turn,
            on_fatal,
        )
        self.processes = GroupProcesses(group_configs(configs, len(parts)), self.groups, bus, clock, on_fatal)
        self.frontier = GroupedFrontier(self.groups)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Read the logs, open storage, let the groups fetch."""
        self.judge.start()
        started = False
        try:
            self.groups.relay.open()
            recovered = await self.processes.recover()
            self.frontier.recovered(recovered)
            await self.storage.start(self.frontier.all_ended)
            started = True
            if self.storage.last_fetches and not any(group.commits for group in recovered):
                raise UserError(
                    f"the logs in {self.groups.relay.path.parent} are gone, the rows are not: crawl into a new --out"
                )
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

    def skip_grace(self) -> None:
        """End a drain at once: the one in progress, or the next one."""
        self.grace_s = 0.0

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


class GroupedFrontier:
    """What the groups have reported (`CrawlFrontier`)."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups
        self.restored = (0, 0)
        self.all_ended: dict[str, int] | None = None
        """Ended URLs by job, each with a durable row; None without a log."""
        self.anchors_of: dict[str, tuple[set[str], set[str]]] = {}
        self._jobs: dict[str, CrawlJob] = {}
        self.hold = groups.hold

    def recovered(self, groups: list[p.Recovered]) -> None:
        """The groups have read their logs."""
        self.restored = sum(group.urls for group in groups), sum(group.leased for group in groups)
        self._jobs = {job.uid: job for group in groups for job in group.jobs}
        if any(group.commits for group in groups):
            self.all_ended = {uid: sum(self.ended(uid).values()) for uid in self._jobs}

    @property
    def idle(self) -> bool:
        return self._groups.idle

    @property
    def fetchable(self) -> int:
        return sum(job.fetchable for member in self._groups.members for job in member.report.jobs)

    @property
    def queued(self) -> int:
        return sum(job.queued for member in self._groups.members for job in member.report.jobs)

    @property
    def requests(self) -> int:
        return sum(member.requests for member in self._groups.members)

    @property
    def in_flight(self) -> int:
        return sum(member.report.in_flight for member in self._groups.members)

    @property
    def left(self) -> int:
        return self.queued + sum(member.report.outstanding for member in self._groups.members)

    @property
    def errors(self) -> Counter[str]:
        return sum((member.errors for member in self._groups.members), Counter())

    @property
    def causes(self) -> Counter[str]:
        return sum((member.causes for member in self._groups.members), Counter())

    @property
    def first_fault(self) -> str:
        return next((member.report.first_fault for member in self._groups.members if member.report.first_fault), "")

    @property
    def refused_seeds(self) -> list[tuple[str, str]]:
        return self._groups.refused_seeds

    def ended(self, uid: str) -> Counter[Outcome]:
        return self._groups.ended(uid)

    def spec(self, uid: str) -> CrawlJob | None:
        return self._groups.job(uid) or self._jobs.get(uid)

    def page_limit(self, uid: str) -> int:
        budget = self._groups.budgets.get(uid)
        return budget.max_pages if budget is not None else 0

    def budget_spent(self, uid: str) -> bool:
        limit = self.page_limit(uid)
        return bool(limit) and self.ended(uid)[Outcome.STORED] >= limit

    def quota_used_up(self, uid: str) -> str:
        """Jobs with quotas are not crawled by groups."""
        return ""

    def window_waited_for(self, uid: str) -> str:
        """Jobs with windows are not crawled by groups."""
        return ""

    def out_of_scope(self, uid: str) -> int:
        return sum(job.out_of_scope for job in self._groups.reports(uid))

    def links_lost(self, uid: str) -> int:
        return sum(job.links_lost for job in self._groups.reports(uid))

    def anchors(self, uid: str) -> tuple[list[str], set[str]]:
        anchors, of_seeds = self.anchors_of.get(uid, (set(), set()))
        return sorted(anchors), of_seeds

    def next_fetch(self) -> float | None:
        instants = [member.report.next_fetch for member in self._groups.members]
        return min((at for at in instants if at is not None), default=None)

    def hosts_waiting(self) -> int:
        return sum(member.report.hosts_waiting for member in self._groups.members)

    def waiting_for_address(self) -> tuple[int, str]:
        reports = [member.report.waiting_for_address for member in self._groups.members]
        return sum(hosts for hosts, _ in reports), max(reports)[1]

    def waiting_hosts(self) -> list[tuple[str, float, int]]:
        hosts = [host for member in self._groups.members for host in member.report.waiting_hosts]
        return sorted(hosts, key=lambda row: row[1])

    def refetch(self, uid: str) -> None:
        """A crawl by groups fetches no ended URL again."""

    def refetched(self) -> None:
        pass

    async def durable(self) -> None:
        await self._groups.settled()
