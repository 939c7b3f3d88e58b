"""Metrics of storage."""

from __future__ import annotations

from nephila.kernel.runtime.metrics import Metric
from nephila.storage.service import Storage

METRICS: tuple[Metric[Storage], ...] = (
    Metric("rows", "Rows added to the table by this process, by outcome.", lambda s: s.outcomes, "outcome"),
    Metric(
        "records_buffered", "Records taken and not durable; a rise: the database is the brake.", lambda s: s.buffered
    ),
)
