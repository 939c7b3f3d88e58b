"""Metrics of the control API over Kafka."""

from __future__ import annotations

from nephila.control.service import ControlService
from nephila.kernel.runtime.metrics import Metric

METRICS: tuple[Metric[ControlService], ...] = (
    Metric(
        "jobs",
        "Jobs by state. A rise of `new`: no scheduler reports. A rise of `limit` or `quota`: they are spent. A rise of "
        "`window`: jobs are outside of their hours.",
        lambda s: s.control.states(),
        "state",
    ),
)
