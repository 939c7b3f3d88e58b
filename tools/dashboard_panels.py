"""A panel of a dashboard, and the queries that all of them share."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tools.metrics_reference import all_metrics

HELP = {name: metric.help for name, metric in all_metrics().items()}
HERE = '{namespace="$namespace",release=~"$release",pod=~"$pod"}'
"""What the variables of a dashboard select; a series without a release has the empty one."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One graph: its title, query, unit of Grafana, legend, and what a reader learns."""

    title: str
    query: str
    unit: str = "short"
    legend: str = ""
    text: str = ""
    """Empty: the help of its metric."""
    number: bool = False
    more: tuple[tuple[str, str], ...] = ()
    """Further queries in the same graph, each with its legend."""
    warn: float | None = None
    """From this value on it is yellow, from `alarm` on red; below each where `alarm` is lower."""
    alarm: float | None = None
    words: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    """Value → text and colour, of a number that stands for a word."""

    @property
    def description(self) -> str:
        """The text that Grafana shows."""
        if self.text:
            return self.text
        name = re.search(r"nephila_\w+", self.query)
        assert name is not None, f"panel {self.title!r} needs a text"
        return HELP[name[0].removesuffix("_bucket")]


def rate(metric: str, by: str = "") -> str:
    """The sum of a counter's rate, by a label."""
    return f"sum{f' by ({by})' if by else ''} (rate({metric}{HERE}[$__rate_interval]))"


def total(metric: str, by: str = "") -> str:
    """The sum of a gauge."""
    return f"sum{f' by ({by})' if by else ''} ({metric}{HERE})"


def latency(metric: str, quantile: float, by: str = "") -> str:
    """A quantile of a histogram."""
    labels = ", ".join(["le", *([by] if by else [])])
    return f"histogram_quantile({quantile}, sum by ({labels}) (rate({metric}_bucket{HERE}[$__rate_interval])))"
