"""Schedulers that come, go, freeze and are killed, over logs that are slow: what coordinates them is real, the rest is
as little as will do. A partition is a set of queued, leased and stored URLs; what was committed outlives its owner.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, field

import msgspec
from nephila.kernel.documents.job_schema import Scope
from nephila.kernel.layout import layout_of
from nephila.kernel.messages import JobProgress, JobStatus, PartitionStatus
from nephila_cluster.scheduler.jobs.job_protocol import JobProtocol, coordinating_partition
from nephila_cluster.scheduler.jobs.job_view import JobView

from tests.jobs import crawl_job

JOB = "j"


@dataclass
class State:
    """What there is of a job in one partition; a copy of it is what an owner works on."""

    seen: set[int] = field(default_factory=set)
    queued: list[int] = field(default_factory=list)
    leased: set[int] = field(default_factory=set)
    stored: set[int] = field(default_factory=set)
    failed: set[int] = field(default_factory=set)
    generation: int = 0
    links: int = 0
    """Read of its links and seeds."""
    receipts: int = 0

    def copy(self) -> State:
        """Of its own."""
        return State(
            set(self.seen),
            list(self.queued),
            set(self.leased),
            set(self.stored),
            set(self.failed),
            self.generation,
            self.links,
            self.receipts,
        )


class PartitionOwner:
    """One partition at one owner: see `protocol.OwnedPartition`."""

    def __init__(self, world: World, number: int, epoch: int) -> None:
        self.world = world
        self.number = number
        self.epoch = epoch
        self.now = world.disk[number].copy()
        self.changed = False
        self.handed = 0
        self.noted: tuple[int, int] | None = None
        self.pages = 0
        self.spent = False
        self.requests: list[int] = []
        self.awake = True
        """Whether its hosts may be fetched from."""
        self.deaf = False
        """Whether links wait at its door."""

    # ---- as the protocol sees it

    @property
    def committed(self) -> bool:
        """See `OwnedPartition`."""
        return not self.changed

    def state_version(self, uid: str) -> tuple[int, int]:
        """See `OwnedPartition`."""
        return self.now.generation, len(self.now.seen) + self.handed

    def take_changed(self) -> list[str]:
        """See `OwnedPartition`."""
        before, self.noted = self.noted, self.state_version(JOB)
        return [JOB] if before != self.noted else []

    def status(self, uid: str) -> PartitionStatus | None:
        """See `OwnedPartition`."""
        now = self.now
        if not now.generation:
            return None
        return PartitionStatus(
            generation=now.generation,
            queued=len(now.queued),
            in_flight=len(now.leased),
            stored=len(now.stored),
            failed=len(now.failed),
            idle=not now.leased and (not now.queued or self.spent),
            activity=len(now.seen) + self.handed,
            used=len(now.leased) + len(now.stored),
        )

    def ready(self, uid: str) -> int:
        """See `OwnedPartition`."""
        return len(self.now.queued) if self.awake else 0

    def set_quota(self, uid: str, pages: int, spent: bool) -> None:
        """See `OwnedPartition`."""
        self.pages, self.spent = pages, spent

    # ---- work

    def work(self, rng: random.Random) -> None:
        """Read something, take a URL, or commit."""
        world, now = self.world, self.now
        links, receipts = world.links[self.number], world.receipts[self.number]
        what = rng.randrange(4)
        if rng.random() < 0.1:
            self.awake = not self.awake
        if rng.random() < 0.02:
            self.deaf = not self.deaf
        if what == 0 and not self.deaf and now.links < len(links):
            url = links[now.links]
            now.links += 1
            self.changed = True
            if now.generation and url not in now.seen:
                now.seen.add(url)
                now.queued.append(url)
        elif what == 1 and now.receipts < len(receipts):
            url = receipts[now.receipts]
            now.receipts += 1
            self.changed = True
            if url in now.leased:
                now.leased.discard(url)
                (now.failed if url in world.bad else now.stored).add(url)
        elif what == 2 and now.queued and self.awake and self._may_take():
            url = now.queued.pop(rng.randrange(len(now.queued)))
            now.leased.add(url)
            self.requests.append(url)
            self.handed += 1
            self.changed = True
        elif what == 3:
            self.commit()

    def _may_take(self) -> bool:
        return not self.world.budget or (not self.spent and len(self.now.leased) + len(self.now.stored) < self.pages)

    def commit(self) -> None:
        """What was done is durable, and what it led to goes out; nothing of an owner that another one has followed."""
        if self.world.epochs[self.number] == self.epoch:
            self.world.disk[self.number] = self.now.copy()
            self.world.fetching += self.requests
        self.requests = []
        self.changed = False


class Member:
    """One scheduler."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.alive = True
        self.frozen = False
        self.owners: dict[int, PartitionOwner] = {}
        self.protocol = JobProtocol(name, lambda: layout_of(world.partitions), world.jobs)
        self.outbox: list[JobStatus | JobProgress] = []
        self.ends: tuple[object, list[int]] | None = None
        self.read = [0, 0]
        self.compacted()

    def compacted(self) -> None:
        """At the start all that is there is read; of much of it the last word under its key alone."""
        world = self.world
        for log, on in ((world.statuses, self.protocol.on_status), (world.progress, self.protocol.on_progress)):
            cut = world.rng.randrange(len(log) + 1) if world.rng.random() < 0.5 else 0
            last = {message.id if isinstance(message, JobProgress) else message.uid: i for i, message in enumerate(log)}
            for i, message in enumerate(log):
                if i >= min(cut, len(log) - world.recent) or i in last.values():
                    on(msgspec.structs.replace(message))
        self.read = [len(world.statuses), len(world.progress)]

    def gain(self, number: int) -> None:
        """This partition is its own from now on."""
        self.world.epochs[number] += 1
        owner = self.owners[number] = PartitionOwner(self.world, number, self.world.epochs[number])
        owner.now.generation = self.world.jobs[JOB].generation  # it has read the jobs before

    def step(self, rng: random.Random) -> None:
        """Something that a scheduler does."""
        what = rng.randrange(8)
        world = self.world
        if what == 0:
            self.outbox += self.protocol.messages_to_send(
                self.owners.values(), world.time, None if rng.random() < 0.7 else {JOB}
            )
            for number in list(self.owners):
                if world.owner[number] is not self and rng.random() < 0.2:
                    del self.owners[number]  # it has heard of it at last
        elif what == 1 and self.outbox:
            world.publish(self.outbox.pop(0))
        elif what == 2 and self.read[0] < len(world.statuses):
            self.protocol.on_status(msgspec.structs.replace(world.statuses[self.read[0]]))
            self.read[0] += 1
        elif what == 3 and self.read[1] < len(world.progress):
            self.protocol.on_progress(world.progress[self.read[1]])
            self.read[1] += 1
        elif what == 4:
            self._ends()
        elif self.owners:
            owner = rng.choice(list(self.owners.values()))
            if owner.now.generation != world.jobs[JOB].generation and rng.random() < 0.5:
                owner.now.generation = world.jobs[JOB].generation
                owner.changed = True
            owner.work(rng)

    def _ends(self) -> None:
        """Ask how far the logs go, or see whether all of it was read."""
        if self.ends is None:
            requested = self.protocol.pending_end_check().get(JOB)
            if requested is not None:
                self.ends = (requested, [len(links) for links in self.world.links])
            return
        rest, ends = self.ends
        if all(state.links >= end for state, end in zip(self.world.disk, ends, strict=True)):
            self.protocol.on_ends_reached(JOB, rest)
        self.ends = None


