"""Pace per server address for a program that is one of several: the table of its partitions, under the address lock.

Which addresses this program may fetch from at present is decided by the address lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from nephila.kernel.net.address_limits import AddressLimits
from nephila.kernel.net.address_pace import AddressPace
from nephila.scheduler.partition.address_table import AddressTable
from nephila.scheduler.partition.commit_pipeline import CommitPipeline

from nephila_cluster.scheduler.addresses.address_lock import AddressLock

LEAD_S = 0.15
"""Time from a lease to the dial that is planned for. The way of each request (commit, broker, downloader) takes another
time, and the gap counts at the server."""
MARGIN_S = 0.03
"""Added to the gap between planned dials: what the ways from two downloaders to the server differ by."""


class SharedPace(AddressPace):
    """Slots and gaps of a program that is one of several: free only while the address is held, and minus the fetches
    of others. A fetch within the gap is leased LEAD_S early with the instant of its dial, so that downloaders keep the
    gap among each other. A fetch on an idle address dials at once, and counts as if it came LEAD_S later."""

    def __init__(self, networks: AddressLimits, restarted_at: float, lock: AddressLock) -> None:
        super().__init__(networks, restarted_at)
        self._lock = lock

    def next_start(self, address: str, now: float) -> float | None:
        facts = self._known.get(address) or self._new(address)
        if facts.limit.unlimited:
            return 0.0
        if not self._lock.held(address):
            return None
        others, most = self._lock.others(address), facts.limit.connections
        if others and most and facts.in_flight + others >= most:
            return None
        free_at = super().next_start(address, now)
        if not free_at:
            return free_at
        return 0.0 if free_at - LEAD_S <= now else free_at - LEAD_S

    def start(self, address: str, now: float, at: float = 0.0) -> float:
        facts = self._get(address)
        dial_at = max(facts.free_at, at) if facts.limit.gap_s else 0.0
        super().start(address, now, dial_at + MARGIN_S if dial_at > now else now + LEAD_S)
        self._lock.record_use(address, now)
        return dial_at if dial_at > now else 0.0


class SharedAddressQueue(AddressTable):
    """The table of a program; the `LocalAddresses` of its address lock."""

    def __init__(
        self,
        networks: AddressLimits,
        now: float,
        member: tuple[str, int],
        partitions: int,
        pipelines: Mapping[int, CommitPipeline],
    ) -> None:
        """`member`: name and incarnation; `pipelines`: commit pipelines of the partitions here, by number."""
        self.lock = AddressLock(*member, partitions, self)
        super().__init__(networks, now, SharedPace(networks, now, self.lock))
        self._pipelines = pipelines

    def gap_s(self, address: str) -> float:
        return self._pace.gap_s(address)

    def in_use(self) -> Iterable[str]:
        return self._pace.limited()

    def mark(self) -> Callable[[], bool]:
        """A start is published when its batch has passed the pipeline."""
        waiting = [(pipeline, pipeline.submitted) for pipeline in self._pipelines.values() if len(pipeline)]
        return lambda: all(pipeline.completed >= sent for pipeline, sent in waiting)

    def want(self, address: str) -> None:
        self.lock.want(address)
