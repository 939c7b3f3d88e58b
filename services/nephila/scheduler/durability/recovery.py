"""Recovery: from the commit log to the views of a frontier. `snapshots` writes what is read here.

The files of host store and seen sets are opened, not read; commits after the snapshot are replayed. The same for files
and topics; what becomes of the leases in the log is the frontier's `RestartPolicy`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from nephila.kernel.messages import (
    EndedUrl,
    FrontierCommit,
    FrontierSnapshot,
    JobState,
    LeasedUrl,
    Outcome,
    QueuedUrl,
)
from nephila.kernel.runtime.errors import UserError
from nephila.native import HostStore, check_implementation
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.durability.commit_log import remedy
from nephila.scheduler.durability.continued_leases import ContinuedLeases
from nephila.scheduler.durability.interrupted_leases import InterruptedLeases
from nephila.scheduler.durability.restored import Restored
from nephila.scheduler.durability.split import keep_part
from nephila.scheduler.engine import recrawl_queue
from nephila.scheduler.engine.dispatch import Dispatcher
from nephila.scheduler.engine.domain_budgets import restore_domain
from nephila.scheduler.engine.forget_urls import apply as apply_forgotten
from nephila.scheduler.engine.hold_links import restore_held
from nephila.scheduler.engine.job_changes import apply_job
from nephila.scheduler.frontier.frontier import (
    WHOLE,
    Frontier,
    FrontierCounters,
    PartitionSlice,
)
from nephila.scheduler.frontier.host_state import TurnOutput
from nephila.scheduler.frontier.host_table import load_state, novelty_of
from nephila.scheduler.frontier.in_flight import DELETED, Key
from nephila.scheduler.frontier.pending_commit import Partition
from nephila.scheduler.frontier.restart_policy import RestartPolicy
from nephila.scheduler.jobs.job import Job
from nephila.scheduler.jobs.queue_entry import is_requisite, packed_fields, unpack
from nephila.scheduler.jobs.seen import new_seen
from nephila.scheduler.jobs.strategies import HEAD, TAIL
from nephila.scheduler.politeness.address_queue import AddressQueue


class Leases(Protocol):
    """The rule for the leases in the log after a start."""

    def snapshot(self, leased: LeasedUrl) -> None:
        """A lease of the snapshot."""

    def commit(self, leased: LeasedUrl) -> None:
        """A lease, or a change of one, of a later commit."""

    def finish(self, now: float) -> TurnOutput:
        """All entries are applied. Returns the messages that may not have been published."""


LEASES: dict[RestartPolicy, type[InterruptedLeases] | type[ContinuedLeases]] = {
    RestartPolicy.LEASES_END: InterruptedLeases,
    RestartPolicy.LEASES_CONTINUE: ContinuedLeases,
}


def open_frontier(
    config: SchedulerConfig,
    rng: random.Random | None = None,
    *,
    read_only: bool = False,
    part: PartitionSlice = WHOLE,
    restarted_at: float = -math.inf,
    counters: FrontierCounters | None = None,
) -> Frontier:
    """An empty frontier over the files of its directory.

    `restarted_at`: monotonic instant of a restart. Fetches of the run before are unknown, so the first start on each
    address comes one gap later.
    """
    directory = config.directory
    return Frontier(
        config,
        HostStore(directory, read_only=read_only),
        lambda number: new_seen(directory, number),
        rng,
        part,
        addresses=AddressQueue(config.address_limits(), restarted_at),
        counters=counters,
    )


def restore(
    dispatcher: Dispatcher, entries: Iterable[FrontierSnapshot | FrontierCommit], now: float, utc_now: float
) -> Restored:
    """Rebuild all views from the committed entries. O(commits since the snapshot + hosts)."""
    dispatcher.frontier.begin_turn(now, utc_now)
    replay = Replay(dispatcher)
    for entry in entries:
        replay.take(entry)
    return replay.finish(now, utc_now)


class Replay:
    """Applies snapshot and commits, oldest first; then `finish`."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self.dispatcher = dispatcher
        self.frontier = dispatcher.frontier
        self.found = Restored()
        self._leases: Leases = LEASES[self.frontier.restart](dispatcher, self.found, self._take)
        own = self.frontier.partitions
        self._by_number = {partition.number: partition for partition in own}
        self._only = own[0] if len(own) == 1 else None
        """Where a frontier has one partition, all entries are its own: those before its birth have the number of its
        parent."""

    def take(self, entry: FrontierSnapshot | FrontierCommit) -> None:
        """Apply the next entry. Raises `UserError` when it cannot be read."""
        self.found.commits += 1
        if isinstance(entry, FrontierSnapshot):
            self.snapshot(entry)
        else:
            self.commit(entry)

    def keep_part(self, part: PartitionSlice, *, born: bool) -> None:
        keep_part(self.frontier, self.found, part, born=born)

    def finish(self, now: float, utc_now: float) -> Restored:
        """All entries are applied. O(hosts + outstanding URLs)."""
        restored = self.found
        jobs = self.frontier.jobs.values()
        for job in jobs:
            job.reapply_recrawl(utc_now)
        self.frontier.begin_turn(now, utc_now)
        self.frontier.holds.apply_windows()
        restored.leased = len(restored.outstanding)
        restored.to_republish = self._leases.finish(now)
        restored.outstanding.clear()
        _requeue_delayed(self.dispatcher, restored, now, utc_now)
        _pause_robots_pending(self.frontier, restored, now)
        _reschedule(self.frontier, now)
        for job in jobs:
            if job.compiled.document.parse.requisites:
                _find_requisites(self.dispatcher, job)
        restored.urls = sum(job.queue.length for job in jobs)
        return restored

    def snapshot(self, state: FrontierSnapshot) -> None:
        frontier = self.frontier
        if state.hosts:
            directory = Path(frontier.config.directory)
            try:
                check_implementation(state.hosts)
            except ValueError as error:
                raise UserError(
                    f"the snapshot of {directory} was {error}; resume with the same, or remove {directory}: --resume "
                    "then begins at the seeds again and keeps all rows"
                ) from None
            try:
                frontier.store.restore(state.hosts)
                for job in state.jobs:
                    self._job(job)
            except ValueError as error:
                raise UserError(f"{error}; {remedy(directory)}") from None
            frontier.jobs.restore_counts(state.next_job, {job.uid: job.last_fetch_no for job in state.deleted})
        for position in state.partitions:
            partition = self._only or self._by_number[position.partition]
            partition.epoch, partition.sequence = position.epoch, position.sequence
            for count in position.ended:
                frontier.count_ended(frontier.jobs[count.job], partition, count.outcome, count.count)
        frontier.quotas.restore(state.uses)
        for packed in state.watched:
            self._watched(frontier.jobs[state.watched_job], packed)
        for domain in state.domains:
            restore_domain(frontier, domain)
        for packed in state.held:
            restore_held(frontier.jobs[state.holding_job], packed)
        for queued in state.queued:
            self._hold(queued, outstanding=not queued.not_before)
        for leased in state.leased:
            self._leases.snapshot(leased)

    @staticmethod
    def _watched(job: Job, packed: bytes) -> None:
        job.due_table.load(packed)
        url_key = packed[:16]
        if job.due_table.is_checked_out(url_key):
            state = job.due_table.get(url_key)
            if state is not None and state.outcome is Outcome.STORED:
                job.budget.reserve(url_key)

    def _job(self, state: JobState) -> None:
        assert state.spec is not None
        job = apply_job(self.frontier, state.spec, state.number)
        assert job is not None
        job.fetch_numbers.restore(state.first_fetch_no, state.last_fetch_no)
        job.seen.restore(state.seen)
        job.refused.held.lost = state.links_lost
        job.budget.priority_refetch.update(state.priority_refetch)
        job.counts.split_pages = state.split_pages
        job.scope.anchors.update(state.anchors)
        job.quarantines = {(q.host, q.place): q for q in state.quarantines}

    def commit(self, commit: FrontierCommit) -> None:
        frontier = self.frontier
        partition = self._only or self._by_number[commit.partition]
        if commit.sequence <= partition.sequence:
            return
        partition.sequence, partition.epoch = commit.sequence, commit.epoch
        for spec in commit.jobs:
            apply_job(frontier, spec)
            if spec.deleted:
                self._forget_job(spec.uid)
        frontier.quotas.restore(commit.uses)
        jobs = frontier.jobs
        for anchor in commit.anchors:
            if anchor.job in jobs:
                jobs[anchor.job].scope.anchors.add(anchor.place)
        for quarantine in commit.quarantines:
            if quarantine.job in jobs:
                jobs[quarantine.job].quarantines[quarantine.host, quarantine.place] = quarantine
                host = frontier.hosts.get_or_create(quarantine.host)
                novelty_of(host, jobs[quarantine.job]).restore(quarantine)
                host.changed = True
        for ended in commit.ended:
            self._ended(partition, ended)
        for state in commit.urls:
            if state.job in jobs:
                jobs[state.job].due_table.put(state)
        for queued in commit.held:
            if queued.job in jobs:
                restore_held(jobs[queued.job], queued.entry)
        for domain in commit.domains:
            restore_domain(frontier, domain)
        for forgotten in commit.forgotten:
            apply_forgotten(frontier, forgotten)
        for queued in commit.queued:
            self._queued(queued)
        self._hosts(commit)
        # Last, because a turn leases after it has applied outcomes.
        for leased in commit.leased:
            self._leases.commit(leased)
        frontier.hosts.trim(self.found.numbers)

    def _forget_job(self, uid: str) -> None:
        restored = self.found
        for key in [key for key in restored.leases if key[0] == uid]:
            leased = restored.leases.pop(key)
            if not leased.landed:  # its fetch is still in flight
                leased.job, leased.entry = DELETED + uid, restored.outstanding[key][1]
                restored.leases[leased.job, leased.url_key] = leased
        for table in (restored.outstanding, restored.delayed, restored.attempts):
            for key in [key for key in table if key[0] == uid]:
                del table[key]

    def _hosts(self, commit: FrontierCommit) -> None:
        frontier = self.frontier
        for state in commit.hosts:
            host = frontier.hosts.get_or_create(state.host)
            load_state(host, state, frontier.time.now, frontier.time.utc_now)
            host.changed = True
            self.found.robots_pending.pop(state.host, None)
        for text in commit.robots:
            host = frontier.hosts.get_or_create(text.host)
            frontier.hosts.set_robots(host, text)
            host.changed = True
            self.found.robots_pending.pop(text.host, None)

    def _take(self, key: Key, host: str) -> tuple[int, bytes] | None:
        """Take a URL from where it is, and free its reservation."""
        restored = self.found
        job = self.frontier.jobs.get(key[0])
        if job is not None:
            job.budget.free(key[1])
        outstanding = restored.outstanding.pop(key, None)
        if outstanding is not None:
            restored.attempts.pop(key, None)
            restored.leases.pop(key, None)
            return outstanding
        delayed = restored.delayed.pop(key, None)
        if delayed is not None:
            return delayed[:2]
        number = self.frontier.store.find(host)
        if job is None or number < 0:
            return None
        packed = self.frontier.store.take(number, job.number, key[1])
        return None if packed is None else (number, packed)

    def _ended(self, partition: Partition, ended: EndedUrl) -> None:
        job = self.frontier.jobs.get(ended.job)
        if job is not None:
            self._take((ended.job, ended.url_key), ended.host)
            self.frontier.count_ended(job, partition, ended.outcome)

    def _queued(self, queued: QueuedUrl) -> None:
        job = self.frontier.jobs.get(queued.job)
        if job is None:
            return
        url_key, depth, fetch_no, attempts, _, _, priority = packed_fields(queued.entry)
        key = (queued.job, url_key)
        job.fetch_numbers.note(fetch_no)
        job.refused.held.discard(url_key)
        if not job.seen.add(url_key):
            self.found.outstanding.pop(key, None)
            self.found.delayed.pop(key, None)
            self.found.attempts.pop(key, None)
            self.found.leases.pop(key, None)
            state = job.due_table.get(url_key) if fetch_no > 1 else None
            if state is not None and job.due_table.check_out(url_key):
                recrawl_queue.mark_open(self.frontier, job, state)
            elif state is not None and state.outcome is Outcome.STORED:
                job.budget.reserve(url_key)
        if queued.not_before:
            self._hold(queued, outstanding=False)
            return
        store = self.frontier.store
        strategy = job.compiled.strategy
        order = HEAD if queued.head else TAIL if attempts else strategy.order(depth, priority)
        newest_first = strategy.newest_first and not queued.head and not attempts
        store.push(store.host(queued.host), job.number, order, queued.entry, newest_first)

    def _hold(self, queued: QueuedUrl, *, outstanding: bool) -> None:
        key = (queued.job, queued.entry[:16])
        number = self.frontier.store.host(queued.host)
        if outstanding:
            self.found.outstanding[key] = (number, queued.entry)
        else:
            self.found.delayed[key] = (number, queued.entry, queued.not_before)


