"""Metrics of a service: values are read when Prometheus scrapes, so the hot path increments plain integers only.

Each service has a metrics.py with one table of `Metric`. `MetricsCollector` and `WorkerMetricsCollector` are the
collectors that prometheus_client calls. The help text states what a rise means. A metric is a counter, a gauge, or a
histogram (`histogram.py`); docs/adr/0060 has the rules of names and labels.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.core import Metric as MetricFamily
from prometheus_client.registry import Collector

from nephila import __version__
from nephila.kernel.runtime.histogram import SUM
from nephila.native import IMPLEMENTATION

S = TypeVar("S", contravariant=True)
Value = float | Mapping[str, float] | Mapping[tuple[str, str], float] | Mapping[str, Mapping[str, float]]
"""A number or a `Histogram.value()`; or one for each value of a label, or for each pair of values of two labels."""
WORKER = "worker"
"""Label of a metric that each worker process of a program has."""


@dataclass(frozen=True, slots=True)
class Metric(Generic[S]):
    """One metric of a service: how it is read from the service, and its meaning."""

    name: str
    help: str
    read: Callable[[S], Value]
    label: str | tuple[str, str] = ""
    """Set where `read` returns a number for each value of this label, or for each pair of values of two labels."""
    counter: bool = False
    """A counter, which never falls; else a gauge."""
    histogram: bool = False
    """`read` returns a `Histogram.value()`, with a label one for each of its values."""

    @property
    def labels(self) -> list[str]:
        if isinstance(self.label, str):
            return [self.label] if self.label else []
        return list(self.label)

    def family(self, prefix: str, service: S) -> MetricFamily:
        """The metric as it is now, named `nephila_<prefix>_<name>`."""
        return self._family(prefix, [], [([], self.read(service))])

    def worker_family(self, prefix: str, values: Mapping[str, Value]) -> MetricFamily:
        """The family of one metric from several worker processes; `values`: worker → value."""
        return self._family(prefix, [WORKER], [([worker], value) for worker, value in values.items()])

    def _family(self, prefix: str, more: list[str], values: Iterable[tuple[list[str], Value]]) -> MetricFamily:
        kind: Any = self._kind
        family: Any = kind(f"nephila_{prefix}_{self.name}", self.help, labels=[*self.labels, *more])
        for texts, value in values:
            # Without a label the one value has no name.
            named: Mapping[Any, Any] = value if self.label and isinstance(value, Mapping) else {(): value}
            for name, series in named.items():
                names = [*([name] if isinstance(name, str) else name), *texts]
                if self.histogram:
                    buckets = [(bound, count) for bound, count in series.items() if bound != SUM]
                    family.add_metric(names, buckets, series[SUM])
                else:
                    family.add_metric(names, series)
        return family  # type: ignore[no-any-return]

    @property
    def _kind(self) -> type[MetricFamily]:
        if self.histogram:
            return HistogramMetricFamily
        return CounterMetricFamily if self.counter else GaugeMetricFamily


Sent = float | dict[str, float]
"""A value that can be sent to another process: of metrics with at most one label."""


def read_values(service: S, table: Iterable[Metric[S]]) -> dict[str, Sent]:
    """Name of each metric → its value now, for another process."""
    values: dict[str, Sent] = {}
    for metric in table:
        value: Any = metric.read(service)
        if isinstance(value, Mapping):
            values[metric.name] = {name: float(number) for name, number in value.items()}
        else:
            values[metric.name] = float(value)
    return values


class MetricsCollector(Collector, Generic[S]):
    """All metrics of one service; their names begin with its name, as `nephila_parser_`."""

    def __init__(self, name: str, service: S, table: Iterable[Metric[S]]) -> None:
        self._name = name
        self._service = service
        self._table = tuple(table)

    def describe(self) -> Iterable[MetricFamily]:
        """Nothing: the registry must not read a service that has not started."""
        return ()

    def collect(self) -> Iterator[MetricFamily]:
        for metric in self._table:
            yield metric.family(self._name, self._service)


class WorkerMetricsCollector(Collector):
    """All metrics of a service that runs in several worker processes, from the values that these sent."""

    def __init__(self, name: str, table: Iterable[Metric[Any]], values: Mapping[str, Mapping[str, Value]]) -> None:
        """`values` maps a worker to its values by the name of the metric."""
        self._name = name
        self._table = tuple(table)
        self._values = values

    def collect(self) -> Iterator[MetricFamily]:
        for metric in self._table:
            values = {worker: sent[metric.name] for worker, sent in self._values.items()}
            yield metric.worker_family(self._name, values)


class BuildInfoCollector(Collector):
    """The metric `nephila_build_info` is a 1 whose labels name the running build."""

    def collect(self) -> Iterator[MetricFamily]:
        family = GaugeMetricFamily(
            "nephila_build_info",
            "1; the labels name the release, the implementation of the native core, and the Python that runs.",
            labels=["version", "native", "python"],
        )
        family.add_metric([__version__, IMPLEMENTATION, platform.python_version()], 1)
        yield family


def registry_of(collectors: Iterable[Collector]) -> CollectorRegistry:
    """These collectors, the metrics of the process, and its build."""
    registry = CollectorRegistry()
    registry.register(BuildInfoCollector())
    for collector in collectors:
        registry.register(collector)
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    return registry


def exposition(registry: CollectorRegistry) -> tuple[bytes, str]:
    """The text for Prometheus, and its content type."""
    return generate_latest(registry), CONTENT_TYPE_LATEST
