"""The frontier of one process, as the program sees it (`crawl/frontier.py`)."""

from __future__ import annotations

from collections import Counter

from nephila.kernel.messages import CrawlJob
from nephila.scheduler import job_facts
from nephila.scheduler.standalone import Scheduler


class LocalFrontier:
    """The frontier of the scheduler of this process."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.hold, self.add_seeds = scheduler.hold, scheduler.add_seeds
        self.refetch, self.durable = scheduler.refetch, scheduler.durable
        self.hosts_waiting, self.waiting_for_address = scheduler.hosts_waiting, scheduler.waiting_for_address
        self.waiting_hosts, self.ended = scheduler.waiting_hosts, scheduler.ended

    @property
    def idle(self) -> bool:
        return self._scheduler.idle

    @property
    def fetchable(self) -> int:
        return self._scheduler.fetchable

    @property
    def queued(self) -> int:
        return self._scheduler.queued

    @property
    def requests(self) -> int:
        return self._scheduler.requests

    @property
    def in_flight(self) -> int:
        return job_facts.in_flight(self._scheduler)

    @property
    def left(self) -> int:
        return job_facts.left(self._scheduler)

    @property
    def errors(self) -> Counter[str]:
        return self._scheduler.errors

    @property
    def causes(self) -> Counter[str]:
        return self._scheduler.frontier.counters.causes

    @property
    def first_fault(self) -> str:
        return self._scheduler.frontier.counters.first_fault

    @property
    def refused_seeds(self) -> list[tuple[str, str]]:
        return self._scheduler.refused_seeds

    async def refetched(self) -> None:
        self._scheduler.refetched()

    @property
    def restored(self) -> tuple[int, int]:
        restored = self._scheduler.recover()
        return restored.urls, restored.leased

    def spec(self, uid: str) -> CrawlJob | None:
        return job_facts.spec(self._scheduler, uid)

    def page_limit(self, uid: str) -> int:
        return job_facts.page_limit(self._scheduler, uid)

    def budget_spent(self, uid: str) -> bool:
        return job_facts.budget_spent(self._scheduler, uid)

    def quota_used_up(self, uid: str) -> str:
        return job_facts.quota_used_up(self._scheduler, uid)

    def window_waited_for(self, uid: str) -> str:
        return job_facts.window_waited_for(self._scheduler, uid)

    def out_of_scope(self, uid: str) -> int:
        return job_facts.out_of_scope(self._scheduler, uid)

    def links_lost(self, uid: str) -> int:
        return job_facts.links_lost(self._scheduler, uid)

    def anchors(self, uid: str) -> list[str]:
        return job_facts.anchors(self._scheduler, uid)

    def redirect_anchors(self, uid: str) -> list[str]:
        return job_facts.redirect_anchors(self._scheduler, uid)

    def next_fetch(self) -> float | None:
        return job_facts.next_fetch(self._scheduler)
