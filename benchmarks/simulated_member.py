"""Members of a simulated cluster: whole ones and writers.

A whole member runs the real address lock (`AddressLockTopic`, `SharedAddressQueue`) and the real `StatusReporter`, and
reads all messages. Its frontier is a stand-in: one running job whose counters rise. A writer publishes the messages
that a whole member in its place would, and reads nothing: what a member costs does not depend on how others read.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

from nephila.kernel.bus.contract import LogBus
from nephila.kernel.messages import (
    AddressAnnouncement,
    CrawlJob,
    JobProgress,
    Outcome,
    PartitionOwned,
    PartitionStatus,
)
from nephila.kernel.net.address_limits import AddressLimits
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.topics import ADDRESSES, PROGRESS
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.frontier.host_state import QueueSlot
from nephila.scheduler.partition.address_table import PartitionView
from nephila_cluster.scheduler.addresses.address_lock import HEARTBEAT_S
from nephila_cluster.scheduler.addresses.address_lock_topic import GATHER_S, AddressLockTopic
from nephila_cluster.scheduler.addresses.shared_pace import SharedAddressQueue
from nephila_cluster.scheduler.jobs.status_reporter import StatusReporter

from benchmarks.simulated_group import SharedLog, SimulatedBus

TAKEOVER_S = 0.5
"""Claim and restore of a partition: the pause of a join in bench_handover less drain and rebalance."""
FETCH_S = 0.3
GAP_S = 0.25


class Pauses:
    """When partitions may be fetched from."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._since: dict[int, float] = {}
        self.found: list[float] = []

    def stop(self, partition: int) -> None:
        """No host of it is fetched from any more."""
        self._since.setdefault(partition, self._clock.monotonic())

    def serve(self, partition: int) -> None:
        """Its hosts are fetched from."""
        if (since := self._since.pop(partition, None)) is not None:
            self.found.append(self._clock.monotonic() - since)

    @property
    def open(self) -> int:
        """Partitions without a member."""
        return len(self._since)


class Writer:
    """A member that publishes and reads nothing. It knows that all have read its message when it is in the log."""

    def __init__(self, name: str, site: int, clock: ManualClock, log: SharedLog, pauses: Pauses, claims: int) -> None:
        self.name, self.site, self.alive = name, site, True
        self._clock, self._log, self._pauses = clock, log, pauses
        self._claims = [f"10.{site}.{claim}.{name}" for claim in range(claims)]
        self._mine: dict[int, int] = {}
        self._counter = 0
        self._report_s = 1.0

    def start(self, jobs: list[CrawlJob]) -> None:
        """Begin the heartbeats and reports."""
        self._jobs = jobs
        self._heartbeat()
        self._report()

    def kill(self) -> None:
        """It does nothing more."""
        self.alive = False
        for partition in self._mine:
            self._pauses.stop(partition)

    def assigned(self, partitions: frozenset[int], generation: int) -> None:
        """See `Assigned`."""
        for partition in partitions:
            self._pauses.stop(partition)
        self._clock.call_at(self._clock.monotonic() + TAKEOVER_S, lambda: self._own(partitions, generation))

    def lost(self, partitions: frozenset[int]) -> None:
        """See `Assigned`."""
        for partition in partitions:
            if self._mine.pop(partition, None) is not None:
                self._pauses.stop(partition)

    def _own(self, partitions: frozenset[int], generation: int) -> None:
        if self.alive:
            self._mine |= dict.fromkeys(partitions, generation)
            self.announce(partitions, False)

    def announce(self, partitions: Any, claims: bool) -> None:
        """Publish the partitions, and the claims where another member asked for them."""
        owned = [PartitionOwned(one, self._mine[one]) for one in sorted(partitions)]
        message = AddressAnnouncement(self.name, 1, partitions=owned, claims=self._claims if claims else [])
        self._log.publish(self.site, ADDRESSES, message)

    def on_announced(self, message: AddressAnnouncement) -> None:
        """Its message is in the log."""
        for one in message.partitions:
            if self._mine.get(one.partition) == one.epoch:
                self._pauses.serve(one.partition)

    def answer(self) -> None:
        """Another member asked for announcements."""
        self._clock.call_at(self._clock.monotonic() + GATHER_S, self._announce_all)

    def _announce_all(self) -> None:
        if self.alive:
            self.announce(self._mine, True)

    def _heartbeat(self) -> None:
        if self.alive:
            self._log.publish(self.site, ADDRESSES, AddressAnnouncement(self.name, 1))
            self._clock.call_at(self._clock.monotonic() + HEARTBEAT_S, self._heartbeat)

    def _report(self) -> None:
        if not self.alive:
            return
        self._counter += 100
        for job in self._jobs if self._mine else ():
            parts = [_part(number, epoch, self._counter) for number, epoch in sorted(self._mine.items())]
            self._log.publish(self.site, PROGRESS, JobProgress(f"{job.uid}@{self.name}", job.uid, parts))
        self._clock.call_at(self._clock.monotonic() + self._report_s, self._report)


def _part(number: int, epoch: int, counter: int) -> PartitionStatus:
    return PartitionStatus(
        number, epoch, 1, counter, 10, counter, activity=counter, start_generation=1, used=counter, confirmed=True
    )


