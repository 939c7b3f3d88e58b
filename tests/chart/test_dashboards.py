"""Dashboards, alerts and the autoscaler use only metrics that the services define."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

CHART = Path(__file__).parents[2] / "charts" / "nephila"
FILES = [*sorted((CHART / "dashboards").glob("*.json")), CHART / "alerts.yaml", CHART / "templates" / "keda.yaml"]
SERVICES = ("scheduler", "downloader", "parser", "storage")


def defined() -> set[str]:
    """Names of all metrics of the services."""
    tables = {service: import_module(f"nephila.{service}.metrics").METRICS for service in SERVICES}
    return {f"nephila_{service}_{metric.name}" for service, table in tables.items() for metric in table}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_query_uses_metrics_that_exist(path: Path) -> None:
    used = set(re.findall(r"\bnephila_[a-z_]+", path.read_text()))
    assert used
    assert used <= defined()


def test_every_metric_of_a_service_is_on_a_dashboard() -> None:
    shown = set(re.findall(r"\bnephila_[a-z_]+", "".join(path.read_text() for path in FILES if path.suffix == ".json")))
    assert defined() - shown == set()
