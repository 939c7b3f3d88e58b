"""One service over Kafka in this process: the bus, the service with its metrics, until a signal or a fault."""

from __future__ import annotations

import importlib
import socket

from nephila.kernel.bus.kafka.admin import hush
from nephila.kernel.bus.kafka.bus import KafkaBus
from nephila.kernel.bus.kafka.claim_check import open_claim_store
from nephila.kernel.bus.kafka.config import KafkaConfig, checked
from nephila.kernel.runtime import logs
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.runtime.config import load
from nephila.kernel.runtime.process_setup import run_loop
from nephila.programs.cluster.outlink_router import exchanging
from nephila.programs.service.program import ServiceKind, ServiceProgram
from nephila.programs.service.settings import Settings

SERVICES = {
    "scheduler": ("nephila.scheduler.cluster.scheduler", "nephila.scheduler.metrics"),
    "downloader": ("nephila.downloader.service", "nephila.downloader.metrics"),
    "parser": ("nephila.parser.service", "nephila.parser.metrics"),
    "storage": ("nephila.storage.service", "nephila.storage.metrics"),
}
"""Service → the module with its `build`, the module with its `METRICS`. Only those of the service are imported."""


def run_service(name: str, settings: Settings, path: str) -> BaseException | None:
    """Run until a signal or a fault; returns the fault, which is in the log already."""
    program = settings.program
    member = program.member or socket.gethostname()
    logs.configure(name, member, program.log_level)
    hush()
    where = f"{path}: kafka"
    values = {**settings.kafka, "bootstrap": program.bootstrap, "name": member}
    transport = checked(load(KafkaConfig, values, where, "kafka"), where)
    service, metrics = (importlib.import_module(module) for module in SERVICES[name])

    async def main() -> ServiceProgram:
        bus = KafkaBus(transport, SystemClock(), open_claim_store(transport.blobs), settings.agreed)
        build = exchanging(service.build) if name == "parser" else service.build
        kind = ServiceKind(name, build, metrics.METRICS)
        one = ServiceProgram(kind, settings.service, bus, port=program.metrics_port, grace_s=program.grace_s)
        await one.run()
        return one

    return run_loop(main()).error
