"""/metrics of the program that starts the runs of directories: as a part of `nephila up`, or on a port of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from nephila_harvest.site_runner import SiteRunner

if TYPE_CHECKING:
    from nephila_control.http.server import HttpServer
    from prometheus_client.registry import Collector


def collectors(runners: Sequence[SiteRunner]) -> list[Collector]:
    """The metrics of the runners that have begun."""
    from nephila.kernel.runtime.metrics import MetricsCollector

    from nephila_harvest.sites.metrics import METRICS

    return [MetricsCollector("sites", runner, METRICS) for runner in runners]


def metrics_server(collect: Callable[[], list[Collector]], port: int) -> HttpServer:
    """/healthz, /readyz and /metrics on a port; not open yet."""
    from nephila.kernel.runtime.metrics import exposition, registry_of
    from nephila_control.http.application import application
    from nephila_control.http.server import tcp_server

    async def metrics() -> tuple[bytes, str]:
        return exposition(registry_of(collect()))

    return tcp_server(application(None, metrics=metrics), "", port, "--metrics-port")
