"""The frontier: one or more partitions of URLs, over one commit log. Pure, apart from the files of host store and seen
sets.

Every change updates the views (seen, queues, hosts) and adds to the pending commit of its partition. `commits()`
returns the pending commits. Requests and rows are published only after those are written: commit first, emit after. The
views are never a second truth: recovery rebuilds them from the log alone.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from nephila.kernel.messages import (
    CrawlJob,
    FrontierCommit,
    LeasedUrl,
    Outcome,
    Quarantine,
    QueuedUrl,
    Render,
    Seed,
)
from nephila.kernel.net.address_limits import AddressLimits
from nephila.native import HostStore, partition_of
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.frontier.host_state import Host, Outstanding, OutstandingState, QueueSlot
from nephila.scheduler.frontier.host_table import HostTable
from nephila.scheduler.frontier.job_state import Hold, Job
from nephila.scheduler.frontier.prepared_hosts import PreparedHosts
from nephila.scheduler.frontier.queue_entry import packed_rows, unpack, unpacked_rows
from nephila.scheduler.frontier.quotas import Quotas, own_accounts
from nephila.scheduler.frontier.ready_hosts import ReadyHosts
from nephila.scheduler.frontier.restart_policy import RestartPolicy
from nephila.scheduler.frontier.seen import Seen
from nephila.scheduler.frontier.tenants import tenants
from nephila.scheduler.politeness.address_queue import AddressQueue

Key = tuple[str, bytes]
PackedRows = tuple[int, int, bytes]
"""Partition, number of queued URLs, and their rows as MessagePack."""
COUNTED = 10_000
"""Hosts that a gauge looks at, at most."""
DELETED = "\0"
"""Prefix of the uid of a deleted job, on URLs of it that are still being fetched."""


class PartitionSlice(NamedTuple):
    """The part of the MD5 circle that a frontier has: slice `number` of `of`, both powers of two. The frontier divides
    it into `config.partitions`."""

    number: int
    of: int


WHOLE = PartitionSlice(0, 1)


class Partition:
    """Outstanding URLs of one slice of the MD5 circle, and its pending commit."""

    __slots__ = ("ended", "epoch", "number", "outstanding", "pending", "sequence")

    def __init__(self, number: int) -> None:
        self.number = number
        self.epoch = 0
        self.sequence = 0
        self.outstanding: dict[Key, Outstanding] = {}
        self.pending: FrontierCommit | None = None
        self.ended: Counter[tuple[str, Outcome]] = Counter()


def address_limits(config: SchedulerConfig) -> AddressLimits:
    """Concurrency and gap of server addresses."""
    return AddressLimits(config.per_address, config.address_gap_s, config.networks, "scheduler.networks")


@dataclass(slots=True)
class FrontierCounters:
    """Counters of a program over all its frontiers; they never fall."""

    without_page: Counter[str] = field(default_factory=Counter)
    """Reason → URLs that ended without a page."""
    early_fetches: int = 0
    """Fetches that began before their host might be fetched from."""
    lost_messages: int = 0
    """URLs whose page, record or receipt was lost on the bus; they were fetched or their rows published again."""


class Frontier:
    """All partitions of one scheduler, or one of them. Instants are monotonic seconds; `utc_offset` converts them to
    UTC."""

    def __init__(
        self,
        config: SchedulerConfig,
        store: HostStore,
        new_seen: Callable[[int], Seen],
        rng: random.Random | None = None,
        partition_slice: PartitionSlice = WHOLE,
        restart: RestartPolicy = RestartPolicy.LEASES_END,
        addresses: AddressQueue[QueueSlot] | None = None,
        consumed_until: float = math.inf,
        on_wider: Callable[[str], None] = lambda uid: None,
        on_anchor: Callable[[str, str], None] = lambda uid, anchor: None,
        counters: FrontierCounters | None = None,
        page_quota: int | None = None,
        packed_rows: bool = True,
    ) -> None:
        """URLs outside `partition_slice` go to `for_other_partitions`. `on_wider(uid)`: the scope of a job has a new
        anchor, so links that were refused may be wanted. `on_anchor(uid, anchor)`: this frontier has added that anchor.
        `counters`: those of the program. `page_quota`: share of its page budget that a new job has here; None: all.
        `packed_rows`: the log takes queued URLs as rows of MessagePack."""
        if config.partitions < 1 or config.partitions & (config.partitions - 1):
            raise ValueError(f"partitions must be a power of two, got {config.partitions}")
        self.config = config
        self.store = store
        self.jobs: dict[str, Job] = {}
        self.numbered: dict[int, Job] = {}
        self.prepared = PreparedHosts()
        self.hosts = HostTable(store, config, self.numbered, self.prepared)
        self.ready = ReadyHosts()
        self.new_seen = new_seen
        self.now = 0.0
        self.utc_now = 0.0
        """Instants of the current turn."""
        self.rng = rng or random.Random()
        first = partition_slice.number * config.partitions
        self.partitions = [Partition(first + n) for n in range(config.partitions)]
        self.partition_slice = partition_slice
        self.restart = restart
        self.page_quota = page_quota
        self.packed_rows = packed_rows
        self.for_other_partitions: list[tuple[int, Seed]] = []
        """(partition, URL) that were found here and belong to other partitions. They are sent before the
        next commit."""
        self.concurrency, self.window = config.concurrency, config.window
        """Limits of `in_fetch` and `outstanding`."""
        self.depth_limit = -1
        """Links that lie deeper are not admitted, whatever their job allows; -1: no limit. A live setting."""
        self.next_job = 0
        self.deleted: dict[str, int] = {}
        """Uid of a deleted job → the highest number of a fetch of it. Its rows remain, so a new job counts on from
        there."""
        self.next_recrawl = -math.inf
        """UTC instant, or earlier, at which the first page of any job is due. The due tables are read then, and after a
        change."""
        self.recrawl_checked_at = -math.inf
        self.in_fetch = 0
        """Requests without outcome."""
        self.outstanding = 0
        """URLs taken from their queue that have no receipt yet."""
        self.leases: OrderedDict[Key, float] = OrderedDict()
        """When each lease expires, in that order: all leases have the same length."""
        self.without_receipt: OrderedDict[Key, float] = OrderedDict()
        """When the outcome of each URL without receipt came, in that order."""
        self.consumed_until = [consumed_until, consumed_until]
        """Requests that were handed out up to this instant have been consumed, without and with a browser; infinite in
        one program."""
        self.addresses = addresses if addresses is not None else AddressQueue(address_limits(config))
        self.waiting_for_address: dict[int, QueueSlot] = {}
        """Hosts in the queue of a server address."""
        self.on_wider = on_wider
        self.on_anchor = on_anchor
        self.counters = counters or FrontierCounters()
        self.quotas = Quotas(tenants(config.tenants), partition_slice.of)
        self._next_window = math.inf
        """UTC instant at which the windows of a job open or close next."""
        self._dirty: list[Partition] = []
        self._rows: list[Sequence[PackedRows]] = []
        """Rows of admitted links that are not in a pending commit yet, by page."""

    def begin_turn(self, now: float, utc_now: float) -> None:
        """Set the instants of a new turn."""
        self.now, self.utc_now = now, utc_now
        self.hosts.begin_turn(now, utc_now - now)

    def set_limits(self, concurrency: int, window: int) -> None:
        """Change the limits of `in_fetch` and `outstanding`."""
        self.concurrency, self.window = concurrency, window

    def restore_counts(self, next_job: int, deleted: Mapping[str, int]) -> None:
        """Set the next job number and the fetch numbers of deleted jobs, from a snapshot or from the table of rows."""
        self.next_job = max(self.next_job, next_job)
        self.deleted.update(deleted)

    @property
    def utc_offset(self) -> float:
        """UTC minus monotonic, seconds."""
        return self.utc_now - self.now

    # ---- structure

    def partition(self, url_key: bytes) -> Partition:
        """The partition a fingerprint belongs to."""
        return self.partitions[partition_of(url_key, len(self.partitions))]

    def pending(self, partition: Partition) -> FrontierCommit:
        """The pending commit of a partition, created when there is none."""
        commit = partition.pending
        if commit is None:
            commit = partition.pending = FrontierCommit(partition=partition.number, epoch=partition.epoch)
            self._dirty.append(partition)
        return commit

    def queued_log(self, partition: Partition) -> list[QueuedUrl]:
        """The queued URLs of the pending commit, to append to."""
        self.merge_rows()
        return self.pending(partition).queued

    def add_rows(self, rows: Sequence[PackedRows]) -> None:
        """Log the admitted links of a page. Pages are merged once per turn: a page has links in most partitions."""
        self._rows.append(rows)

    def merge_rows(self) -> None:
        """Move the rows of `add_rows` to the pending commits. O(pages x partitions)."""
        if not self._rows:
            return
        pages, self._rows = self._rows, []
        merged: dict[int, tuple[list[int], list[bytes]]] = {}
        for page in pages:
            for number, count, data in page:
                known = merged.get(number)
                if known is None:
                    merged[number] = ([count], [data])
                else:
                    known[0].append(count)
                    known[1].append(data)
        for number, (counts, parts) in merged.items():
            self.pending(self.partitions[number]).queued.extend(packed_rows(b"".join(parts), sum(counts)))

    def commits(self) -> list[FrontierCommit]:
        """Return the pending commits, one per changed partition. Partition 0 comes first, because it holds the jobs."""
        self.merge_rows()
        commits = []
        if len(self._dirty) > 1:
            self._dirty.sort(key=lambda partition: partition.number)
        for partition in self._dirty:
            commit = partition.pending
            if commit is not None:
                partition.sequence += 1
                commit.sequence = partition.sequence
                partition.pending = None
                commits.append(commit)
        self._dirty.clear()
        return commits

    def is_other_partition(self, url_key: bytes) -> bool:
        """Whether a URL belongs to a partition that this frontier does not have."""
        number, of = self.partition_slice
        return of > 1 and partition_of(url_key, of) != number

    def forward(self, seed: Seed, url_key: bytes) -> None:
        """Hand a URL to the partition that it belongs to."""
        self.for_other_partitions.append((partition_of(url_key, self.partition_slice.of), seed))

    def lease_of(self, waiting: Outstanding) -> LeasedUrl:
        """The logged form of an outstanding URL. It is longer where the next owner waits for the URL."""
        entry = waiting.entry
        leased = LeasedUrl(entry.url_key, waiting.job, waiting.host.key, waiting.attempt)
        if self.restart is RestartPolicy.LEASES_CONTINUE:
            leased.lease_until = waiting.lease_until
            leased.address = waiting.address
            if waiting.job not in self.jobs:
                leased.url = entry.url
            leased.fetch_no = entry.fetch_no
            leased.landed = waiting.state is not OutstandingState.LEASED
            leased.record = waiting.record
            leased.receipt = waiting.receipted
        return leased

    def log_outstanding(self, waiting: Outstanding) -> None:
        """Log the state of an outstanding URL, where the next owner would wait for it."""
        if self.restart is RestartPolicy.LEASES_CONTINUE:
            self.pending(self.partitions[waiting.host.partition]).leased.append(self.lease_of(waiting))

    def add_outstanding(self, key: Key, waiting: Outstanding) -> Partition:
        """Add a URL to the outstanding ones; returns its partition."""
        partition = self.partitions[waiting.host.partition]
        partition.outstanding[key] = waiting
        self.outstanding += 1
        return partition

    def remove_outstanding(self, waiting: Outstanding) -> Partition:
        """Remove a URL from the outstanding ones; returns its partition."""
        partition = self.partitions[waiting.host.partition]
        key = (waiting.job, waiting.entry.url_key)
        del partition.outstanding[key]
        self.without_receipt.pop(key, None)
        self.outstanding -= 1
        return partition

    def take_for_other_partitions(self) -> list[tuple[int, Seed]]:
        """URLs to send to other partitions before the next commit."""
        taken, self.for_other_partitions = self.for_other_partitions, []
        return taken

    def await_receipt(self, waiting: Outstanding) -> None:
        """The fetch of a URL has ended, and its receipt is missing from now on."""
        key = (waiting.job, waiting.entry.url_key)
        self.without_receipt[key] = self.now
        self.without_receipt.move_to_end(key)

    # ---- fetches and leases

    def fetch_started(self, host: Host) -> None:
        """Count a fetch in flight."""
        self.in_fetch += 1
        host.in_flight += 1

    def fetch_ended(self, host: Host) -> None:
        """The end of `fetch_started`."""
        self.in_fetch -= 1
        host.in_flight -= 1

    def note_consumed(self, at: float, rendered: bool = False) -> None:
        """Requests that were handed out up to this instant have been consumed; `rendered`: those for a browser."""
        self.consumed_until[rendered] = max(self.consumed_until[rendered], at)

    def is_rendered(self, waiting: Outstanding) -> bool:
        """Whether the request went to the downloaders with a browser."""
        job = self.jobs.get(waiting.job)
        return job is not None and (waiting.entry.render or job.render) > Render.NEVER

    def lease_start(self, lease_until: float) -> float:
        """When a lease that ends then was given, or taken over."""
        return lease_until - self.config.start_by_s - self.config.lease_s

    def was_consumed(self, lease_until: float, rendered: bool = False) -> bool:
        """Whether a downloader has consumed the request of a lease that ends then."""
        return self.consumed_until[rendered] >= self.lease_start(lease_until)

    # ---- recrawl

    def note_recrawl(self, at: float) -> None:
        """A page is due at this instant, UTC."""
        self.next_recrawl = min(self.next_recrawl, at)

    def recrawl_checked(self, at: float, next_recrawl: float) -> None:
        """The due tables were read at `at`; the next page is due at `next_recrawl`, UTC."""
        self.recrawl_checked_at, self.next_recrawl = at, next_recrawl

    # ---- jobs

    def put_job(self, spec: CrawlJob) -> Job | None:
        """Apply and log a new job, a changed one, or a deletion."""
        job = self.apply_job(spec)
        self.pending(self.partitions[0]).jobs.append(spec)
        return job

    def apply_job(self, spec: CrawlJob, number: int = -1) -> Job | None:
        """Apply the desired state of a job; None when the job is deleted."""
        known = self.jobs.get(spec.uid)
        self.next_recrawl = -math.inf
        if spec.deleted:
            self.quotas.remove(spec.uid)
            if known is not None:
                known.note_quotas(())
                self._delete_job(known)
                self._reschedule_ready()
            return None
        if known is None:
            return self._new_job(spec, number)
        strategy, unlimited = known.strategy, not known.max_pages
        known.change(spec)
        self._put_quotas(known)
        self._apply_windows(known)
        known.reapply_recrawl(self.utc_now)
        limited = unlimited and self._reserve_due_pages(known)
        if limited or known.strategy is not strategy:
            self._reorder(known)
        for host in list(known.over_budget_hosts):
            self.update_host_budget(self.hosts.get(host), known)
        self.resume_hosts(known)
        self._reschedule_ready()
        return known

    def _new_job(self, spec: CrawlJob, number: int) -> Job:
        if number < 0:
            number = self.next_job
        self.next_job = max(self.next_job, number + 1)
        first_fetch_no = self.deleted.pop(spec.uid, 0) + 1
        job = Job(spec, number, self.store, self.new_seen(number), first_fetch_no, self.page_quota)
        self.jobs[spec.uid] = self.numbered[number] = job
        self._put_quotas(job)
        self._apply_windows(job)
        return job

    def _delete_job(self, job: Job) -> None:
        """Delete all state of a job. Fetches in flight for it free their hosts when they end."""
        self.merge_rows()
        del self.jobs[job.uid], self.numbered[job.number]
        self.deleted[job.uid] = job.last_fetch_no
        self.store.drop_job(job.number)
        self.prepared.drop_job(job.number)
        for number in [number for number in self.waiting_for_address if not self.store.queued(number)]:
            self.addresses.leave(self.waiting_for_address.pop(number))
        renamed = {}
        for partition in self.partitions:
            for waiting in [w for w in partition.outstanding.values() if w.job == job.uid]:
                if waiting.state is not OutstandingState.LEASED:
                    self.remove_outstanding(waiting)
                    continue
                # A name that no job can have: a new job of the same name may come before this fetch ends.
                url_key = waiting.entry.url_key
                del partition.outstanding[job.uid, url_key]
                waiting.job = DELETED + job.uid
                partition.outstanding[waiting.job, url_key] = waiting
                renamed[job.uid, url_key] = (waiting.job, url_key)
            if partition.pending is not None:
                _without(partition.pending, job.uid)
            for counted in [key for key in partition.ended if key[0] == job.uid]:
                del partition.ended[counted]
        if renamed:
            self.leases = OrderedDict((renamed.get(key, key), until) for key, until in self.leases.items())
        for host in self.hosts.hot.values():
            host.uses.pop(job.uid, None)
            host.novelty.pop(job.uid, None)

    def _reserve_due_pages(self, job: Job) -> bool:
        """Reserve budget for the stored pages that are due, when a job gets a page budget. Returns whether there are
        any. O(watched URLs)."""
        for state in job.due_table.states() if job.max_pages else ():
            due = state.outcome is Outcome.STORED and job.due_table.is_checked_out(state.url_key)
            if due and (job.uid, state.url_key) not in self.partition(state.url_key).outstanding:
                job.reserve_page(state.url_key)
        return bool(job.reserved)

    def _reorder(self, job: Job) -> None:
        """Requeue all URLs in the order of another strategy, pages with reserved budget first. O(queued URLs)."""
        store, strategy = self.store, job.strategy
        for host in store.hosts_of(job.number):
            items = store.items(host, job.number)
            store.drop_queue(host, job.number)
            for order, packed in items:
                if packed[:16] in job.reserved:
                    order = 0
                elif order:
                    entry = unpack(packed)
                    order = strategy.order(entry.depth, entry.priority)
                store.push(host, job.number, order, packed, bool(order) and strategy.newest_first)

    # ---- readiness

    def schedule(self, number: int, earliest: float = 0.0) -> None:
        """Put a host into the heap of the store, unless it is there, ready, in an address queue, or fully in use."""
        store = self.store
        if store.ready_at(number) is not None or number in self.ready or number in self.waiting_for_address:
            return
        host = self.hosts.hot.get(number)
        if not store.queued(number):
            if host is None or not host.in_flight:
                self.prepared.discard(number)
            return
        if host is None:
            # Its pace is read when it is taken. A restart must not read the pace of a million hosts.
            self.schedule_at(number, max(earliest, self.now))
        elif not host.in_flight or host.in_flight < self._limit(host):
            self.schedule_at(number, max(host.pace.not_before, earliest, self.now))

    def schedule_at(self, number: int, at: float) -> None:
        """Set the instant at which a host is ready."""
        self.store.schedule(number, at)
        if number in self.prepared.by_number:
            self.prepared.schedule(number, at)

    def take_prepared(self) -> int:
        """The next prepared host that is ready, out of the heap of the store; -1 for none."""
        while (number := self.prepared.take(self.now)) >= 0:
            at = self.store.ready_at(number)
            if at is not None and at <= self.now:
                self.store.unschedule(number)
                return number
        return -1

    def may_prepare(self, job: Job) -> bool:
        """Whether robots.txt may be fetched for one more page of a job: the page budget covers that page too, or it may
        be a requisite."""
        if job.requisites:
            return True
        return not job.max_pages or job.ignore_robots or job.budget_left > self.prepared.count(job.number)

    def _reschedule_ready(self) -> None:
        """Move all ready hosts back into the heap. A host is ready for the jobs that could go at that time: if that job
        is paused or deleted, the host would be lost to the others. O(ready hosts)."""
        for number in self.ready.hosts():
            self.ready.discard(number)
            self.schedule(number)

    def reschedule(self, host: Host) -> None:
        """Schedule a host again after a change of its pace."""
        number, not_before = host.number, host.pace.not_before
        at = self.store.ready_at(number)
        if at is not None:
            if at < not_before:
                self.schedule_at(number, not_before)
            return
        if not_before > self.now:
            self.ready.discard(number)
        self.schedule(number)

    def hosts_ready(self, now: float) -> int:
        """Hosts that could be fetched from now. O(`COUNTED`); a lower bound where more than that are due."""
        return len(self.ready) + sum(at <= now for _, at in self.store.scheduled(COUNTED))

    def hosts_waiting(self, now: float) -> int:
        """Hosts with queued URLs whose delay or pause is not over. O(`COUNTED`); an upper bound where more are due."""
        return self.store.waiting() - sum(at <= now for _, at in self.store.scheduled(COUNTED))

    @property
    def hosts_blocked(self) -> int:
        """Hosts that no delay frees: they wait for a server address, or for a job that can take nothing now."""
        held = {number for job in self.jobs.values() for number in (*job.waiting_hosts, *job.over_budget_hosts)}
        return len(held) + len(self.waiting_for_address)

    def urls_ready(self, now: float) -> int:
        """URLs queued on hosts that could be fetched from now. O(`COUNTED`); a lower bound where there are more."""
        due = [host for host, at in self.store.scheduled(COUNTED) if at <= now]
        return sum(map(self.store.queued, itertools.islice(itertools.chain(self.ready.hosts(), due), COUNTED)))

    def oldest_ready_s(self, now: float) -> float:
        """How long the host that has been ready longest has waited; 0 without any."""
        instants = (self.ready.ready_since(), self.store.next_ready())
        return max(now - min((at for at in instants if at is not None), default=now), 0.0)

    def newly_queued(self, number: int, job: Job, order: int) -> None:
        """A job has queued a URL on a host, which may be one it can take where it could take no other."""
        job.waiting_hosts.pop(number, None)
        if number in self.ready:
            self.ready.offer(number, job.number, order)
        else:
            self.schedule(number)

    def _limit(self, host: Host) -> int:
        """Concurrent fetches of a host: the smallest limit of the jobs that use it."""
        limits = [job.policies.concurrency(host.key) for job in self.jobs_on(host)]
        return min(limits) if limits else 1

    def fetches_alone(self, host: Host, job: Job | None) -> bool:
        """Whether this job, and every other one with URLs on the host, fetches one at a time there. False where no job
        is known."""
        users = [*self.jobs_on(host), *([job] if job is not None else [])]
        return bool(users) and all(user.policies.concurrency(host.key) == 1 for user in users)

    def jobs_on(self, host: Host) -> list[Job]:
        """Jobs that have URLs queued on a host."""
        numbered = self.numbered
        return [numbered[number] for number, _ in self.store.jobs(host.number) if number in numbered]

    def delay_s(self, host: Host, job: Job | None) -> float:
        """Seconds between two fetches of a host for a job; for None the longest over all jobs that use the host."""
        if job is None:
            return max((self.delay_s(host, user) for user in self.jobs_on(host)), default=host.crawl_delay_s)
        return job.policies.delay_s(host.key, host.crawl_delay_s, host.pace.took_s)

    def wait_for_address(self, host: Host, head: bool) -> None:
        """Put a host into the queue of its server address; `head`: it was the first there before."""
        slot = self.waiting_for_address.setdefault(host.number, QueueSlot(host.number))
        self.addresses.wait(host.address, slot, self.now, head, host.number in self.prepared.by_number)

    def take_waiting_for_address(self) -> int:
        """Remove and return the next host of an address that has room; -1 when there is none."""
        taken = self.addresses.take(self.now)
        if taken is None:
            return -1
        del self.waiting_for_address[taken[1].number]
        return taken[1].number

    def note_quarantine(self, job: Job, host: Host, quarantine: Quarantine) -> None:
        """Log that a part of a host was closed for a job, or released."""
        job.quarantines[quarantine.host, quarantine.place] = quarantine
        self.pending(self.partitions[host.partition]).quarantines.append(quarantine)

    def set_waiting_for_job(self, number: int, jobs: Iterable[Job]) -> None:
        """Hold a host back until one of the jobs can take more."""
        for job in jobs:
            job.waiting_hosts[number] = None

    def resume_hosts(self, job: Job) -> None:
        """Schedule the hosts that were held back because the job could take no more."""
        if job.waiting_hosts and job.has_room:
            parked, job.waiting_hosts = job.waiting_hosts, {}
            for number in parked:
                self.ready.discard(number)  # it may be ready for other jobs
                self.schedule(number)

    def count_quotas(self, job: Job, size_bytes: int, browser_s: float) -> None:
        """Count a fetch of a page in the quotas of its job, and its browser time; log the totals."""
        logged = self.pending(self.partitions[0]).uses
        uses = self.quotas.count(job.uid, size_bytes, browser_s, self.utc_now)
        if browser_s:
            uses.append(self.quotas.count_browser(job.uid, browser_s))
        for use in uses:
            if not any(one is use for one in logged):
                logged.append(use)
        if not job.hold(Hold.QUOTA) and self.quotas.used_up(job.uid, self.utc_now) is not None:
            self.apply_quotas()

    def _put_quotas(self, job: Job) -> None:
        if self.quotas.put(job.spec):
            self.quotas.renew(job.uid, self.utc_now)
        job.note_quotas(self.quotas.rooms(job.uid))

    def apply_quotas(self) -> None:
        """Hold the jobs of which a quota is used up, and release the others. O(jobs with quotas)."""
        self.quotas.checked()
        changed = False
        for uid in self.quotas.jobs():
            job = self.jobs[uid]
            self.quotas.renew(uid, self.utc_now)
            used_up = self.quotas.used_up(uid, self.utc_now)
            text = used_up.text if used_up is not None else ""
            if used_up is not None:
                self.quotas.check_at(used_up.until)
            changed |= self._set_hold(job, Hold.QUOTA, text)
        if changed:
            self._reschedule_ready()

    def apply_windows(self) -> None:
        """Hold the jobs of which no window is open, and release the others. O(jobs)."""
        self._next_window = math.inf
        changed = False
        for job in self.jobs.values():
            changed |= self._apply_windows(job)
        if changed:
            self._reschedule_ready()

    def _apply_windows(self, job: Job) -> bool:
        """Hold or release a job by its windows; returns whether its hold changed."""
        if job.windows is None:
            return self._set_hold(job, Hold.WINDOW, "")
        state = job.windows.state(self.utc_now)
        self._next_window = min(self._next_window, state.until)
        return self._set_hold(job, Hold.WINDOW, "" if state.is_open else job.windows.words(state.until))

    def _set_hold(self, job: Job, kind: Hold, text: str) -> bool:
        if text == job.hold(kind):
            return False
        job.set_hold(kind, text)
        self.resume_hosts(job)
        return True

    @property
    def next_hold_check(self) -> float:
        """UTC instant at which a hold of a job may begin or end; infinity for none."""
        return min(self.quotas.next_check, self._next_window)

    def apply_holds(self) -> None:
        """Compare the jobs with their quotas and windows where it is time."""
        if self.quotas.next_check <= self.utc_now:
            self.apply_quotas()
        if self._next_window <= self.utc_now:
            self.apply_windows()

    def next_opening(self) -> float | None:
        """Monotonic instant at which the first job that waits for its window may fetch; None for none. O(jobs)."""
        waiting = (
            job.windows.opens_at(self.utc_now)
            for job in self.jobs.values()
            if job.windows is not None and job.hold(Hold.WINDOW) and job.queued and not job.spec.paused
        )
        opening = min(waiting, default=math.inf)
        return opening - self.utc_offset if opening < math.inf else None

    def update_host_budget(self, host: Host, job: Job) -> bool:
        """Record and return whether the job's budget on a host is spent. A host whose budget was raised is scheduled
        again."""
        if job.spent(host.uses.get(job.uid)):
            job.over_budget_hosts[host.number] = None
            return True
        if host.number in job.over_budget_hosts:
            del job.over_budget_hosts[host.number]
            self.schedule(host.number)
        return False


def _without(commit: FrontierCommit, uid: str) -> None:
    """Remove a deleted job from a commit that is not written yet: the same commit may bring a new job of that name."""
    commit.queued = [queued for queued in unpacked_rows(commit.queued) if queued.job != uid]
    commit.held = [held for held in commit.held if held.job != uid]
    commit.leased = [leased for leased in commit.leased if leased.job != uid]
    commit.ended = [ended for ended in commit.ended if ended.job != uid]
    commit.urls = [state for state in commit.urls if state.job != uid]
    commit.anchors = [anchor for anchor in commit.anchors if anchor.job != uid]
    commit.uses = [use for use in commit.uses if use.account not in own_accounts(uid)]
    commit.forgotten = [forgotten for forgotten in commit.forgotten if forgotten.job != uid]
    commit.quarantines = [quarantine for quarantine in commit.quarantines if quarantine.job != uid]
    for host in commit.hosts:
        host.uses = [use for use in host.uses if use.job != uid]
