"""Metrics of storage."""

from __future__ import annotations

from nephila.kernel.runtime.metrics import Metric
from nephila.storage.service import Storage

METRICS: tuple[Metric[Storage], ...] = (
    Metric(
        "rows",
        "Rows added by this process, by outcome. Flat while records_buffered is not 0: the database fails.",
        lambda s: s.outcomes,
        "outcome",
    ),
    Metric(
        "records_buffered",
        "Records received and not durable. A rise: the database is the bottleneck.",
        lambda s: s.buffered,
    ),
)
