"""/metrics of one program with all services: the metrics of all of them, by the same names as over a broker."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from nephila.kernel.bus.local import LocalBus
from nephila.parser.rule_engine import RuleJudge
from nephila.storage.service import Storage

if TYPE_CHECKING:
    from prometheus_client.registry import Collector


def program_metrics(
    judge: RuleJudge, storage: Storage, bus: LocalBus, services: Iterable[Collector], beside: Iterable[Collector]
) -> tuple[bytes, str]:
    """The text for Prometheus, and its content type. `services`: scheduler, downloader and parser, here or in groups.
    `beside`: the metrics of what runs beside the services."""
    # Imported at the first request: prometheus_client would delay the start of every crawl.
    from nephila.kernel.bus.metrics import DEAD_LETTERS
    from nephila.kernel.runtime.metrics import MetricsCollector, exposition, registry_of
    from nephila.parser.metrics import JUDGE_METRICS
    from nephila.storage.metrics import METRICS as STORAGE

    collectors: list[Collector] = [
        MetricsCollector("parser", judge, JUDGE_METRICS),
        MetricsCollector("storage", storage, STORAGE),
        MetricsCollector("bus", bus, (DEAD_LETTERS,)),
    ]
    return exposition(registry_of([*collectors, *services, *beside]))