class Whole:
    """A member with the real address lock and the real status reporter."""

    def __init__(
        self, name: str, site: int, clock: ManualClock, log: SharedLog, pauses: Pauses, partitions: int
    ) -> None:
        self.name, self.site, self.alive = name, site, True
        self._clock, self._pauses = clock, pauses
        self.config = SchedulerConfig(partitions=partitions)
        self.bus = SimulatedBus(log, name, site)
        self.jobs: dict[str, CrawlJob] = {}
        self.owners: dict[int, Any] = {}
        self.starts: Counter[str] = Counter()
        """Address → fetches."""
        self._waiting: set[int] = set()
        limits = AddressLimits(4, GAP_S)
        self.queue = SharedAddressQueue(limits, clock.monotonic(), (name, 1), partitions, {})
        self._view = PartitionView(self.queue, lambda: None)
        self.locks = AddressLockTopic(cast(LogBus, self.bus), clock, self.queue, self._on_locks)
        self.reporter = StatusReporter(self, cast(LogBus, self.bus), clock, 1.0)
        self._timer_at: float | None = None

    def start(self, jobs: list[CrawlJob]) -> None:
        """Subscribe and report."""
        self.jobs.update({job.uid: job for job in jobs})
        self.locks.start()
        self.reporter.start()

    def want(self, address: str, hosts: int) -> None:
        """Hosts of this member on an address; they never run out of URLs."""
        for number in range(hosts):
            self._view.wait(address, QueueSlot(number), self._clock.monotonic())
        self.locks.soon()
        self._serve()

    def kill(self) -> None:
        """It does nothing more."""
        self.alive = self.bus.alive = False
        self.locks.close()
        for partition in self.owners:
            self._pauses.stop(partition)
        self.owners.clear()

    def assigned(self, partitions: frozenset[int], generation: int) -> None:
        """See `Assigned`."""
        for partition in partitions:
            self._pauses.stop(partition)
        self._clock.call_at(self._clock.monotonic() + TAKEOVER_S, lambda: self._own(partitions, generation))

    def lost(self, partitions: frozenset[int]) -> None:
        """See `Assigned`."""
        for partition in partitions:
            owner = self.owners.pop(partition, None)
            if owner is not None:
                self._pauses.stop(partition)
                self.locks.on_partition_lost(partition, owner.epoch, ())
        self._waiting -= partitions

    def _own(self, partitions: frozenset[int], generation: int) -> None:
        if not self.alive:
            return
        for partition in partitions:
            self.owners[partition] = _owner(partition, generation, self._clock, list(self.jobs.values()))
            self.locks.own(partition, generation)
        self._waiting |= partitions

    def _on_locks(self) -> None:
        """See `AddressLockTopic`: partitions may start, hosts may have a slot."""
        for partition in [one for one in self._waiting if self.locks.may_fetch(one, self.owners[one].epoch)]:
            self._waiting.discard(partition)
            self._pauses.serve(partition)
        self._serve()

    def _serve(self) -> None:
        """Fetch from addresses with a free slot, as the passes of a scheduler do."""
        if not self.alive:
            return
        now = self._clock.monotonic()
        while (taken := self.queue.take(now)) is not None:
            address, slot = taken
            self.queue.start(address, now)
            self.starts[address] += 1
            self._clock.call_at(now + FETCH_S, partial(self._end, address, slot))
        ready = self.queue.next_ready()
        if ready is not None and (self._timer_at is None or ready < self._timer_at or self._timer_at <= now):
            self._timer_at = ready
            self._clock.call_at(ready, self._serve)
        self.locks.soon()

    def _end(self, address: str, slot: QueueSlot) -> None:
        if self.alive:
            now = self._clock.monotonic()
            self.queue.end(address, now)
            self._view.wait(address, slot, now)
            self._serve()


class _Counters(SimpleNamespace):
    """The counters of a job that crawls 100 pages a second in this partition."""

    def __getattr__(self, name: str) -> Any:
        if name in ("queued", "dispatched", "pages_claimed", "waiting"):
            return int((self.clock.monotonic() - self.began) * 100)
        raise AttributeError(name)

    @property
    def ended(self) -> Counter[Any]:
        """Counts by outcome."""
        return Counter({Outcome.STORED: self.dispatched})

    def hold(self, reason: Any) -> str:
        """The job is not held."""
        return ""

    def set_quota(self, pages: int, spent: bool) -> None:
        """See `Job.set_quota`."""
        self.page_quota, self.spent_elsewhere = pages, spent


class _Jobs(dict[str, Any]):
    """See `Jobs`: all of them run."""

    def take_changed(self) -> list[str]:
        """See `Jobs.take_changed`."""
        return list(self)


class _Held(list[Any]):
    lost = 0


def _owner(partition: int, epoch: int, clock: ManualClock, jobs: list[CrawlJob]) -> Any:
    """What `PartitionJobs` reads of a `PartitionOwner`."""
    known = _Jobs()
    for job in jobs:
        known[job.uid] = _Counters(
            clock=clock,
            began=clock.monotonic(),
            spec=job,
            is_blocked=False,
            seen=(),
            scope=SimpleNamespace(anchors=()),
            hold_changes=0,
            has_quotas=False,
            held=_Held(),
            max_pages=0,
            waiting_hosts=(),
            number=1,
            page_quota=0,
            spent_elsewhere=False,
        )
    frontier = SimpleNamespace(in_flight=SimpleNamespace(urls={}), jobs=known, quotas=None)
    return SimpleNamespace(number=partition, epoch=epoch, frontier=frontier, quiet=True, resume_job=lambda job: None)
