"""Writes docs/metrics.md: every metric with its type, labels and help, from the tables of the services.

python -m tools.metrics_reference [--check]
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from nephila.kernel.runtime.metrics import BuildInfoCollector, Metric

DOCUMENT = Path(__file__).parents[1] / "docs" / "metrics.md"
TABLES = {
    "scheduler": "nephila_cluster.scheduler.metrics",
    "downloader": "nephila.downloader.metrics",
    "parser": "nephila.parser.metrics",
    "storage": "nephila.storage.metrics",
    "api": "nephila_control.metrics",
    "operator": "nephila_cluster.operator.metrics",
    "webhooks": "nephila_harvest.webhooks.metrics",
    "sites": "nephila_harvest.sites.metrics",
    "bus": "nephila_cluster.kafka.metrics",
    "program": "nephila_cluster.service.metrics",
}
"""Part → module of its table. `bus` and `program` are part of every service over Kafka."""
HEAD = """# Metrics

Written by `make schema` from the tables in the `metrics.py` of each service. Names are `nephila_<part>_<name>`.
The parts `bus` and `program` are in every service over Kafka. Values of labels: [ADR 60](adr/0060-metrics.md).
Dashboards and alerts: [operations.md](operations.md#metrics).

`nephila_build_info` has the labels `version`, `native` (implementation of the native core) and `python`.
"""


def all_metrics() -> dict[str, Metric[Any]]:
    """Full name → metric."""
    return {
        f"nephila_{part}_{metric.name}": metric
        for part, module in TABLES.items()
        for metric in import_module(module).METRICS
    } | {
        "nephila_build_info": Metric(
            "build_info", next(iter(BuildInfoCollector().collect())).documentation, lambda _: 1
        )
    }


def document() -> str:
    """The text of docs/metrics.md."""
    lines = [HEAD]
    for part in TABLES:
        lines += [f"\n## {part}\n", "| metric | type | labels | meaning |", "|---|---|---|---|"]
        for name, metric in all_metrics().items():
            if name.startswith(f"nephila_{part}_"):
                kind = "histogram" if metric.histogram else "counter" if metric.counter else "gauge"
                labels = ", ".join(f"`{label}`" for label in metric.labels)
                lines.append(f"| `{name}` | {kind} | {labels} | {metric.help} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 when the file differs")
    text = document()
    if not parser.parse_args().check:
        DOCUMENT.write_text(text)
    elif not DOCUMENT.exists() or DOCUMENT.read_text() != text:
        sys.exit("docs/metrics.md differs from the metrics: run `make schema` and commit the result")


if __name__ == "__main__":
    main()
