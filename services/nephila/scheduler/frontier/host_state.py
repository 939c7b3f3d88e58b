"""State of one active host, and what a turn publishes."""

from __future__ import annotations

from typing import Any

import msgspec

from nephila.kernel.messages import HostUse
from nephila.scheduler.politeness.host_pace import HostPace
from nephila.scheduler.politeness.recent_fetches import RecentFetches
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
        "recent",
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
        self.recent: RecentFetches | None = None
        """Its last fetches, for people; None before the first."""
        self.changed = False
        """The bytes in the host store are out of date."""


class QueueSlot(msgspec.Struct):
    """A host in the queue of its server address. Smaller than the host, whose object may be evicted meanwhile."""

    number: int
    line: int = 0
    owner: Any = None
    """The view that the host belongs to, where several frontiers share the queues."""


class TurnOutput(msgspec.Struct):
    """Messages to publish once the commit of the turn is written."""

    requests: list[tuple[int, Any]] = msgspec.field(default_factory=list)
    records: list[tuple[int, Any]] = msgspec.field(default_factory=list)
