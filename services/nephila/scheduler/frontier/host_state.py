"""What the frontier remembers of one host that something happens to, and of its URLs on the way."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from nephila.kernel.messages import HostUse, Receipt, Record
from nephila.scheduler.frontier.queue_entry import Entry
from nephila.scheduler.politeness.host_pace import HostPace
from nephila.scheduler.politeness.robots import OriginRobots
from nephila.scheduler.traps.novelty import NoveltyTracker


class Host:
    """Pace, robots and accounts of one host that something happens to. Its queues are in the store."""

    __slots__ = (
        "address",
        "changed",
        "crawl_delay_s",
        "in_flight",
        "key",
        "novelty",
        "number",
        "pace",
        "partition",
        "robots",
        "robots_tries",
        "uses",
    )

    def __init__(self, number: int, key: str, partition: int) -> None:
        self.number = number
        """Its number in the host store."""
        self.key = key
        self.partition = partition
        self.pace = HostPace()
        self.in_flight = 0
        self.robots: dict[str, OriginRobots] = {}
        self.robots_tries = 0
        self.crawl_delay_s = 0.0
        self.address = ""
        self.uses: dict[str, HostUse] = {}
        """What jobs with a budget per host have spent here."""
        self.novelty: dict[str, NoveltyTracker] = {}
        """What its parts have yielded to jobs."""
        self.changed = False
        """What the store holds of it is out of date."""


class OutstandingState(IntEnum):
    """Where an outstanding URL stands."""

    LEASED = 0
    """A request is out; it comes back by an outcome or when the lease ends."""
    FETCHED = 1
    """Its page is on the way to storage."""
    ENDING = 2
    """Its terminal row is on the way to storage."""


@dataclass(slots=True)
class QueueSlot:
    """A host's place in the line of its server address: lighter than the host, which may be bytes meanwhile."""

    number: int
    line: int = 0
    owner: Any = None
    """Whose host it is, where several frontiers share the lines."""


@dataclass(slots=True)
class Outstanding:
    """A URL that was taken from its queue and has no receipt yet."""

    job: str
    host: Host
    entry: Entry
    attempt: int
    address: str = ""
    """Server address on which its fetch was counted; empty when none was known."""
    state: OutstandingState = OutstandingState.LEASED
    receipted: Receipt | None = None
    """That its row is durable, which came before its outcome."""
    record: Record | None = None
    """Its terminal row while it is on the way to storage, where the log has to say so."""


@dataclass(slots=True)
class TurnOutput:
    """What a turn of the scheduler wants published once its commit is written."""

    requests: list[tuple[int, Any]] = field(default_factory=list)
    records: list[tuple[int, Any]] = field(default_factory=list)
