"""Metrics of a service: values are read when Prometheus scrapes, so the hot path increments plain integers only.

Each service has a metrics.py with one table of `Metric`. `MetricsCollector` is the collector that prometheus_client
calls. The help text states what a rise means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.core import Metric as MetricFamily
from prometheus_client.registry import Collector

S = TypeVar("S")
Read = Callable[[S], float | Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Metric(Generic[S]):
    """One metric of a service: how it is read from the service, and its meaning."""

    name: str
    help: str
    read: Callable[[S], float | Mapping[str, float]]
    """A number, or one for each value of `label`."""
    label: str = ""
    counter: bool = False
    """A counter, which never falls; else a gauge."""

    def family(self, prefix: str, service: S) -> MetricFamily:
        """The metric as it is now, named `nephila_<prefix>_<name>`."""
        labels = [self.label] if self.label else []
        kind = CounterMetricFamily if self.counter else GaugeMetricFamily
        family: Any = kind(f"nephila_{prefix}_{self.name}", self.help, labels=labels)
        value = self.read(service)
        if isinstance(value, Mapping):
            for name, number in value.items():
                family.add_metric([name], number)
        else:
            family.add_metric([], value)
        return family  # type: ignore[no-any-return]


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
