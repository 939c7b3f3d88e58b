"""The frontier of a crawl by groups, as the main process knows it (`CrawlFrontier`, `FrontierOfGroups`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from nephila.kernel.bus.pipe import protocol as p
from nephila.kernel.messages import CrawlJob, JobStatus, Outcome
from nephila.programs.groups.job_status import counts_of, job_status
from nephila.programs.groups.members import Groups
from nephila.programs.groups.refetch import GroupedRefetch
from nephila.programs.groups.supervisor import GroupProcesses


class GroupedFrontier:
    """What the groups have reported (`CrawlFrontier`)."""

    def __init__(self, groups: Groups, processes: GroupProcesses) -> None:
        self._groups = groups
        self.add_seeds = groups.add_seeds
        self._processes = processes
        self.layout = groups.layout
        self._refetch: GroupedRefetch | None = None
        self.restored = (0, 0)
        self.all_ended: dict[str, int] | None = None
        """Ended URLs by job, each with a durable row; None without a log."""
        self.anchors_of: dict[str, set[str]] = {}
        self.spec, self.jobs = groups.job, groups.jobs
        self.hold, self.take_refused_seeds = groups.hold, groups.take_refused_seeds

    def recovered(self, groups: list[p.Recovered]) -> None:
        """The groups have read their logs."""
        self.restored = sum(group.urls for group in groups), sum(group.leased for group in groups)
        self._groups.restore(job for group in groups for job in group.jobs)
        if any(group.commits for group in groups):
            self.all_ended = {uid: sum(self.ended(uid).values()) for uid in self.jobs()}

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
    def wire_bytes(self) -> int:
        return sum(member.wire_bytes for member in self._groups.members)

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
        return next((member.first_fault for member in self._groups.members if member.first_fault), "")

    @property
    def refused_seeds(self) -> list[tuple[str, str]]:
        return self._groups.refused_seeds

    def ended(self, uid: str) -> Counter[Outcome]:
        return self._groups.ended(uid)

    def status(self, job: CrawlJob) -> JobStatus:
        """The status of a job now."""
        return job_status(job.uid, self._groups.reports(job.uid), self.page_limit(job.uid))

    def counts(self) -> dict[str, tuple[int, ...]]:
        return {job.uid: counts_of(self.status(job)) for job in self.jobs().values()}

    async def ask(self, partitions: Sequence[int] | None, question: bytes) -> list[bytes]:
        """The answers of the groups of these partitions; None: of all. Raises `NotReadyError`."""
        await self._processes.divided()
        members = self._groups.members
        numbers = [m.number for m in members if partitions is None or any(p in m.partitions for p in partitions)]
        return await self._processes.ask(numbers, "control", question)

    def page_limit(self, uid: str) -> int:
        budget = self._groups.budgets.get(uid)
        return budget.max_pages if budget is not None else 0

    def budget_spent(self, uid: str) -> bool:
        limit = self.page_limit(uid)
        return bool(limit) and self.ended(uid)[Outcome.STORED] >= limit

    def quota_used_up(self, uid: str) -> str:
        return max((report.quota for report in self._groups.reports(uid)), default="")

    def window_waited_for(self, uid: str) -> str:
        return max((report.window for report in self._groups.reports(uid)), default="")

    def out_of_scope(self, uid: str) -> int:
        return sum(member.out_of_scope(uid) for member in self._groups.members)

    def links_lost(self, uid: str) -> int:
        return sum(job.links_lost for job in self._groups.reports(uid))

    def anchors(self, uid: str) -> list[str]:
        return sorted(self.anchors_of.get(uid, ()))

    def redirect_anchors(self, uid: str) -> list[str]:
        return sorted({anchor for member in self._groups.members for anchor in member.redirect_anchors(uid)})

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

    def refetch(self, uid: str) -> GroupedRefetch | None:
        if self.spec(uid) is None:
            return None
        groups = {number: member.number for member in self._groups.members for number in member.partitions}
        self._refetch = GroupedRefetch(uid, self.layout, groups.__getitem__, self._processes.refetch)
        return self._refetch

    async def refetched(self) -> None:
        if self._refetch is not None:
            await self._refetch.flush()

    async def durable(self) -> None:
        await self._groups.settled()
        await self._processes.divided()
        await self._processes.ask([member.number for member in self._groups.members], "durable", b"")