def _find_requisites(dispatcher: Dispatcher, job: Job) -> None:
    """Fill `Job.requisites`. O(open URLs of the job)."""
    frontier = dispatcher.frontier
    store = frontier.store
    packed = [item for host in store.hosts_of(job.number) for _, item in store.items(host, job.number)]
    packed += [item for _, _, uid, item in dispatcher.frontier.delayed.items() if uid == job.uid]
    entries = [unpack(item) for item in packed]
    entries += [waiting.entry for waiting in frontier.in_flight.urls.values() if waiting.job == job.uid]
    job.budget.requisites.update(entry.url_key for entry in entries if is_requisite(entry.context))


def _requeue_delayed(dispatcher: Dispatcher, restored: Restored, now: float, utc_now: float) -> None:
    frontier = dispatcher.frontier
    for (uid, _), (number, packed, not_before) in restored.delayed.items():
        job = frontier.jobs[uid]
        wait_s = min(max(not_before - utc_now, 0.0), frontier.config.backoff_max_s)
        if wait_s > 0:
            frontier.delayed.add(number, job, packed, now + wait_s)
        else:
            frontier.store.push(number, job.number, HEAD, packed)
    restored.delayed.clear()


def _pause_robots_pending(frontier: Frontier, restored: Restored, now: float) -> None:
    for key in restored.robots_pending:
        host = frontier.hosts.get_or_create(key)
        host.pace.after_fetch(now, frontier.hosts.delay_s(host, None))
        host.changed = True


def _reschedule(frontier: Frontier, now: float) -> None:
    store = frontier.store
    for number in store.ids():
        at = store.ready_at(number)
        if at is not None and at > now:
            # An instant of another run's monotonic clock.
            store.unschedule(number)
        frontier.readiness.schedule(number)
