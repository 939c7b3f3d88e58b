"""State of one active host, and of its outstanding URLs."""

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
    """Pace, robots.txt and budget use of one active host. Its queues are in the host store."""

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
        """What jobs with a budget per host have used here."""
        self.novelty: dict[str, NoveltyTracker] = {}
        """Job → how much new text its path patterns bring."""
        self.changed = False
        """The bytes in the host store are out of date."""


class OutstandingState(IntEnum):
    """State of an outstanding URL."""

    LEASED = 0
    """Its request is published. An outcome or the end of the lease brings it back."""
    FETCHED = 1
    """Its page is between downloader and storage."""
    ENDING = 2
    """Its terminal row is on the way to storage."""


@dataclass(slots=True)
class QueueSlot:
    """A host in the queue of its server address. Smaller than the host, whose object may be evicted meanwhile."""

    number: int
    line: int = 0
    owner: Any = None
    """The view that the host belongs to, where several frontiers share the queues."""


@dataclass(slots=True)
class Outstanding:
    """A URL that was taken from its queue and has no receipt yet."""

    job: str
    host: Host
    entry: Entry
    attempt: int
    address: str = ""
    """Server address that the fetch counts against; empty when it was not known."""
    state: OutstandingState = OutstandingState.LEASED
    lease_until: float = 0.0
    """`lease_until` of its request (UTC), which names the lease. A takeover may prolong the lease; the name stays."""
    receipted: Receipt | None = None
    """The receipt, when it came before the outcome."""
    record: Record | None = None
    """Its terminal row, where the log must hold it until the receipt."""


@dataclass(slots=True)
class TurnOutput:
    """Messages to publish once the commit of the turn is written."""

    requests: list[tuple[int, Any]] = field(default_factory=list)
    records: list[tuple[int, Any]] = field(default_factory=list)
