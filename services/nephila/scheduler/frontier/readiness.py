"""Readiness: which hosts can be fetched from, and where the others wait. Pure.

A host with queued URLs is in the heap of the store until its instant, ready, in the queue of its server address, fully
in use, or held back for a job or a spent budget.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from nephila.native import HostStore
from nephila.scheduler.frontier.host_state import Host, QueueSlot
from nephila.scheduler.frontier.host_table import HostTable
from nephila.scheduler.frontier.prepared_hosts import PreparedHosts
from nephila.scheduler.frontier.ready_hosts import ReadyHosts
from nephila.scheduler.frontier.turn_time import TurnTime
from nephila.scheduler.jobs.job import Job
from nephila.scheduler.jobs.jobs import Jobs
from nephila.scheduler.politeness.address_queue import AddressQueue
from nephila.scheduler.politeness.lead import Lead

COUNTED = 10_000
"""Hosts that a gauge looks at, at most."""


class Readiness:
    """The hosts of one frontier. Operations are O(log hosts) unless stated."""

    def __init__(
        self,
        store: HostStore,
        jobs: Jobs,
        hosts: HostTable,
        prepared: PreparedHosts,
        addresses: AddressQueue[QueueSlot],
        time: TurnTime,
        lead: Lead,
    ) -> None:
        self.ready = ReadyHosts()
        self.prepared = prepared
        self.addresses = addresses
        self.waiting_for_address: dict[int, QueueSlot] = {}
        """Hosts in the queue of a server address."""
        self._store = store
        self._jobs = jobs
        self._hosts = hosts
        self._time = time
        self._lead = lead

    def schedule(self, number: int, earliest: float = 0.0) -> None:
        """Put a host into the heap of the store, unless it is there, ready, in an address queue, or fully in use."""
        store = self._store
        if number in self.ready.by_host or store.ready_at(number) is not None or number in self.waiting_for_address:
            return
        host = self._hosts.hot.get(number)
        if not store.queued(number):
            if host is None or not host.in_flight:
                self.prepared.discard(number)
            return
        if host is None:
            # Its pace is read when it is taken. A restart must not read the pace of a million hosts.
            self.schedule_at(number, max(earliest, self._time.now))
        elif not host.in_flight or host.in_flight < self._hosts.limit(host):
            self.schedule_at(number, max(self._lead.due_at(host.pace.not_before), earliest, self._time.now))

    def schedule_at(self, number: int, at: float) -> None:
        """Set the instant at which a host is ready."""
        self._store.schedule(number, at)
        if number in self.prepared.by_number:
            self.prepared.schedule(number, at)

    def take_prepared(self) -> int:
        """The next prepared host that is ready, out of the heap of the store; -1 for none."""
        while (number := self.prepared.take(self._time.now)) >= 0:
            at = self._store.ready_at(number)
            if at is not None and at <= self._time.now:
                self._store.unschedule(number)
                return number
        return -1

    def may_prepare(self, job: Job) -> bool:
        """Whether robots.txt may be fetched for one more page of a job: the page budget covers that page too, or it may
        be a requisite."""
        if job.budget.requisites:
            return True
        return (
            not job.budget.max_pages or job.compiled.ignore_robots or job.budget.left > self.prepared.count(job.number)
        )

    def reschedule_ready(self) -> None:
        """Move all ready hosts back into the heap. A host is ready for the jobs that could go at that time: if that job
        is paused or deleted, the host would be lost to the others. O(ready hosts)."""
        for number in self.ready.hosts():
            self.ready.discard(number)
            self.schedule(number)

    def reschedule(self, host: Host, *, sooner: bool = False) -> None:
        """Schedule a host again after a change of its pace. `sooner`: also one that has to wait less than before."""
        number, due_at = host.number, self._lead.due_at(host.pace.not_before)
        at = self._store.ready_at(number)
        if at is not None:
            if at < due_at or sooner:
                self.schedule_at(number, max(due_at, self._time.now))
            return
        if due_at > self._time.now:
            self.ready.discard(number)
        self.schedule(number)

    def newly_queued(self, number: int, job: Job, order: int) -> None:
        """A job has queued a URL on a host, which may be one it can take where it could take no other."""
        job.queue.waiting_hosts.pop(number, None)
        if number in self.ready.by_host:
            late = job.lateness(self._store.name(number)) if job.orders_hosts else 0
            self.ready.offer(number, job.number, order + late)
        else:
            self.schedule(number)

    def newly_queued_all(self, firsts: Sequence[tuple[int, int]], job: Job) -> None:
        """The same for hosts with their best orders. Most are new, idle and known by their number alone."""
        numbers = [number for number, _ in firsts]
        held, ready, hot = job.queue.waiting_hosts, self.ready.by_host, self._hosts.hot
        paced, prepared = self.waiting_for_address, self.prepared.by_number
        if not all(hosts.keys().isdisjoint(numbers) for hosts in (held, ready, hot, paced, prepared)):
            numbers = []
            for number, order in firsts:
                if number in held or number in ready or number in hot or number in paced or number in prepared:
                    self.newly_queued(number, job, order)
                else:
                    numbers.append(number)
        self._store.schedule_idle(numbers, self._time.now)

    def wait_for_address(self, host: Host, head: bool) -> None:
        """Put a host into the queue of its server address; `head`: it was the first there before."""
        slot = self.waiting_for_address.setdefault(host.number, QueueSlot(host.number))
        self.addresses.wait(host.address, slot, self._time.now, head, host.number in self.prepared.by_number)

    def take_waiting_for_address(self) -> int:
        """Remove and return the next host of an address that has room; -1 when there is none."""
        taken = self.addresses.take(self._time.now)
        if taken is None:
            return -1
        del self.waiting_for_address[taken[1].number]
        return taken[1].number

    def set_waiting_for_job(self, number: int, jobs: Iterable[Job]) -> None:
        """Hold a host back until one of the jobs can take more."""
        for job in jobs:
            job.queue.waiting_hosts[number] = None

    def resume_hosts(self, job: Job) -> None:
        """Schedule the hosts that were held back because the job could take no more."""
        if job.queue.waiting_hosts and job.has_room:
            parked, job.queue.waiting_hosts = job.queue.waiting_hosts, {}
            for number in parked:
                self.ready.discard(number)  # it may be ready for other jobs
                self.schedule(number)

    def update_host_budget(self, host: Host, job: Job) -> bool:
        """Record and return whether the job's budget on a host is spent. A host whose budget was raised is scheduled
        again."""
        if job.compiled.host_limits.spent(host.uses.get(job.uid)):
            job.queue.over_budget_hosts[host.number] = None
            return True
        if host.number in job.queue.over_budget_hosts:
            del job.queue.over_budget_hosts[host.number]
            self.schedule(host.number)
        return False

    def leave_empty_lines(self) -> None:
        """Take hosts without queued URLs out of the queues of addresses. O(hosts there)."""
        for number in [number for number in self.waiting_for_address if not self._store.queued(number)]:
            self.addresses.leave(self.waiting_for_address.pop(number))

    # ---- gauges

    def hosts_ready(self, now: float) -> int:
        """Hosts that could be fetched from now. O(`COUNTED`); a lower bound where more than that are due."""
        return len(self.ready) + sum(at <= now for _, at in self._store.scheduled(COUNTED))

    def hosts_waiting(self, now: float) -> int:
        """Hosts with queued URLs whose delay or pause is not over. O(`COUNTED`); an upper bound where more are due."""
        return self._store.waiting() - sum(at <= now for _, at in self._store.scheduled(COUNTED))

    @property
    def hosts_blocked(self) -> int:
        """Hosts that no delay frees: they wait for a server address, or for a job that can take nothing now."""
        held = {number for job in self._jobs.values() for number in (*job.queue.waiting_hosts, *job.queue.spent_hosts)}
        return len(held) + len(self.waiting_for_address)

    def urls_ready(self, now: float) -> int:
        """URLs queued on hosts that could be fetched from now. O(`COUNTED`); a lower bound where there are more."""
        due = [host for host, at in self._store.scheduled(COUNTED) if at <= now]
        return sum(map(self._store.queued, itertools.islice(itertools.chain(self.ready.hosts(), due), COUNTED)))

    def oldest_ready_s(self, now: float) -> float:
        """How long the host that has been ready longest has waited; 0 without any."""
        instants = (self.ready.ready_since(), self._store.next_ready())
        return max(now - min((at for at in instants if at is not None), default=now), 0.0)
