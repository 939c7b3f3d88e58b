"""What the frontier remembers of one host and of its URLs on the way."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from nephila.kernel.messages import Outcome, RobotsTxt
from nephila.kernel.robots import Robots
from nephila.scheduler.politeness import Pace
from nephila.scheduler.queue import Entry, JobQueue


@dataclass(slots=True)
class OriginRobots:
    """robots.txt of one origin as it is believed now; `expires` in monotonic seconds."""

    policy: str
    """rules, allow, disallow, or failed: the host cannot be reached at all, for `text.reason`."""
    rules: Robots | None
    expires: float
    text: RobotsTxt

    def allows(self, agent: str, url: str) -> bool:
        """Whether a URL of this origin may be fetched."""
        if self.rules is None:
            return self.policy == "allow"
        return self.rules.allowed(agent, url[url.index("/", url.index("://") + 3) :])


class Host:
    """Queues, pace and robots of one host. Shared by all jobs; belongs to one partition."""

    __slots__ = (
        "address",
        "crawl_delay_s",
        "in_flight",
        "key",
        "pace",
        "partition",
        "queues",
        "ready_at",
        "robots",
        "robots_tries",
    )

    def __init__(self, key: str, partition: int) -> None:
        self.key = key
        self.partition = partition
        self.queues: dict[str, JobQueue] = {}
        self.pace = Pace()
        self.in_flight = 0
        self.ready_at: float | None = None
        self.robots: dict[str, OriginRobots] = {}
        self.robots_tries = 0
        self.crawl_delay_s = 0.0
        self.address = ""

    def push(self, job: str, packed: bytes, depth: int, head: bool = False) -> None:
        """Queue a URL of a job."""
        queue = self.queues.get(job)
        if queue is None:
            queue = self.queues[job] = JobQueue()
        queue.push(packed, depth, head)

    @property
    def queued(self) -> int:
        """URLs waiting here, over all jobs."""
        return sum(len(queue) for queue in self.queues.values())


class State(IntEnum):
    """Where an outstanding URL stands."""

    LEASED = 0
    """A request is out; it comes back by an outcome or when the lease ends."""
    FETCHED = 1
    """Its page is on the way to storage."""
    ENDING = 2
    """Its terminal row is on the way to storage."""


@dataclass(slots=True)
class Outstanding:
    """A URL that was taken from its queue and has no receipt yet."""

    job: str
    host: Host
    entry: Entry
    attempt: int
    state: State = State.LEASED
    receipted: Outcome | None = None
    """How its row reads, which was durable before its outcome arrived."""


@dataclass(slots=True)
class Dispatch:
    """What a turn of the scheduler wants published once its commit is written."""

    requests: list[tuple[int, Any]] = field(default_factory=list)
    records: list[tuple[int, Any]] = field(default_factory=list)
