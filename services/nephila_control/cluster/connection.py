"""The control API of a system over Kafka, in the process of a command."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import msgspec
from nephila.kernel.runtime.config import secret_variable
from nephila.kernel.runtime.errors import NotReadyError
from nephila.storage.source import ENVIRONMENT

from nephila_control.cluster.backend import ClusterBackend

if TYPE_CHECKING:
    from nephila_cluster.kafka.bus import KafkaBus
    from nephila_cluster.kafka.config import KafkaConfig

START_S = 60.0
"""Longest time to connect and to read what the system has published."""


@asynccontextmanager
async def open_cluster(settings: KafkaConfig) -> AsyncIterator[ClusterBackend]:
    """The control API of a system, in this process. The topics determine the number of partitions. Raises
    `UserError`."""
    from nephila.kernel.runtime.clock import SystemClock
    from nephila_cluster.kafka.admin import topics as admin
    from nephila_cluster.kafka.bus import KafkaBus
    from nephila_cluster.kafka.claim_check import open_claim_store
    from nephila_cluster.kafka.grow import present

    from nephila_control.cluster.dead_letters import KafkaDeadLetters
    from nephila_control.cluster.topic_lag import KafkaTopics

    admin.hush()
    config = msgspec.structs.replace(settings, partitions=(await present(settings)).base)
    claims = open_claim_store(config.blobs)
    bus: KafkaBus = KafkaBus(config, SystemClock(), claims)
    letters = KafkaDeadLetters(config, claims)
    rows = secret_variable(ENVIRONMENT) or None
    backend = ClusterBackend(bus, bus.clock, letters, KafkaTopics(config), place=config.bootstrap, rows=rows)
    try:
        try:
            async with asyncio.timeout(START_S):
                await bus.start()
        except TimeoutError:
            raise NotReadyError(
                f"the broker at {config.bootstrap} has stopped to answer: its topics could not be read within "
                f"{START_S:g} s; when it answers again, repeat the command"
            ) from None
        yield backend
    finally:
        backend.close()
        await bus.close()
