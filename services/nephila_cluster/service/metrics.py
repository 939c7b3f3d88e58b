"""Metrics of a service program as such: readiness, and the delay of its event loop."""

from __future__ import annotations

from nephila.kernel.runtime.metrics import Metric

from nephila_cluster.service.program import ServiceProgram

METRICS: tuple[Metric[ServiceProgram], ...] = (
    Metric("ready", "1 while this member is ready. 0: see unready.", lambda p: float(not p.unready_kinds)),
    Metric(
        "unready",
        "1 for each kind of reason why this member is not ready. A 1 that stays: /readyz has the text.",
        lambda p: dict.fromkeys(p.unready_kinds, 1.0),
        "reason",
    ),
    Metric(
        "loop_delay_seconds",
        "How late the event loop calls a timer, twice a second. A rise: long callbacks, or too little CPU.",
        lambda p: p.loop_delay_s.value(),
        histogram=True,
    ),
)
