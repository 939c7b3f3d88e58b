"""Metrics: values with no, one or two labels, of one process or of workers, as Prometheus reads them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import nephila
from nephila.kernel.runtime.metrics import (
    Metric,
    MetricsCollector,
    WorkerMetricsCollector,
    exposition,
    read_values,
    registry_of,
)
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

TABLE: list[Metric[dict[str, Any]]] = [
    Metric("depth", "A gauge.", lambda of: of["depth"]),
    Metric("fetched", "A counter.", lambda of: of["fetched"], counter=True),
    Metric("by_reason", "With a label.", lambda of: of["by_reason"], "reason", counter=True),
    Metric("by_pair", "With two.", lambda of: of["by_pair"], ("topic", "reason")),
]
SERVICE: dict[str, Any] = {
    "depth": 3,
    "fetched": 5,
    "by_reason": {"robots": 1, "trap": 2},
    "by_pair": {("pages", "crash"): 4},
}

Sample = tuple[str, tuple[tuple[str, str], ...], float]


def samples(*collectors: Collector) -> set[Sample]:
    """Name, labels and value of all samples of the project."""
    text, kind = exposition(registry_of(collectors))
    assert kind.startswith("text/plain")
    families: Iterable[Any] = text_string_to_metric_families(text.decode())
    found = [one for family in families for one in family.samples if one.name.startswith("nephila_")]
    return {(one.name, tuple(sorted(one.labels.items())), one.value) for one in found}


def test_the_values_of_one_service() -> None:
    """A counter ends in _total; each value of a label is a sample; the build has a 1."""
    found = samples(MetricsCollector("parser", SERVICE, TABLE))
    (build,) = [one for one in found if one[0] == "nephila_build_info"]
    assert (dict(build[1])["version"], build[2]) == (nephila.__version__, 1)
    assert found - {build} == {
        ("nephila_parser_depth", (), 3),
        ("nephila_parser_fetched_total", (), 5),
        ("nephila_parser_by_reason_total", (("reason", "robots"),), 1),
        ("nephila_parser_by_reason_total", (("reason", "trap"),), 2),
        ("nephila_parser_by_pair", (("reason", "crash"), ("topic", "pages")), 4),
    }


def test_the_values_of_workers() -> None:
    """As they were sent, each with its worker."""
    table = TABLE[:3]
    sent = read_values(SERVICE, table)
    assert sent == {"depth": 3.0, "fetched": 5.0, "by_reason": {"robots": 1.0, "trap": 2.0}}
    found = samples(WorkerMetricsCollector("parser", table, {"0": sent, "1": {**sent, "depth": 9.0, "by_reason": {}}}))
    assert {one for one in found if one[0] != "nephila_build_info"} == {
        ("nephila_parser_depth", (("worker", "0"),), 3),
        ("nephila_parser_depth", (("worker", "1"),), 9),
        ("nephila_parser_fetched_total", (("worker", "0"),), 5),
        ("nephila_parser_fetched_total", (("worker", "1"),), 5),
        ("nephila_parser_by_reason_total", (("reason", "robots"), ("worker", "0")), 1),
        ("nephila_parser_by_reason_total", (("reason", "trap"), ("worker", "0")), 2),
    }


def test_a_service_is_not_read_before_a_scrape() -> None:
    """It may not have started when its metrics are registered."""
    service: dict[str, Any] = {}
    registry = registry_of([MetricsCollector("parser", service, TABLE)])
    service.update(SERVICE)
    assert b"nephila_parser_depth 3.0" in exposition(registry)[0]
