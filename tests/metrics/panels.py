"""The panels of the dashboards, with the variables of their queries replaced, and the answers of a Prometheus."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools.prometheus import Server

DASHBOARDS = Path(__file__).parents[2] / "charts" / "nephila" / "dashboards"
UNANSWERED: dict[str, str] = {
    **dict.fromkeys(
        ("CPU beside request and limit", "CPU-seconds per 1,000 pages", "Cost per 1,000 pages"),
        "neither cAdvisor nor kube-state-metrics runs outside Kubernetes",
    ),
    "Block pages": "no site of the run answers with a block page",
    **dict.fromkeys(
        ("Failed backup", "Age of the newest backup", "Degraded jobs"), "the run has no service nephila api"
    ),
    "Unready members by reason": "all members may be ready at the first scrape",
    "Failures of users' middleware": "no middleware is configured",
    **dict.fromkeys(
        (
            "Deliveries of webhooks",
            "Failed attempts of webhooks",
            "Dead letters of webhooks",
            "Webhooks that fail",
        ),
        "no webhooks are configured",
    ),
    **dict.fromkeys(("Lists of directories by verdict", "Directories with a fault"), "no sites are configured"),
    **dict.fromkeys(
        (
            "Fetches by tenant",
            "Cost per hour by tenant",
            "Bytes received by tenant",
            "Browsers in use by tenant",
            "Quota of tenants in use",
        ),
        "no job of the run has a tenant",
    ),
    "Stored pages evaluated by changed schemes": "no schemes are configured",
    "Near-copies": "no job of the run compares texts",
    "Pages checked too late": "no job of the run has a freshness objective",
    **dict.fromkeys(
        (
            "Mean time of a rendered page",
            "CPU of a rendered page",
            "Pages by lane",
            "Refused sub-requests",
            "Browsers ended",
        ),
        "no page of the run is rendered",
    ),
    **dict.fromkeys(("Proxies by state", "Requests by class", "Proxy failures by fault"), "no proxies are configured"),
    **dict.fromkeys(
        (
            "Leading operators",
            "Resources",
            "Reconciliations",
            "Refused files of rules",
            "Degraded resources",
            "Stalled resources",
        ),
        "no operator runs outside Kubernetes",
    ),
}
"""Title of a panel that a run without faults leaves empty → the reason."""


@dataclass(slots=True)
class Panel:
    """A panel of a dashboard and the series that answered its query."""

    dashboard: str
    title: str
    query: str
    unit: str
    legend: str
    series: list[dict[str, Any]] = field(default_factory=list)

    @property
    def answered(self) -> bool:
        """Whether a series has a number."""
        return any(not math.isnan(float(value)) for one in self.series for _, value in one["values"])


def panels(namespace: str, window: str) -> Iterator[Panel]:
    """All panels of all dashboards. `window`: the value of Grafana's `$__rate_interval`."""
    for path in sorted(DASHBOARDS.glob("*.json")):
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel.get("targets", []):
                query = target["expr"].replace("$namespace", namespace).replace("$crawl", ".+")
                for name, value in (("$release", ".*"), ("$pod", ".*"), ("$price", "0.04")):
                    query = query.replace(name, value)
                query = query.replace("$__rate_interval", window)
                unit = panel["fieldConfig"]["defaults"].get("unit", "")
                yield Panel(path.stem, panel["title"], query, unit, target["legendFormat"])


def answer(prometheus: Server, panel: Panel, began: float, ended: float, step_s: float) -> None:
    """Fill in the series of a panel."""
    panel.series = prometheus.range(panel.query, began, ended, step_s)


def unanswered(found: list[Panel]) -> list[str]:
    """Panels without an answer that have no reason, and panels with a reason that have an answer after all."""
    wrong = [f"{p.dashboard}: {p.title}: no series for {p.query}" for p in found if not p.answered]
    return [line for line in wrong if line.split(": ")[1] not in UNANSWERED]
