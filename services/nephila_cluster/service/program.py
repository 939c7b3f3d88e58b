"""One service as a program: `nephila service scheduler|downloader|parser|storage`.

Start: the service, the bus, then ready. SIGTERM: not ready; the service finishes or returns its work within the grace
period; the bus commits finished work and leaves its groups. After a fault that it cannot handle the program ends with
exit code 1; a restart loses nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

from nephila.kernel.bus.contract import Bus, LogRecords
from nephila.kernel.layout import LayoutSetting
from nephila.kernel.live_settings import SettingScope
from nephila.kernel.messages import MemberState
from nephila.kernel.process.stop_signals import stopped_by
from nephila.kernel.runtime.clock import Clock, SystemClock
from nephila.kernel.runtime.errors import NotReadyError, UserError, without_resume
from nephila.kernel.runtime.histogram import FAST_S, Histogram
from nephila.kernel.runtime.lifecycle import Service
from nephila.kernel.runtime.metrics import Metric, MetricsCollector, exposition, registry_of
from nephila.kernel.runtime.waits import Backoff
from nephila.kernel.topics import Topic
from nephila_control.control_servers import Clients, authority_of, clients_of
from nephila_control.http.application import application
from nephila_control.http.server import HttpServer, tcp_server

from nephila_cluster.kafka.group.rebalance import OnMemberCrash
from nephila_cluster.service.live_settings import LiveSettings
from nephila_cluster.service.member_heartbeat import MemberHeartbeat, counters_of, local_address

if TYPE_CHECKING:
    from nephila_control.service import ControlService

log = logging.getLogger("nephila_cluster.service.program")


RETRY = Backoff(0.5, 5.0)
"""First and longest wait before the next attempt to reach the broker or another dependency."""
POLL_S = 0.1
"""Interval of checks: are the partitions open, and are the dependencies reachable?"""
UNABLE_AFTER_S = 15.0
"""After this time without its database, a service gives its partitions to members that have theirs."""


STARTING, DRAINING = "starting", "draining"


class ServiceBus(Bus, Protocol):
    """A bus that is started and closed."""

    async def start(self) -> None:
        """Connect and begin to deliver; UserError when that is impossible. Services subscribe before."""

    async def close(self) -> None:
        """Commit finished work and leave the groups."""

    def watch_partitions(self, group: str, listener: Any) -> None:
        """Register the listener of partition assignments; before `start`."""

    def watch_crashes(self, group: str, on_crash: OnMemberCrash) -> None:
        """Register the listener for messages that crashed members had not finished; before `start`."""

    async def bounds(self, topic: Topic, partitions: Iterable[int]) -> dict[int, tuple[int, int]]: ...

    def read(self, topic: Topic, ranges: Mapping[int, tuple[int, int]]) -> AsyncIterator[LogRecords]: ...

    @property
    def member(self) -> str: ...

    def held(self, group: str) -> frozenset[int]:
        """Partitions that this member owns in a group."""

    @property
    def faults(self) -> list[tuple[str, str]]:
        """The troubles with their kinds."""

    def has_all(self, group: str) -> bool:
        """Whether this member has all partitions of a group."""

    def may_emit(self, group: str) -> bool:
        """False when other members may own this member's partitions by now."""

    def set_able(self, able: bool) -> None:
        """Set whether this member can work. A member that cannot gives its partitions to members that can."""

    def set_layout(self, setting: LayoutSetting) -> None:
        """The system has this number of partitions."""

    @property
    def unsettled(self) -> str:
        """The partitions that are still being taken over, in one line; empty once all of them are open."""

    @property
    def troubles(self) -> list[str]:
        """Reasons why the bus cannot receive or send now, one line each."""


Fatal = Callable[[BaseException], None]
Build = Callable[[Any, Any, Clock, Fatal], Any]
"""Arguments: config, bus, clock, what to call when the service cannot continue. It also registers the service with the
bus for the partitions of its group."""


@dataclass(frozen=True, slots=True)
class ServiceKind:
    """The parts of a service's program."""

    name: str
    build: Build
    metrics: Iterable[Metric[Any]]
    bus_metrics: Iterable[Metric[Any]] = ()
    program_metrics: Iterable[Metric[Any]] = ()
    parts: Sequence[tuple[str, Callable[[Any], Any], Iterable[Metric[Any]]]] = ()
    """Name, access and metrics of the services inside, where one program has several."""


