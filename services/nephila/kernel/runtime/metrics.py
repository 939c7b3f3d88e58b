"""Metrics of a service: values are read when Prometheus scrapes, so the hot path increments plain integers only.

Each service has a metrics.py with one table of `Metric`. `MetricsCollector` and `WorkerMetricsCollector` are the
collectors that prometheus_client calls. The help text states what a rise means.
"""

from __future__ import annotations

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
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.core import Metric as MetricFamily
from prometheus_client.registry import Collector

S = TypeVar("S", contravariant=True)
Value = float | Mapping[str, float]
"""A number, or one for each value of a label."""
WORKER = "worker"
"""Label of a metric that each worker process of a program has."""


@dataclass(frozen=True, slots=True)
class Metric(Generic[S]):
    """One metric of a service: how it is read from the service, and its meaning."""

    name: str
    help: str
    read: Callable[[S], Value]
    label: str = ""
    """Set where `read` returns a number for each value of this label."""
    counter: bool = False
    """A counter, which never falls; else a gauge."""

    def family(self, prefix: str, service: S) -> MetricFamily:
        """The metric as it is now, named `nephila_<prefix>_<name>`."""
        return self._family(prefix, [], [([], self.read(service))])

    def worker_family(self, prefix: str, values: Mapping[str, Value]) -> MetricFamily:
        """The same metric from several worker processes; `values`: worker → value."""
        return self._family(prefix, [WORKER], [([worker], value) for worker, value in values.items()])

    def _family(self, prefix: str, labels: list[str], values: Iterable[tuple[list[str], Value]]) -> MetricFamily:
        kind = CounterMetricFamily if self.counter else GaugeMetricFamily
        all_labels = [self.label, *labels] if self.label else labels
        family: Any = kind(f"nephila_{prefix}_{self.name}", self.help, labels=all_labels)
        for texts, value in values:
            if isinstance(value, Mapping):
                for name, number in value.items():
                    family.add_metric([name, *texts], number)
            else:
                family.add_metric(texts, value)
        return family  # type: ignore[no-any-return]


def read_values(service: S, table: Iterable[Metric[S]]) -> dict[str, float | dict[str, float]]:
    """Name of each metric → its value now, for another process."""
    found: dict[str, float | dict[str, float]] = {}
    for metric in table:
        value = metric.read(service)
        if isinstance(value, Mapping):
            found[metric.name] = {name: float(number) for name, number in value.items()}
        else:
            found[metric.name] = float(value)
    return found


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
        """See `Collector`."""
        for metric in self._table:
            yield metric.family(self._name, self._service)


class WorkerMetricsCollector(Collector):
    """All metrics of a service that runs in several worker processes, from the values that these sent."""

    def __init__(self, name: str, table: Iterable[Metric[Any]], values: Mapping[str, Mapping[str, Value]]) -> None:
        """`values`: worker → name of the metric → value."""
        self._name = name
        self._table = tuple(table)
        self._values = values

    def collect(self) -> Iterator[MetricFamily]:
        """See `Collector`."""
        for metric in self._table:
            values = {worker: sent[metric.name] for worker, sent in self._values.items()}
            yield metric.worker_family(self._name, values)


def registry_of(collectors: Iterable[Collector]) -> CollectorRegistry:
    """These collectors, and the metrics of the process."""
    registry = CollectorRegistry()
    for collector in collectors:
        registry.register(collector)
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    return registry


def exposition(registry: CollectorRegistry) -> tuple[bytes, str]:
    """The text for Prometheus, and its content type."""
    return generate_latest(registry), CONTENT_TYPE_LATEST
