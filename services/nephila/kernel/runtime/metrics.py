"""How a service shows its figures: they are read when somebody asks, so the hot path counts plain integers.

A service's metrics.py has one table of `Figure`; `Figures` is the collector that Prometheus' library asks. The help
text says what a rise means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

S = TypeVar("S")
Read = Callable[[S], float | Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Figure(Generic[S]):
    """One metric of a service: how it is read off the service, and what it means."""

    name: str
    help: str
    read: Callable[[S], float | Mapping[str, float]]
    """A number, or one for each value of `label`."""
    label: str = ""
    rises: bool = False
    """A counter, which only ever rises; else a gauge."""

    def family(self, service: S) -> Metric:
        """The metric as it is now."""
        labels = [self.label] if self.label else []
        kind = CounterMetricFamily if self.rises else GaugeMetricFamily
        family: Any = kind(f"nephila_{self.name}", self.help, labels=labels)
        value = self.read(service)
        if isinstance(value, Mapping):
            for name, number in value.items():
                family.add_metric([name], number)
        else:
            family.add_metric([], value)
        return family  # type: ignore[no-any-return]


class Figures(Collector, Generic[S]):
    """All figures of one service."""

    def __init__(self, service: S, table: Iterable[Figure[S]]) -> None:
        self._service = service
        self._table = tuple(table)

    def describe(self) -> Iterable[Metric]:
        """Nothing: the registry must not read a service that has not begun."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """See `Collector`."""
        for figure in self._table:
            yield figure.family(self._service)
