"""One partition with its real log, on files or on a topic in memory; turns come from the test."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from nephila.kernel.bus.contract import Delivery
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.documents.job_schema import Politeness, Scope
from nephila.kernel.layout import layout_of
from nephila.kernel.messages import FetchRequest, FrontierCommit, Seed
from nephila.kernel.net.address_limits import AddressLimits
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.runtime.errors import UserError
from nephila.kernel.topics import FRONTIER, REQUESTS
from nephila.native import parse_url, partition_of
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.durability.commit_log import CommitLog
from nephila.scheduler.durability.file_log import FileLog
from nephila.scheduler.partition.commit_pipeline import SchedulerCounters
from nephila.scheduler.partition.owner import PartitionOwner
from nephila.scheduler.politeness.lead import Lead
from nephila.scheduler.standalone import file_parts
from nephila_cluster.scheduler.addresses.shared_pace import SharedAddressQueue
from nephila_cluster.scheduler.snapshot_store import SnapshotStore
from nephila_cluster.scheduler.takeover import Takeover, claim
from nephila_cluster.scheduler.topic_parts import topic_parts

from tests.cluster.scheduler.cluster_rig import check_owner
from tests.fake_kafka import PARTITIONS, FakeKafka, FakeKafkaBus
from tests.jobs import crawl_job
from tests.scheduler.invariants import check

PARTITION = 1
LIMIT_BYTES = 1 << 20
"""Growth of the log that calls for a snapshot."""
URLS = [
    url
    for url in (f"http://h{number}.test/" for number in range(40))
    if partition_of(parse_url(url).fingerprint, PARTITIONS) == PARTITION
]
JOB = crawl_job("t", "t", 1, [], Scope(mode="any", max_depth=-1), Politeness(delay="1s", respect_robots=False))


class Host:
    """An `OwnerHost` without a loop."""

    def wake(self, owner: PartitionOwner) -> None:
        owner.due = not owner.lost

    def fatal(self, error: BaseException) -> None:
        raise error

    def anchored(self, owner: PartitionOwner, uid: str, anchors: Sequence[str]) -> None:
        pass


class PartitionRig(ABC):
    """A partition, and its successors on the same log."""

    owner: PartitionOwner

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.clock = ManualClock()
        self.counts = SchedulerCounters()
        self.acked: list[str] = []

    @abstractmethod
    async def open(self) -> PartitionOwner:
        """The partition, or the next owner of it after a kill: recovered and begun, and still loading."""

    @abstractmethod
    def kill(self) -> None:
        """The program ends; what it has not written is lost."""

    @abstractmethod
    def commits(self) -> list[FrontierCommit]:
        """Commits that the next start would replay."""

    @abstractmethod
    def requests(self) -> list[FetchRequest]:
        """Requests that were published."""

    @abstractmethod
    def refuse(self) -> None:
        """The log takes nothing from now on."""

    @abstractmethod
    def check(self) -> None:
        """The invariants of the frontier."""

    @abstractmethod
    def grow(self) -> None:
        """The log is as large as the next snapshot needs."""

    def deliver(self, url: str) -> None:
        """A seed comes in."""
        self.owner.put_job(JOB)
        delivery = Delivery(Seed("t", url), PARTITION, lambda: self.acked.append(url))
        self.owner.seed(delivery, self.owner.frontier.jobs["t"])

    @property
    def queued(self) -> int:
        """URLs of the job that are queued or in flight."""
        job = self.owner.frontier.jobs.get("t")
        return len(self.owner.frontier.in_flight) + (job.queue.length if job is not None else 0)


class FileRig(PartitionRig):
    """The partition of one program."""

    async def open(self) -> PartitionOwner:
        config = SchedulerConfig(directory=str(self.directory), partitions=1, segment_bytes=LIMIT_BYTES, per_address=0)
        self.bus = LocalBus(self.clock)
        self.published: list[FetchRequest] = []
        self.bus.subscribe(REQUESTS, "downloader", lambda one: self.published.append(one.message), credits=1000)
        self.file = CommitLog(self.directory)
        self.files = FileLog(self.file, self.clock, 1.0, Host().fatal)
        self.files.start_sync = lambda: None  # type: ignore[method-assign]
        parts = file_parts(config, self.files, self.clock)
        self.owner = PartitionOwner(parts, self.bus, self.clock, self.counts, Host())
        self.owner.begin_turn()
        for entry in self.file.recover():
            self.owner.replay(entry)
        self.owner.begin(0, self.owner.recovered().to_republish)
        return self.owner

    def kill(self) -> None:
        if not self.owner.lost:
            self.owner.drop()
        self.file.close()

    def commits(self) -> list[FrontierCommit]:
        entries = CommitLog(self.directory, read_only=True).recover()
        return [entry for entry in entries if isinstance(entry, FrontierCommit)]

    def requests(self) -> list[FetchRequest]:
        self.clock.run_due()
        return self.published

    def refuse(self) -> None:
        def full(commits: Any) -> None:
            raise UserError("disk full")

        self.file.append = full  # type: ignore[method-assign]

    def check(self) -> None:
        check(self.owner.dispatcher)

    def grow(self) -> None:
        self.file.size = LIMIT_BYTES + 1


class TopicRig(PartitionRig):
    """A partition of a cluster, on a Kafka in memory."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.broker = FakeKafka()
        self.members = 0

    async def open(self) -> PartitionOwner:
        self.members += 1
        self.bus = FakeKafkaBus(self.broker, self.clock, f"m{self.members}", held=())
        directory = self.directory / self.bus.member
        config = SchedulerConfig(
            directory=str(directory), partitions=PARTITIONS, snapshot_bytes=LIMIT_BYTES, per_address=0
        )
        queue = SharedAddressQueue(
            AddressLimits(0, 0.0, ()), self.clock.monotonic(), (self.bus.member, 1), PARTITIONS, {}
        )

        def new(partition: int, epoch: int) -> tuple[PartitionOwner, SnapshotStore]:
            store = SnapshotStore(self.directory, partition, layout_of(PARTITIONS), None, epoch)
            parts = topic_parts(config, store, self.bus, self.clock, queue, Lead())
            return PartitionOwner(parts, self.bus, self.clock, self.counts, Host()), store

        epochs = await claim(self.bus, [PARTITION], layout_of(PARTITIONS), 0.0, self.clock.now())
        takeover = Takeover(self.bus, self.clock, new, lambda partition: True, lambda owner: None)
        (self.owner,) = await takeover.run(epochs)
        return self.owner

    def kill(self) -> None:
        self.bus.alive = False
        if not self.owner.lost:
            self.owner.drop()

    def commits(self) -> list[FrontierCommit]:
        return [record.commit for record in self.broker.all(FRONTIER, PARTITION) if record.commit is not None]

    def requests(self) -> list[FetchRequest]:
        return list(self.broker.all(REQUESTS, PARTITION))

    def refuse(self) -> None:
        self.bus.slow = True

    def check(self) -> None:
        check_owner(self.owner)

    def grow(self) -> None:
        self.owner.log.size = LIMIT_BYTES + 1  # type: ignore[misc]


RIGS: tuple[Callable[[Path], PartitionRig], ...] = (FileRig, TopicRig)