class ServiceProgram:
    """One service while it runs."""

    def __init__(
        self,
        kind: ServiceKind,
        config: Any,
        make_bus: Callable[[Clock, Callable[[UserError], None]], ServiceBus],
        *,
        port: int,
        grace_s: float,
        host: str = "",
        broker: str = "",
        wrap_bus: Callable[[Any, Clock], Any] = lambda bus, clock: bus,
    ) -> None:
        """`make_bus` gets the clock and the callback for errors that need a person. `broker`: HOST:PORT by which this
        machine learns its own address. `wrap_bus`: the service gets what this returns for the bus."""
        self.clock: Clock = SystemClock()
        self.bus = bus = make_bus(self.clock, self._on_bus)
        me = SettingScope(kind.name, bus.member)
        LiveSettings(bus, me, lambda: getattr(self.service, "live_settings", {}), bus.set_layout)
        self.service: Service = kind.build(config, wrap_bus(bus, self.clock), self.clock, self._fatal)
        self.error: BaseException | None = None
        self._grace_s = grace_s
        self._state = STARTING
        self._over = asyncio.Event()
        self._broker = broker
        self._local_address: str | None = None
        self.loop_delay_s = Histogram(FAST_S)
        """How late the event loop calls a timer."""
        self._clients, self.server = self._endpoints(kind, host, port)
        """/healthz, /readyz, /metrics; of the service `api` the control API as well."""
        self._heartbeat = MemberHeartbeat(
            kind.name,
            bus,
            self.clock,
            self._counters(kind),
            self._member_state,
            self._admitted,
            self._address,
            self._pages_and_bytes,
            lambda: getattr(self.service, "store", None),
            self._disk,
            getattr(self.service, "refusing_hosts", tuple),
        )

    def _endpoints(self, kind: ServiceKind, host: str, port: int) -> tuple[Clients, HttpServer]:
        registry = registry_of(
            [
                MetricsCollector(kind.name, self.service, kind.metrics),
                *(MetricsCollector(name, access(self.service), metrics) for name, access, metrics in kind.parts),
                MetricsCollector("bus", self.bus, kind.bus_metrics),
                MetricsCollector("program", self, kind.program_metrics),
            ]
        )

        async def metrics() -> tuple[bytes, str]:
            return exposition(registry)

        api = cast("ControlService | None", self.service if hasattr(self.service, "control") else None)
        control, authority, clients = None, None, Clients([])
        if api is not None:
            control, authority = api.control, authority_of(api.control, api.token, api.logins)
            rows = api.rows if api.firecrawl else None
            clients = clients_of(
                authority, api.logins, api.console_names, firecrawl=rows, sessions=api.console_sessions
            )
        app = application(control, authority=authority, unready=self._unready, metrics=metrics, beside=clients.routes)
        return clients, tcp_server(app, host, port, "metrics_port")

    def _counters(self, kind: ServiceKind) -> Callable[[], dict[str, float]]:
        parts = [(self.service, kind.metrics), *((access(self.service), metrics) for _, access, metrics in kind.parts)]
        reads = [counters_of(part, metrics) for part, metrics in parts]
        return lambda: {name: value for read in reads for name, value in read().items()}

    def _unready(self) -> str:
        return self._state or "; ".join([*self.bus.troubles, *([self._trouble] if self._trouble else [])])

    @property
    def unready_kinds(self) -> list[str]:
        """Kinds of the reasons why this member is not ready; empty when it is ready."""
        if self._state:
            return [self._state if self._state in (STARTING, DRAINING) else "waiting"]
        return [*dict.fromkeys(kind for kind, _ in self.bus.faults), *(["service"] if self._trouble else [])]

    def _address(self) -> str:
        """ADDRESS:PORT of the metrics, as other machines reach it."""
        if self._local_address is None:
            self._local_address = local_address(self._broker)
        host = f"[{self._local_address}]" if ":" in self._local_address else self._local_address
        return f"{host}:{self.server.port}" if host and self.server.port else ""

    def _admitted(self) -> tuple[int, str]:
        admission = getattr(getattr(self.service, "downloader", self.service), "admission", None)
        return (0, "") if admission is None else (admission.limit, admission.bound_by)

    def _pages_and_bytes(self) -> tuple[int, int]:
        work: tuple[int, int] = getattr(getattr(self.service, "downloader", self.service), "work", (0, 0))
        return work

    def _disk(self) -> tuple[int, int]:
        """Free space and size of the disk of the service; zeros for a service without a directory, or a disk that
        cannot be read."""
        try:
            space: tuple[int, int] = getattr(self.service, "disk", (0, 0))
        except OSError:
            return 0, 0
        return space

    def _member_state(self) -> tuple[MemberState, str]:
        problem = self._unready()
        if self._state == DRAINING:
            return MemberState.DRAINING, ""
        if self._state:
            return MemberState.UNSPECIFIED, problem
        return (MemberState.NOT_READY, problem) if problem else (MemberState.READY, "")

    @property
    def _trouble(self) -> str:
        """Why the service cannot work now; storage sets it while its database is unreachable."""
        return str(getattr(self.service, "trouble", ""))

    async def run(self) -> None:
        """Serve until a signal or a fault. Raises `UserError` when it cannot begin."""
        loop = asyncio.get_running_loop()
        with stopped_by(loop, lambda _: self.stop()):
            await self.server.open()
            try:
                await self._serve()
            finally:
                await self.server.close()

    async def _serve(self) -> None:
        try:
            await self.service.start()
            await self._clients.start()
            if await self._start_bus():
                self._heartbeat.start()
            await self._wait_for_partitions()
            if not self._over.is_set():
                self._state = ""
                log.info("ready", extra={"port": self.server.port})
            await self._work()
            self._state = DRAINING
            log.info("draining")
            if self.error is None:
                await self.service.drain(self._grace_s)
        finally:
            await self._clients.close()
            await self.service.close()
            self._heartbeat.end()
            await self.bus.close()
        log.info("ended")

    async def _start_bus(self) -> bool:
        """Join the groups; False after a signal. It is tried again while the broker, the topics or the database are
        missing: a member that joined without them would stop its share of the work. Not ready until then."""
        failures = 0
        while not self._over.is_set():
            try:
                await self._reach()
                await self.bus.start()
                return True
            except NotReadyError as error:
                if str(error) != self._state:
                    log.warning("%s; trying again", error)
                self._state = str(error)
            failures += 1
            await self._pause(RETRY.after(failures))
        return False

    async def _reach(self) -> None:
        """Raise `NotReadyError` while the service cannot do its work."""
        if self._trouble:
            raise NotReadyError(self._trouble)
        if hasattr(self.service, "reach"):
            await self.service.reach()

    async def _wait_for_partitions(self) -> None:
        """Not ready before the first assigned partitions are open: a rolling restart must not stop the next member
        before that."""
        while not self._over.is_set() and (waits := self.bus.unsettled or getattr(self.service, "unsettled", "")):
            self._state = "; ".join([waits, *self.bus.troubles])
            await self._pause(POLL_S)

    async def _work(self) -> None:
        """Until a signal or a fault; partitions go to others while the service cannot do its work."""
        since = 0.0
        while not self._over.is_set():
            now = self.clock.monotonic()
            if not self._trouble:
                since = 0.0
                self.bus.set_able(True)
            elif not since:
                since = now
            elif now - since >= UNABLE_AFTER_S:
                self.bus.set_able(False)
            await self._pause(POLL_S if since else POLL_S * 5)

    async def _pause(self, seconds: float) -> None:
        due = self.clock.monotonic() + seconds
        try:
            await asyncio.wait_for(self._over.wait(), seconds)
        except TimeoutError:
            self.loop_delay_s.observe(max(self.clock.monotonic() - due, 0.0))

    def stop(self) -> None:
        """End after a drain; a second call ends at once."""
        if self._over.is_set():
            self._grace_s = 0.0
        self._over.set()

    def _on_bus(self, error: UserError) -> None:
        # The affected partition stops; the others continue, and readiness names the remedy.
        if isinstance(error, NotReadyError):
            log.error("%s", error)
        else:
            self._fatal(error)

    def _fatal(self, error: BaseException) -> None:
        self.error = self.error or error
        log.critical("the service cannot continue: %s", without_resume(str(error)))
        self._over.set()
