"""The frontier: P partition objects over one commit log. Pure: values and instants in, values out.

Every change goes two ways at once: into the views held here (seen, queues, hosts) and into the pending commit of its
partition. `commits()` hands those over to be written; only after that may what was dispatched be published: commit
first, emit after. Views are never a second truth: `restore` rebuilds them from the log alone.
"""

from __future__ import annotations

import random
from collections import Counter, OrderedDict
from collections.abc import Sequence

from nephila.kernel.messages import Anchor, CrawlJob, FrontierCommit, Outcome, Outlinks, QueuedUrl
from nephila.native import partition_of
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.host import Host, Outstanding, State
from nephila.scheduler.job import Job
from nephila.scheduler.queue import SEED, pack, unpack
from nephila.scheduler.workbench import Workbench

Key = tuple[str, bytes]


class Partition:
    """Hosts and outstanding URLs of one slice of the MD5 circle, and its commit in the making."""

    __slots__ = ("ended", "epoch", "hosts", "number", "outstanding", "pending", "sequence")

    def __init__(self, number: int) -> None:
        self.number = number
        self.epoch = 0
        self.sequence = 0
        self.hosts: dict[str, Host] = {}
        self.outstanding: dict[Key, Outstanding] = {}
        self.pending: FrontierCommit | None = None
        self.ended: Counter[tuple[str, Outcome]] = Counter()


