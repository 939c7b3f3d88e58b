"""Figures of storage."""

from __future__ import annotations

from nephila.kernel.runtime.metrics import Figure
from nephila.storage.service import Storage

FIGURES: tuple[Figure[Storage], ...] = (
    Figure("rows", "Rows added to the table by this process, by outcome.", lambda s: s.outcomes, "outcome"),
    Figure(
        "records_buffered", "Records taken and not durable; a rise: the database is the brake.", lambda s: s.buffered
    ),
)
