"""A service publishes its own status on the topic `members`, every few seconds, from its start to its end.

The CLI, a console or an operator reads the compacted topic and has all members, without a request to them. A status is
skipped while the one before has no receipt, so that statuses do not pile up while the broker is away.
"""

from __future__ import annotations

import resource
import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from nephila import __version__
from nephila.kernel.bus.contract import Receipt
from nephila.kernel.messages import MemberRate, MemberState, MemberStatus, RefusingHost, StoreStatus
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.metrics import Metric
from nephila.kernel.runtime.waits import OneTimer
from nephila.kernel.topics import MEMBERS, Topic

INTERVAL_S = 5.0
_PAGE_BYTES = resource.getpagesize()


class MemberBus(Protocol):
    """What a heartbeat needs of the bus."""

    @property
    def unacked(self) -> int: ...

    @property
    def member(self) -> str: ...

    def held(self, group: str) -> frozenset[int]:
        """Partitions that this member owns in a group."""

    def publish(self, topic: Topic, partition: int, message: Any) -> Receipt: ...


class MemberHeartbeat:
    """Publishes the status of one member from `start` to `end`. `state`: its state now, and the problem in one line.
    `admitted`: the limit on its concurrent fetches, and the resource that binds it. `address`: of its metrics. `work`:
    pages and bytes since its start. `store`: of storage, where it writes. `disk`: free space and size."""

    def __init__(
        self,
        service: str,
        bus: MemberBus,
        clock: Clock,
        counters: Callable[[], Mapping[str, float]],
        state: Callable[[], tuple[MemberState, str]],
        admitted: Callable[[], tuple[int, str]] = lambda: (0, ""),
        address: Callable[[], str] = lambda: "",
        work: Callable[[], tuple[int, int]] = lambda: (0, 0),
        store: Callable[[], StoreStatus | None] = lambda: None,
        disk: Callable[[], tuple[int, int]] = lambda: (0, 0),
        refusing: Callable[[], Sequence[RefusingHost]] = tuple,
    ) -> None:
        self._service = service
        self._bus = bus
        self._clock = clock
        self._counters = counters
        self._state = state
        self._admitted = admitted
        self._address = address
        self._work = work
        self._store = store
        self._disk = disk
        self._refusing = refusing
        self._started_at = clock.now()
        self._host = socket.gethostname()
        self._last: tuple[float, float, Mapping[str, float]] | None = None
        """Instant, CPU time and counters of the status before."""
        self._receipt = Receipt(0)
        self._timer = OneTimer(clock, self.start)

    def start(self) -> None:
        """Publish now and every INTERVAL_S."""
        self._timer.start(INTERVAL_S)
        if self._receipt.done:
            self._publish(*self._state())

    def end(self) -> None:
        """Publish the last status; the bus sends it when it closes. Without `start` there is none."""
        if self._timer.armed:
            self._timer.cancel()
            self._publish(MemberState.ENDED, "")

    def _publish(self, state: MemberState, problem: str) -> None:
        now = self._clock.monotonic(), time.process_time(), self._counters()
        before, self._last = self._last or now, now
        elapsed_s = max(now[0] - before[0], 1e-3)
        rates = [MemberRate(name, (value - before[2][name]) / elapsed_s) for name, value in now[2].items()]
        name = self._bus.member
        admitted, bound_by = self._admitted()
        pages, received = self._work()
        free_bytes, size_bytes = self._disk()
        status = MemberStatus(
            f"{self._service}/{name}",
            self._service,
            name,
            host=self._host,
            version=__version__,
            state=state,
            problem=problem,
            started_at=self._started_at,
            at=self._clock.now(),
            interval_s=INTERVAL_S,
            partitions=sorted(self._bus.held(self._service)),
            in_flight=self._bus.unacked,
            cpu=(now[1] - before[1]) / elapsed_s,
            memory_bytes=_memory_bytes(),
            rates=rates,
            admitted=admitted,
            bound_by=bound_by,
            address=self._address(),
            pages=pages,
            bytes=received,
            store=self._store(),
            disk_free_bytes=free_bytes,
            disk_size_bytes=size_bytes,
            refusing_hosts=list(self._refusing()),
        )
        self._receipt = self._bus.publish(MEMBERS, 0, status)


def counters_of(service: Any, metrics: Iterable[Metric[Any]]) -> Callable[[], dict[str, float]]:
    """Reads the counters of a service; one with a label is summed."""
    table = [metric for metric in metrics if metric.counter]

    def read() -> dict[str, float]:
        values: dict[str, Any] = {metric.name.removesuffix("_total"): metric.read(service) for metric in table}
        return {name: sum(v.values()) if isinstance(v, Mapping) else v for name, v in values.items()}

    return read


def local_address(peer: str) -> str:
    """The address of this machine on the way to `peer`, HOST:PORT; empty when there is none. Sends nothing."""
    host, _, port = peer.rpartition(":")
    try:
        family, kind, *_, target = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as probe:
            probe.connect(target)
            return str(probe.getsockname()[0])
    except (OSError, ValueError):
        return ""


def _memory_bytes() -> int:
    """Resident memory of this process; 0 where there is no /proc."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE_BYTES
    except OSError:
        return 0
