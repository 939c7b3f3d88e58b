"""Dashboards, alerts and the autoscaler use only metrics that the services define."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tools.metrics_reference import all_metrics

CHART = Path(__file__).parents[2] / "charts" / "nephila"
FILES = [*sorted((CHART / "dashboards").glob("*.json")), CHART / "alerts.yaml", CHART / "templates" / "keda.yaml"]


def defined() -> set[str]:
    """Names of all metrics, as PromQL sees them."""
    found = set()
    for name, metric in all_metrics().items():
        found |= {f"{name}_bucket", f"{name}_sum", f"{name}_count"} if metric.histogram else {name}
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_query_uses_metrics_that_exist(path: Path) -> None:
    used = set(re.findall(r"\bnephila_[a-z_]+", path.read_text()))
    assert used
    assert used <= defined()


def test_every_metric_of_a_service_is_on_a_dashboard() -> None:
    queries = "".join(path.read_text() for path in FILES if path.suffix == ".json")
    shown = {name.removesuffix("_bucket") for name in re.findall(r"\bnephila_[a-z_]+", queries)}
    assert all_metrics().keys() - shown == {"nephila_api_jobs", "nephila_api_access_file_refused"}


def test_every_panel_says_what_it_means() -> None:
    for path in FILES:
        if path.suffix == ".json":
            panels = [panel for panel in json.loads(path.read_text())["panels"] if panel["type"] != "row"]
            assert [panel["title"] for panel in panels if not panel.get("description")] == []
