"""One partition of a frontier over a broker: its views, its log, and what may go out when.

Each turn's changes pass three gates in order, and many turns are on their way at once: what belongs to other partitions
is with the broker; the commit is in the log `frontier`; this member may still speak for the partition. Only behind the
third are requests and rows published and inputs acked. The views run ahead of the log, the outside never does: a crash
between any two gates loses nothing, as inputs come again and are idempotent. A snapshot is one of the things that pass
the gates. Who owns the partition, and when it takes a turn, is said in `shards.py`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from nephila.kernel.bus.base import Bus, Delivery, History, Receipt
from nephila.kernel.clock import Clock
from nephila.kernel.errors import TemporaryError
from nephila.kernel.failpoints import reach
from nephila.kernel.messages import (
    CrawlJob,
    FetchOutcome,
    FetchResult,
    FrontierCommit,
    FrontierManifest,
    FrontierRecord,
    Outlinks,
    Receipts,
    Seed,
)
from nephila.kernel.topics import FRONTIER, RECORDS, REQUESTS, SEEDS
from nephila.native import HostStore, UrlError, parse_url
from nephila.scheduler.admission import add_links, add_seed, add_sent_on, note_anchor
from nephila.scheduler.changelog import RECORD_BYTES, pieces, weight
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.dispatch import Dispatcher
from nephila.scheduler.frontier import Frontier, Slice
from nephila.scheduler.host import Dispatch
from nephila.scheduler.job import Job
from nephila.scheduler.lines import Lines, Share
from nephila.scheduler.scope import anchored_in
from nephila.scheduler.seen import new_seen
from nephila.scheduler.shardfiles import ShardFiles
from nephila.scheduler.snapshots import cleanup, snapshots

log = logging.getLogger(__name__)

SHARES = 16
"""A partition may keep this part of the hosts in memory that a scheduler may."""
LEAST_HOT_HOSTS = 256
REFUSED_SEEDS = 1000
ANCHORS_PER_MESSAGE = 2000


class Outside(Bus, History, Protocol):
    """What a shard needs of its bus."""


@dataclass(slots=True)
class Step:
    """One turn on its way out."""

    commits: list[FrontierCommit]
    out: Dispatch
    acks: list[Delivery]
    foreign: int = 0
    """Receipts of other partitions that are waited for."""
    receipt: Receipt | None = None
    offset: int = -1
    """A place in the log at or before the first commit after this one."""
    then: Callable[[int], None] | None = None
    """Called with the offset once everything before is out."""


@dataclass(slots=True)
class Counts:
    """What a program counts over all its partitions."""

    requests: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    refused_seeds: deque[tuple[str, str]] = field(default_factory=lambda: deque(maxlen=REFUSED_SEEDS))
    commits: int = 0
    blocked: int = 0
    """Times that something was not published because the partition may have been lost."""


class Owner(Protocol):
    """Who has the shards of a program."""

    def wake(self, shard: Shard) -> None:
        """It is to take a turn."""

    def fatal(self, error: BaseException) -> None:
        """The program cannot go on."""

    def anchored(self, shard: Shard, uid: str, place: str) -> None:
        """The scope of a job has a further anchor."""


class Shard:
    """See the module."""

    def __init__(
        self,
        config: SchedulerConfig,
        files: ShardFiles,
        bus: Outside,
        clock: Clock,
        lines: Lines,
        counts: Counts,
        owner: Owner,
    ) -> None:
        self.number = files.partition
        self.files = files
        self.bus = bus
        self.clock = clock
        self.counts = counts
        directory = str(files.directory)
        self.config = msgspec.structs.replace(
            config,
            partitions=1,
            directory=directory,
            hot_hosts=max(config.hot_hosts // SHARES, LEAST_HOT_HOSTS),
            hot_robots_bytes=config.hot_robots_bytes // SHARES,
        )
        self.frontier = Frontier(
            self.config,
            HostStore(directory),
            lambda number: new_seen(directory, number),
            own=Slice(files.partition, files.partitions),
        )
        self._owner = owner
        self._share = Share(lines, self._wake)
        self.frontier.addresses = self._share
        self.frontier.on_anchor = self._anchored
        self._anchors: dict[str, list[str]] = {}
        """Job → places that other partitions have to know, before the commit in which they are known here."""
        self.dispatcher = Dispatcher(self.frontier)
        self.due = False
        """A turn has been asked for."""
        self.wake_at: float | None = None
        """When it is to take a turn by time alone."""
        self.stopped = False
        """It hands out nothing more."""
        self.dead = False
        self.log_bytes = 0
        """About what the log has since the last snapshot."""
        self.epoch = 0
        self._out = Dispatch()
        self._acks: list[Delivery] = []
        self._sending: deque[Step] = deque()
        self._written: deque[Step] = deque()
        self._advancing = False
        self._quiet = asyncio.Event()
        self._snapshot: asyncio.Task[None] | None = None
        self._taking = False
        self._kept_at = clock.monotonic()
        """When the last snapshot was begun."""

    # ---- life

    def _wake(self) -> None:
        self._owner.wake(self)

    def begin(self, epoch: int, again: Dispatch) -> None:
        """It is ours from this claim on; what the owner before may not have published goes out with the first turn."""
        self.epoch = self.frontier.partitions[0].epoch = epoch
        for _, request in again.requests:
            request.epoch = epoch
        self._out = again
        self._wake()

    def restored(self, commit: FrontierCommit) -> None:
        """A commit of the log that no snapshot has is taken up."""
        self.log_bytes += weight(commit)

    async def finish(self) -> None:
        """Hand out nothing more; return when everything that was taken has gone out."""
        self.stopped = True
        self._wake()
        while not self.quiet and not self.dead:
            self._quiet.clear()
            await self._quiet.wait()

    @property
    def has_work(self) -> bool:
        """Whether anything of it waits for room. O(jobs)."""
        frontier = self.frontier
        return bool(frontier.outstanding) or any(job.queued for job in frontier.jobs.values())

    @property
    def quiet(self) -> bool:
        """Nothing is on its way out, and no turn is due."""
        return not (self._sending or self._written or self._acks or self.due)

    def drop(self) -> None:
        """It is another's: nothing goes out any more, and nothing here counts."""
        self.dead = self.stopped = self.files.dropped = True
        frontier = self.frontier
        for place in frontier.lined_up.values():
            self._share.leave(place)
        now = self.clock.monotonic()
        for key in frontier.leases:
            waiting = frontier.partitions[0].outstanding[key]
            if waiting.address:
                self._share.end(waiting.address, now)
        self._sending.clear()
        self._written.clear()
        self._acks.clear()
        self._quiet.set()

    async def gone(self) -> None:
        """Return when nothing of it touches its directory any more."""
        if self._snapshot is not None:
            await asyncio.wait([self._snapshot])

    # ---- in

    def at(self) -> float:
        """The instant at hand."""
        now = self.clock.monotonic()
        self.frontier.at(now, self.clock.now())
        return now

    def job(self, uid: str, spec: CrawlJob) -> Job:
        """The job here; one that had nothing in this partition is taken into its log."""
        job = self.frontier.jobs.get(uid)
        if job is None:
            self.at()
            job = self.frontier.put_job(spec)
            assert job is not None
        return job

    def change_job(self, spec: CrawlJob) -> None:
        """Another desired state of a job that has something here."""
        known = self.frontier.jobs.get(spec.uid)
        if known is not None and known.spec != spec:
            self.at()
            mode = known.scope.mode
            self.frontier.put_job(spec)
            if known.scope.mode != mode:
                # The anchors mean something else now, and so does where they are wanted.
                self._anchors[spec.uid] = list(known.scope.anchors)
            self._wake()

    def go_on(self, job: Job) -> None:
        """The job may take more than before."""
        self.at()
        self.frontier.wake(job)
        self._wake()

    def anchor(self, uid: str, place: str) -> None:
        """The scope of a job is anchored at a place that was found elsewhere."""
        job = self.frontier.jobs.get(uid)
        if job is not None and place not in job.scope.anchors:
            note_anchor(self.frontier, job, place)
            self._wake()

    def _anchored(self, uid: str, place: str) -> None:
        self._anchors.setdefault(uid, []).append(place)
        self._owner.anchored(self, uid, place)

    def seed(self, delivery: Delivery, job: Job) -> None:
        """A URL to begin with, or one that another partition has found, or anchors of the scope."""
        seed: Seed = delivery.message
        if seed.anchors:
            for place in seed.anchors:
                self.anchor(job.uid, place)
            self.taken(delivery)
            return
        self.at()
        try:
            parts = parse_url(seed.url)
        except UrlError as error:
            self.counts.refused_seeds.append((seed.url, str(error)))
        else:
            if seed.sent_on:
                add_sent_on(self.frontier, job, seed, parts)
            else:
                refused = add_seed(self.frontier, job, parts.host_key, parts.path_query, parts.href, parts.fingerprint)
                if refused:
                    self.counts.refused_seeds.append((seed.url, refused))
        self.taken(delivery)

    def outlinks(self, delivery: Delivery) -> None:
        """Links of a page."""
        links: Outlinks = delivery.message
        self.at()
        add_links(self.frontier, links)
        self.taken(delivery)

    def outcome(self, delivery: Delivery) -> None:
        """A fetch has ended."""
        outcome: FetchOutcome = delivery.message
        if outcome.result is FetchResult.FAILED:
            self.counts.errors[outcome.reason] += 1
        self.dispatcher.endings.outcome(outcome, self.at(), self._out)
        self.taken(delivery)

    def receipts(self, delivery: Delivery) -> None:
        """URLs are durable."""
        receipts: Receipts = delivery.message
        self.at()
        self.dispatcher.endings.receipts(receipts)
        self.taken(delivery)

    def taken(self, delivery: Delivery) -> None:
        """To be acked once what it has led to is in the log."""
        self._acks.append(delivery)
        self._wake()

    # ---- a turn

    def turn(self) -> None:
        """Dispatch, and send what has changed on its way out."""
        self.due = False
        if self.dead:
            return
        now = self.at()
        frontier = self.frontier
        out, self._out = self._out, Dispatch()
        acks, self._acks = self._acks, []
        if not self.stopped:
            self.dispatcher.dispatch(now, out)
        foreign, frontier.foreign = frontier.foreign, []
        foreign += self._anchors_for_others()
        commits = frontier.commits()
        if commits or foreign or acks or out.requests or out.records:
            step = Step(self._fitting(commits), out, acks, len(foreign))
            self._sending.append(step)
            for partition, seed in foreign:
                self.bus.publish(SEEDS, partition, seed).add_done_callback(lambda: self._sent_on(step))
        if self.wants_snapshot:
            self._take_snapshot()
        frontier.hosts.trim(frontier.busy)
        self.advance()
        self._quiet.set()

    def _anchors_for_others(self) -> list[tuple[int, Seed]]:
        found, self._anchors = self._anchors, {}
        messages = []
        for uid, places in found.items():
            job = self.frontier.jobs.get(uid)
            if job is None:
                continue
            by_partition: dict[int, list[str]] = {}
            for place in places:
                for partition in anchored_in(job.scope.mode, place, self.files.partitions) - {self.number}:
                    by_partition.setdefault(partition, []).append(place)
            for partition, some in by_partition.items():
                for at in range(0, len(some), ANCHORS_PER_MESSAGE):
                    part = some[at : at + ANCHORS_PER_MESSAGE]
                    messages.append((partition, Seed(uid, sent_on=True, anchors=part)))
        return messages

    def _fitting(self, commits: list[FrontierCommit]) -> list[FrontierCommit]:
        """Commits that fit into a record each, counted."""
        found = []
        for commit in commits:
            size = weight(commit)
            self.log_bytes += size
            if size <= RECORD_BYTES:
                found.append(commit)
                continue
            parts = list(pieces(commit))
            self.frontier.partitions[0].sequence = parts[-1].sequence
            found += parts
        return found

    def _sent_on(self, step: Step) -> None:
        step.foreign -= 1
        if not step.foreign:
            self.advance()

    def advance(self) -> None:
        """Let through the gates what may pass."""
        if self._advancing:
            return
        self._advancing = True
        try:
            while self._sending and not self._sending[0].foreign:
                self._write(self._sending.popleft())
            while self._written and self._written[0].offset >= 0:
                if not self.bus.may_emit("scheduler"):
                    self.counts.blocked += 1
                    return
                self._emit(self._written.popleft())
        finally:
            self._advancing = False

    @property
    def blocked(self) -> bool:
        """Something may not go out before it is known that the partition is still ours."""
        return bool(self._written) and self._written[0].offset >= 0

    def _write(self, step: Step) -> None:
        self._written.append(step)
        reach("frontier_commit_before")
        if not step.commits:
            # Behind the one before it, if that is still on its way.
            before = self._written[-2].receipt if len(self._written) > 1 else None
            step.receipt = before
        for commit in step.commits:
            self.counts.commits += 1
            step.receipt = self.bus.publish(FRONTIER, self.number, FrontierRecord(None, commit))
        if step.receipt is None:
            step.offset = max(self.bus.last_offset(FRONTIER, self.number), self.epoch)
        else:
            step.receipt.add_done_callback(lambda: self._in_log(step))

    def _in_log(self, step: Step) -> None:
        # At once: later commits may be in the log by the time that this step's turn comes.
        step.offset = self.bus.last_offset(FRONTIER, self.number)
        reach("frontier_commit_after")
        self.advance()

    def _emit(self, step: Step) -> None:
        publish = self.bus.publish
        for _, record in step.out.records:
            publish(RECORDS, self.number, record)
        for delivery in step.acks:
            delivery.ack()
        self.counts.requests += len(step.out.requests)
        for _, request in step.out.requests:
            publish(REQUESTS, self.number, request)
        if step.then is not None:
            step.then(step.offset)
        if self.quiet:
            self._quiet.set()

    # ---- snapshots

    @property
    def wants_snapshot(self) -> bool:
        """The log has grown enough for one, or what the host store keeps in memory until then."""
        limit = self.config.snapshot_bytes
        grown = self.log_bytes > limit or self.frontier.hosts.written_bytes > 4 * limit
        return grown and not self._taking and not self.stopped

    def look_at_age(self) -> None:
        """Have a snapshot taken with the next turn when something has not been in one for too long."""
        if self.log_bytes and self.clock.monotonic() > self._kept_at + self.config.snapshot_age_s:
            self.log_bytes = max(self.log_bytes, self.config.snapshot_bytes + 1)
            self._wake()

    def _take_snapshot(self) -> None:
        """Write the state after the last commit of this turn; it counts once that is in the log."""
        self._taking = True
        self._kept_at = self.clock.monotonic()
        sequence = self.frontier.partitions[0].sequence
        self.files.write_state(snapshots(self.dispatcher), sequence)
        self.log_bytes = self.frontier.hosts.written_bytes = 0
        step = Step([], Dispatch(), [])
        step.then = lambda offset: self._begin_keeping(sequence, offset)
        self._sending.append(step)

    def _begin_keeping(self, sequence: int, offset: int) -> None:
        # The files of the snapshot before go first: what they held is in the log, and in the blob store.
        cleanup(self.frontier)
        self._snapshot = asyncio.ensure_future(self._keep(sequence, offset))

    async def _keep(self, sequence: int, offset: int) -> None:
        try:
            manifest = await asyncio.to_thread(self.files.keep, self.epoch, sequence, offset, self.clock.now())
            if self.files.blobs is not None:
                await self._send(manifest)
        except TemporaryError as error:
            log.warning("partition %d: the snapshot stays here, and the log as it is: %s", self.number, error)
        except Exception as error:
            if not self.dead:
                self._owner.fatal(error)
        finally:
            self._taking = False
            self._snapshot = None

    async def _send(self, manifest: FrontierManifest) -> None:
        """To the blob store; then what it makes redundant goes."""
        if not await asyncio.to_thread(self.files.send, manifest) or not self.bus.may_emit("scheduler"):
            return
        await self.bus.delete_before(FRONTIER, {self.number: manifest.offset})
        await asyncio.to_thread(self.files.clear, manifest)
