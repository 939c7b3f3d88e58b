"""/metrics of one process with all services: the metrics of all of them, by the same names as over a broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from nephila.programs.assembly import Assembly

if TYPE_CHECKING:
    from prometheus_client.registry import Collector


async def program_metrics(assembly: Assembly, beside: Callable[[], list[Collector]] = list) -> tuple[bytes, str]:
    """The text for Prometheus, and its content type. `beside`: the metrics of what runs beside the services."""
    # Imported at the first request: prometheus_client would delay the start of every crawl.
    from nephila.downloader.metrics import BROWSER_METRICS as BROWSER
    from nephila.downloader.metrics import PLAIN_METRICS as PLAIN
    from nephila.kernel.bus.metrics import DEAD_LETTERS
    from nephila.kernel.runtime.metrics import MetricsCollector, exposition, registry_of
    from nephila.parser.metrics import JUDGE_METRICS, PAGE_METRICS
    from nephila.scheduler.metrics import FRONTIER_METRICS
    from nephila.storage.metrics import METRICS as STORAGE

    collectors: list[Collector] = [
        MetricsCollector("scheduler", assembly.scheduler, FRONTIER_METRICS),
        MetricsCollector("parser", assembly.judge, JUDGE_METRICS),
        MetricsCollector("storage", assembly.storage, STORAGE),
        MetricsCollector("bus", assembly.bus, (DEAD_LETTERS,)),
        MetricsCollector("downloader", assembly.downloader, PLAIN),
        MetricsCollector("downloader", assembly.browser or assembly.downloader, BROWSER),
        MetricsCollector("parser", assembly.parser, PAGE_METRICS),
    ]
    return exposition(registry_of([*collectors, *beside()]))