class Frontier:
    """All partitions of one scheduler. Instants are monotonic seconds; `utc_offset` turns them into UTC."""

    def __init__(self, config: SchedulerConfig, utc_offset: float, rng: random.Random | None = None) -> None:
        if config.partitions < 1 or config.partitions & (config.partitions - 1):
            raise ValueError(f"partitions must be a power of two, got {config.partitions}")
        self.config = config
        self.utc_offset = utc_offset
        self.utc_now = 0.0
        """UTC of the turn that is being worked on."""
        self.rng = rng or random.Random()
        self.partitions = [Partition(n) for n in range(config.partitions)]
        self.jobs: dict[str, Job] = {}
        self.workbench: Workbench[Host] = Workbench()
        self.in_fetch = 0
        """Requests without outcome."""
        self.outstanding = 0
        """URLs taken from their queue and without receipt."""
        self.leases: OrderedDict[Key, float] = OrderedDict()
        """When each lease ends, in order; all leases are equally long."""
        self._dirty: list[Partition] = []

    # ---- structure

    def partition(self, url_key: bytes) -> Partition:
        """The partition a fingerprint belongs to."""
        return self.partitions[partition_of(url_key, len(self.partitions))]

    def pending(self, partition: Partition) -> FrontierCommit:
        """The commit a change of this partition goes into."""
        commit = partition.pending
        if commit is None:
            commit = partition.pending = FrontierCommit(partition=partition.number, epoch=partition.epoch)
            self._dirty.append(partition)
        return commit

    def commits(self) -> list[FrontierCommit]:
        """Take over what has to be written now, one commit per changed partition; jobs (partition 0) come first."""
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

    def host(self, partition: Partition, key: str) -> Host:
        """The host's state, made when first met."""
        host = partition.hosts.get(key)
        if host is None:
            host = partition.hosts[key] = Host(key, partition.number)
        return host

    def settle(self, waiting: Outstanding) -> Partition:
        """Take a URL off those that are on their way; returns its partition."""
        partition = self.partitions[waiting.host.partition]
        del partition.outstanding[waiting.job, waiting.entry.url_key]
        self.outstanding -= 1
        return partition

    # ---- admission

    def put_job(self, job: CrawlJob) -> Job:
        """Take a job, or a changed desired state of one; what is queued is checked against a changed scope when it
        comes up."""
        known = self.jobs.get(job.uid)
        if known is None:
            known = self.jobs[job.uid] = Job(job)
        else:
            known.change(job)
        self.pending(self.partitions[0]).jobs.append(job)
        self.wake(known)
        return known

    def add_seed(self, job: Job, host_key: str, path_query: str, url: str, url_key: bytes) -> str:
        """Admit a seed and anchor the scope at it; returns why not, or the empty string."""
        excluded = job.scope.excluded(url)
        if excluded:
            return f"excluded by {excluded!r}"
        job.seed_anchors.add(job.scope.anchor_of(host_key, path_query))
        self.anchor(job, host_key, path_query)
        if url_key in job.seen:
            return ""
        self.admit(job, url_key, url.encode(), host_key, 0, flags=SEED)
        return ""

    def anchor(self, job: Job, host_key: str, path_query: str) -> None:
        """Count the place of a seed as inside the job's scope."""
        place = job.scope.add_seed(host_key, path_query)
        if place:
            self.pending(self.partitions[0]).anchors.append(Anchor(job.uid, place))
            job.rejected.clear()

    def add_links(self, links: Outlinks) -> int:
        """Admit what is new and in scope of one page's links; returns how many. One seen test per page."""
        job = self.jobs.get(links.job)
        if job is None or 0 <= job.scope.max_depth < links.depth:
            return 0
        new = job.seen.missing(links.fingerprints)
        if not new:
            return 0
        admitted = 0
        ends = memoryview(links.url_ends).cast("I")
        spans = memoryview(links.host_spans).cast("I")
        urls = links.urls
        rejected = job.rejected
        for i in new:
            url_key = links.fingerprints[16 * i : 16 * i + 16]
            if url_key in rejected:
                continue
            raw = urls[ends[i - 1] if i else 0 : ends[i]]
            host_key = urls[spans[2 * i] : spans[2 * i + 1]].decode()
            if not job.scope.decide(raw.decode(), host_key, links.depth).admitted:
                job.reject(url_key)
                continue
            self.admit(job, url_key, raw, host_key, links.depth)
            admitted += 1
        return admitted

    def admit(
        self,
        job: Job,
        url_key: bytes,
        url: bytes,
        host_key: str,
        depth: int,
        *,
        hops: int = 0,
        flags: int = 0,
        head: bool = False,
    ) -> None:
        """Insert into seen, queue, and log: one atomic change of the URL's partition."""
        job.seen.add(url_key)
        partition = self.partition(url_key)
        host = self.host(partition, host_key)
        host.push(job.uid, pack(url_key, depth, 1, 0, hops, flags, url), depth, head)
        job.queued += 1
        self.pending(partition).queued.append(
            QueuedUrl(job.uid, url_key, url.decode(), host_key, depth, hops, 1, 0, head, bool(flags & SEED))
        )
        self.schedule(host)

    # ---- readiness

    def schedule(self, host: Host, earliest: float = 0.0) -> None:
        """Put the host on the workbench when it could be fetched from at all."""
        if host.ready_at is None and host.in_flight < self._limit(host) and host.queued:
            self.workbench.schedule(host, max(host.pace.not_before, earliest))

    def reschedule(self, host: Host) -> None:
        """Like `schedule`, when the host's pace has changed."""
        if host.ready_at is not None and host.ready_at < host.pace.not_before:
            self.workbench.remove(host)
        self.schedule(host)

    def _limit(self, host: Host) -> int:
        limits = [self.jobs[uid].concurrency_per_host for uid in host.queues if uid in self.jobs]
        return max(limits, default=1)

    def delay_s(self, host: Host, job: Job | None) -> float:
        """Seconds between two fetches of a host on behalf of a job; of None, on behalf of all that use the host."""
        if job is None:
            users = (self.jobs[uid] for uid in host.queues if uid in self.jobs)
            return max((self.delay_s(host, user) for user in users), default=host.crawl_delay_s)
        if job.ignore_robots:
            return job.delay_s
        return max(job.delay_s, host.crawl_delay_s)

    def wake(self, job: Job) -> None:
        """Reconsider hosts that were set aside because the job could not take more."""
        if job.parked and job.open:
            parked, job.parked = job.parked, {}
            for host in parked:
                self.schedule(host)

    # ---- invariants

    def check(self, aside: Sequence[tuple[Host, str, bytes]] = ()) -> None:
        """Raise AssertionError when an invariant does not hold; `aside` waits outside the queues. O(everything).

        Between two turns every URL that was ever seen is in one place: queued, aside, on its way, or ended.
        """
        self.workbench.check()
        on_way = [waiting for partition in self.partitions for waiting in partition.outstanding.values()]
        leased = [w for w in on_way if w.state is State.LEASED]
        assert self.outstanding == len(on_way), f"{self.outstanding} outstanding, but {len(on_way)} on their way"
        assert self.in_fetch == len(leased), f"{self.in_fetch} in fetch, but {len(leased)} leased"
        assert set(self.leases) == {(w.job, w.entry.url_key) for w in leased}, "leases and leased URLs differ"
        assert list(self.leases.values()) == sorted(self.leases.values()), "leases out of order"
        in_flight = Counter(id(w.host) for w in leased)
        places: dict[str, list[bytes]] = {uid: [] for uid in self.jobs}
        for _, uid, packed in aside:
            places[uid].append(unpack(packed).url_key)
        parked = {id(host) for job in self.jobs.values() for host in job.parked}
        for partition in self.partitions:
            for host in partition.hosts.values():
                assert host.partition == partition.number
                assert host.in_flight == in_flight[id(host)], f"{host.key}: {host.in_flight} in flight"
                self._check_host(host, places, id(host) in parked)
        waiting = sum(host.ready_at is not None for partition in self.partitions for host in partition.hosts.values())
        assert len(self.workbench) == len(self.workbench.waiting()) == waiting, "workbench and hosts differ"
        for uid, job in self.jobs.items():
            assert job.queued == len(places[uid]), f"{uid}: {job.queued} queued, but {len(places[uid])} in queues"
            mine = [w for w in on_way if w.job == uid]
            taken = sum(w.state is not State.ENDING for w in mine)
            assert job.leased == taken, f"{uid}: {job.leased} leased, but {taken} on their way as pages"
            keys = places[uid] + [w.entry.url_key for w in mine]
            assert len(keys) == len(set(keys)), f"{uid}: a URL is in two places"
            assert all(key in job.seen for key in keys), f"{uid}: a URL was not seen"
            assert job.owed <= set(places[uid]), f"{uid}: a place is kept for a URL that is not queued"
            ended = sum(job.ended.values())
            assert len(job.seen) == len(keys) + ended, f"{uid}: {len(job.seen)} seen, {len(keys)} left, {ended} ended"

    def _check_host(self, host: Host, places: dict[str, list[bytes]], parked: bool) -> None:
        for uid, queue in host.queues.items():
            queue.check()
            places[uid].extend(unpack(packed).url_key for packed, _ in queue.items())
        if host.ready_at is not None:
            assert host.ready_at >= host.pace.not_before, f"{host.key} would be taken before its pace allows"
        elif host.queued:
            assert parked or host.in_flight, f"{host.key}: queued, and nothing will ever take it"
