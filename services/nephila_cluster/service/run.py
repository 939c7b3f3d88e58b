"""One service over Kafka in this process: the bus, the service with its metrics, until a signal or a fault."""

from __future__ import annotations

import contextlib
import importlib
import socket
from collections.abc import Callable, Iterator
from functools import partial
from operator import attrgetter
from typing import Any

from nephila.kernel.bus.contract import Bus
from nephila.kernel.pages.read_pages import ReadPages
from nephila.kernel.process.memory_budget import MemoryBudget
from nephila.kernel.process.process_setup import run_loop
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.config import load
from nephila.kernel.runtime.errors import UserError

from nephila_cluster.kafka.admin.topics import hush
from nephila_cluster.kafka.bus import KafkaBus
from nephila_cluster.kafka.claim_check import open_claim_store
from nephila_cluster.kafka.config import KafkaConfig, checked
from nephila_cluster.kafka.job_delays import follow_jobs
from nephila_cluster.kafka.metrics import METRICS as BUS
from nephila_cluster.service import logs
from nephila_cluster.service.metrics import METRICS as PROGRAM
from nephila_cluster.service.program import Build, Fatal, ServiceKind, ServiceProgram
from nephila_cluster.service.settings import ProgramSettings


def _build_scheduler(config: Any, bus: KafkaBus, clock: Clock, on_fatal: Fatal) -> Any:
    from nephila_cluster.scheduler.scheduler import build

    service = build(config, bus, clock, on_fatal)
    bus.watch_partitions("scheduler", service)
    return service


def _build_downloader(config: Any, bus: KafkaBus, clock: Clock, on_fatal: Fatal) -> Any:
    return _downloader(config, bus, bus, clock)


def _downloader(
    config: Any,
    bus: KafkaBus,
    route: Bus,
    clock: Clock,
    budget: MemoryBudget | None = None,
    read_pages: ReadPages | None = None,
) -> Any:
    """A downloader that dials while its membership is certain, and checks addresses while it has peers. `route`: the
    bus of its messages. `read_pages`: of the parser in this process."""
    from nephila.downloader.coordination import Coordination
    from nephila.downloader.service import BROWSER_GROUP, GROUP, build, build_browser
    from nephila.kernel.topics import REQUESTS, REQUESTS_BROWSER

    from nephila_cluster.service.late_address_check import LateAddressCheck
    from nephila_cluster.service.lost_requests import LostRequests

    renders = config.browser.enabled
    group, topic = (BROWSER_GROUP, REQUESTS_BROWSER) if renders else (GROUP, REQUESTS)
    coordination = Coordination(
        # A member with a browser does not see the fetches of those without one, so it is never alone.
        late_address_check=LateAddressCheck((lambda: False) if renders else partial(bus.has_all, group)).check,
        plans=bus.config.beat_s > 0,
        membership_valid=partial(bus.may_emit, group),
    )
    if renders:
        service = build_browser(config, route, clock, coordination, budget)
    else:
        service = build(config, route, clock, coordination, budget, read_pages)
    bus.watch_partitions(group, service.partitions)
    bus.watch_crashes(group, LostRequests(bus, clock, topic).report)
    return service


def _build_parser(config: Any, bus: KafkaBus, clock: Clock, on_fatal: Fatal) -> Any:
    """The links of a parser go through the outlink router."""
    from nephila.parser.service import build
    from nephila.programs.outlink_router import OutlinkRouter

    return build(config, OutlinkRouter(bus, clock, lambda: bus.layout), clock)


def _build_fetchparse(config: Any, bus: KafkaBus, clock: Clock, on_fatal: Fatal) -> Any:
    from nephila.downloader.admission.admission import make_budget
    from nephila.parser.service import build
    from nephila.programs.outlink_router import OutlinkRouter

    from nephila_cluster.service.fetchparse import FetchParse, FetchParseBus

    route = FetchParseBus(bus, clock, config.downloader.http.raw_capture)
    budget = make_budget(config.downloader.admission, clock)
    pages, router = ReadPages(config.parser), OutlinkRouter(route, clock, lambda: bus.layout)
    parser = build(config.parser, router, clock, budget=budget, read_pages=pages)
    return FetchParse(_downloader(config.downloader, bus, route, clock, budget, pages), parser, clock)


def _build_storage(config: Any, bus: KafkaBus, clock: Clock, on_fatal: Fatal) -> Any:
    from nephila.storage.service import build

    from nephila_cluster.kafka.item_topics import ItemTopics

    return build(config, bus, clock, on_fatal, ItemTopics(bus.config), publish_changes=True)


def _build_api(config: Any, bus: KafkaBus, clock: Clock, on_fatal: Fatal) -> Any:
    from nephila_control.service import build

    return build(config, bus, clock)


BUILDERS: dict[str, Build] = {
    "scheduler": _build_scheduler,
    "downloader": _build_downloader,
    "parser": _build_parser,
    "fetchparse": _build_fetchparse,
    "storage": _build_storage,
    "api": _build_api,
}
"""Service → its function. Each imports its service alone."""

METRICS = {
    "scheduler": "nephila_cluster.scheduler.metrics",
    "downloader": "nephila.downloader.metrics",
    "parser": "nephila.parser.metrics",
    "storage": "nephila.storage.metrics",
    "api": "nephila_control.metrics",
}
"""Service → the module of its metrics."""


def service_kind(name: str) -> ServiceKind:
    """The parts of a service's program."""
    if name == "fetchparse":
        parts = [(part, attrgetter(part), _metrics(part)) for part in ("downloader", "parser")]
        return ServiceKind(name, BUILDERS[name], (), BUS, PROGRAM, parts)
    return ServiceKind(name, BUILDERS[name], _metrics(name), BUS, PROGRAM)


def _metrics(name: str) -> Any:
    return importlib.import_module(METRICS[name]).METRICS


def run_service(name: str, settings: ProgramSettings, path: str) -> BaseException | None:
    """Run until a signal or a fault; returns the fault, which is in the log already."""
    program = settings.program
    member = program.member or socket.gethostname()
    logs.configure(name, member, program.log_level)
    hush()
    where = f"{path}: kafka"
    values = {**settings.kafka, "bootstrap": program.bootstrap, "name": member}
    transport = checked(load(KafkaConfig, values, where, "kafka"), where)
    kind = service_kind(name)

    def make_bus(clock: Clock, on_fatal: Callable[[UserError], None]) -> KafkaBus:
        bus = KafkaBus(transport, clock, open_claim_store(transport.blobs), settings.agreed, on_fatal)
        if transport.beat_s:
            follow_jobs(bus, bus.beat)
        return bus

    with tracing(name, member, program.trace_ratio, program.trace_endpoint) as wrap_bus:

        async def main() -> ServiceProgram:
            service_program = ServiceProgram(
                kind,
                settings.service,
                make_bus,
                port=program.metrics_port,
                grace_s=program.grace_s,
                broker=program.bootstrap.partition(",")[0],
                wrap_bus=wrap_bus,
            )
            await service_program.run()
            return service_program

        return run_loop(main()).error


@contextlib.contextmanager
def tracing(service: str, member: str, ratio: float, endpoint: str) -> Iterator[Callable[[Any, Clock], Any]]:
    """What to put around the bus of a service; spans that wait are sent at the end."""
    if not ratio:
        yield lambda bus, clock: bus
        return
    # Imported here: OpenTelemetry is an extra.
    from nephila_cluster.service.tracing import TracedBus, to_endpoint

    provider = to_endpoint(service, member, endpoint)
    try:
        yield lambda bus, clock: TracedBus(bus, clock, ratio, provider)
    finally:
        provider.shutdown()