class World:
    """Logs, storage, the web, and who is alive."""

    recent = 40
    """So many records of a topic are never compacted."""

    def __init__(self, rng: random.Random, budget: int, pages: int) -> None:
        self.rng = rng
        self.budget = budget
        self.partitions = 2 ** rng.randrange(1, 4)
        self.pages = pages
        self.web = {n: [rng.randrange(pages) for _ in range(rng.randrange(6))] for n in range(pages)}
        self.bad = {n for n in range(pages) if rng.random() < 0.3}
        """Pages that cannot be fetched."""
        self.time = 1e9
        self.jobs = {JOB: crawl_job(JOB, generation=1, scope=Scope(max_depth=0, max_pages=budget))}
        self.statuses: list[JobStatus] = []
        self.progress: list[JobProgress] = []
        self.links: list[list[int]] = [[] for _ in range(self.partitions)]
        self.receipts: list[list[int]] = [[] for _ in range(self.partitions)]
        self.disk = [State() for _ in range(self.partitions)]
        self.epochs = [0] * self.partitions
        self.owner: list[Member | None] = [None] * self.partitions
        self.members = [Member(self, f"m{n}") for n in range(rng.randrange(1, 4))]
        self.fetching: list[int] = []
        self.parsed: list[tuple[int, list[int]]] = []
        """Pages whose links are being sent, and those that are still to be."""
        self.stored: set[int] = set()
        self.watcher = JobView(JOB)
        self.zombies: list[Member] = []
        for number in range(self.partitions):
            self.give(number)

    def partition(self, url: int) -> int:
        """Hosts of seven pages."""
        return (url // 7) * 5 % self.partitions

    def give(self, number: int) -> None:
        """A partition gets an owner among those that are up."""
        able = [member for member in self.members if not member.frozen]
        if able:
            self.owner[number] = member = self.rng.choice(able)
            member.gain(number)

    def publish(self, message: JobStatus | JobProgress) -> None:
        """On its topic, for all to read in one order."""
        if isinstance(message, JobProgress):
            self.progress.append(message)
            return
        self.statuses.append(message)
        if self.watcher.take_status(message) and message.done and message.generation == 2:
            self.check_done(message)

    def check_done(self, status: JobStatus) -> None:
        """Nothing may be left to do when it is view that nothing is."""
        assert not self.fetching
        assert not self.parsed
        assert not any(state.leased for state in self.disk)
        if not status.spent:
            assert not any(state.queued for state in self.disk)
            assert all(
                url in state.seen
                for links, state in zip(self.links, self.disk, strict=True)
                for url in links[state.links :]
            )
        assert status.stored == len(self.stored)

    def submit(self) -> None:
        """Seeds, then the job once more."""
        for seed in self.rng.sample(range(self.pages), 5):
            self.links[self.partition(seed)].append(seed)

    # ---- what happens

    def fetch(self) -> None:
        """A page comes, its links go out one by one, and its row is durable after all of them."""
        if self.fetching and self.rng.random() < 0.5:
            page = self.fetching.pop(self.rng.randrange(len(self.fetching)))
            self.parsed.append((page, [] if page in self.bad else list(self.web[page])))
        if not self.parsed:
            return
        at = self.rng.randrange(len(self.parsed))
        page, links = self.parsed[at]
        if links:
            link = links.pop()
            self.links[self.partition(link)].append(link)
            return
        del self.parsed[at]
        if page not in self.bad:
            self.stored.add(page)
        self.receipts[self.partition(page)].append(page)
        assert not self.budget or len(self.stored) <= self.budget, "more pages than the budget has"

    def hand_over(self) -> None:
        """One partition goes to another member, in order."""
        number = self.rng.randrange(self.partitions)
        before = self.owner[number]
        if before is not None and not before.frozen:
            before.owners.pop(number).commit()
            self.give(number)

    def kill(self) -> None:
        """A member is gone with what it has not said; another of its name comes."""
        member = self.rng.choice(self.members)
        self.members[self.members.index(member)] = Member(self, member.name)
        for message in member.outbox[: self.rng.randrange(len(member.outbox) + 1)]:
            self.publish(message)
        self._others(member)

    def freeze(self) -> None:
        """A member stands still, loses its partitions, and goes on later as if nothing had been."""
        if sum(not member.frozen for member in self.members) > 1:
            member = self.rng.choice([one for one in self.members if not one.frozen])
            member.frozen = True
            self._others(member)

    def thaw(self) -> None:
        """It takes a while until it hears that it has nothing any more."""
        for member in self.members:
            member.frozen = False

    def _others(self, gone: Member) -> None:
        for number in range(self.partitions):
            if self.owner[number] is gone:
                self.give(number)

    def run(self, steps: int, trouble: float) -> None:
        """So much happens, and so much of it is trouble."""
        rng = self.rng
        for _ in range(steps):
            self.time += 0.01
            if rng.random() < trouble:
                rng.choice((self.hand_over, self.kill, self.freeze, self.thaw))()
                continue
            if rng.random() < 0.3:
                self.fetch()
                continue
            member = rng.choice(self.members)
            if not member.frozen:
                member.step(rng)

    def reachable(self) -> int:
        """Good pages that the seeds lead to."""
        found = {url for links in self.links for url in links}
        todo = list(found)
        while todo:
            page = todo.pop()
            for link in self.web[page] if page not in self.bad else ():
                if link not in found:
                    found.add(link)
                    todo.append(link)
        return len(found - self.bad)


def counted(world: World) -> dict[str, int]:
    """Where everything is, for who looks at a failure."""
    found: dict[str, int] = defaultdict(int)
    for state in world.disk:
        found["queued"] += len(state.queued)
        found["leased"] += len(state.leased)
        found["stored"] += len(state.stored)
    return {**found, "home": coordinating_partition(JOB, layout_of(world.partitions)), "fetching": len(world.fetching)}
