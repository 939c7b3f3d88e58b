"""What recovery has found so far, and its result."""

import msgspec

from nephila.kernel.messages import LeasedUrl
from nephila.scheduler.frontier.host_state import TurnOutput
from nephila.scheduler.frontier.in_flight import Key


class Restored(msgspec.Struct):
    urls: int = 0
    leased: int = 0
    commits: int = 0
    outstanding: dict[Key, tuple[int, bytes]] = msgspec.field(default_factory=dict)
    """(host, packed URL) of outstanding URLs, in the order of their leases."""
    delayed: dict[Key, tuple[int, bytes, float]] = msgspec.field(default_factory=dict)
    """(host, packed URL, not_before UTC) of delayed URLs."""
    attempts: dict[Key, int] = msgspec.field(default_factory=dict)
    """Current attempt of outstanding URLs."""
    robots_pending: dict[str, None] = msgspec.field(default_factory=dict)
    """Hosts whose robots.txt was in flight."""
    leases: dict[Key, LeasedUrl] = msgspec.field(default_factory=dict)
    """Logged state of each outstanding URL, in the frontier of one partition, where leases outlive their owner."""
    to_republish: TurnOutput = msgspec.field(default_factory=TurnOutput)
    """Messages that the previous owner may not have published: terminal rows, and requests of leases that continue."""

    def numbers(self) -> set[int]:
        """Hosts of URLs that are in no queue."""
        return {item[0] for table in (self.outstanding, self.delayed) for item in table.values()}
