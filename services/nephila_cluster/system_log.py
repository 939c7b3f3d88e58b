"""A system over Kafka as commands read it: its settings, and a bus that joins no group."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

from nephila.kernel.bus.contract import LogBus
from nephila.kernel.layout import Layout
from nephila.kernel.runtime.clock import Clock, SystemClock
from nephila.kernel.runtime.config import load
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.kernel.topics import Topic
from nephila_stores.remote.blobs import Blobs, open_blobs

from nephila_cluster.kafka.admin import topics as admin
from nephila_cluster.kafka.bus import KafkaBus
from nephila_cluster.kafka.claim_check import open_claim_store
from nephila_cluster.kafka.config import KafkaConfig, checked
from nephila_cluster.service import settings

SETS: Final = 16
"""Most sets of partitions that a command reads one after another: each costs connections, and saves memory."""


class System(NamedTuple):
    """A system and what its settings name."""

    place: str
    """HOST:PORT of the broker."""
    partitions: int
    """At its creation."""
    blobs: Blobs | None
    """Where the snapshots of the frontier are."""
    rows: str
    """URL of the database of the rows; empty where they are not asked for."""


def read(path: str, *, with_rows: bool) -> tuple[System, KafkaConfig]:
    """The system of a settings file of the services, as the scheduler and, `with_rows`, storage read it. Raises
    `UsageError`, also for rows that are not on a server."""
    scheduler = settings.read("scheduler", path)
    blobs, program = scheduler.service.blobs, scheduler.program
    rows = str(settings.read("storage", path).service.store) if with_rows else ""
    if with_rows and not rows:
        raise UsageError(
            "the rows of this system are in the directory of storage, not on a PostgreSQL server (storage: store); "
            "save that directory, and leave the rows out here (--without-rows)"
        )
    system = System(program.bootstrap, program.partitions, open_blobs(blobs) if blobs else None, rows)
    where = f"{path}: kafka"
    values = {**scheduler.kafka, "bootstrap": program.bootstrap}
    return system, checked(load(KafkaConfig, values, where, "kafka"), where)


@asynccontextmanager
async def open_log(system: System, config: KafkaConfig, clock: Clock | None = None) -> AsyncIterator[LogBus]:
    """The bus. Raises `UserError` when the broker has no topics of this system."""
    admin.hush()
    if "requests" not in await admin.existing(config):
        raise UserError(f"the broker at {system.place} has no topics of a system")
    bus = KafkaBus(config, clock or SystemClock(), open_claim_store(config.blobs))
    try:
        await bus.start()
        yield bus
    finally:
        await bus.close()


def sets_of(bus: LogBus, layout: Layout, *topics: Topic) -> list[range]:
    """All partitions, in sets that are read one after another: each lane of these topics is read once. A partition is
    in the set of those that it was split from."""
    lanes = (len(set(bus.lanes(topic, range(layout.count)).values())) for topic in topics)
    return layout.sets(math.gcd(SETS, *lanes))
