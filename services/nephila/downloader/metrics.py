"""Metrics of the downloader."""

from __future__ import annotations

from nephila.downloader.service import Downloader
from nephila.kernel.runtime.metrics import Metric

METRICS: tuple[Metric[Downloader], ...] = (
    Metric(
        "fetches_total",
        "Requests that have ended, by result; `unspecified` were given back.",
        lambda d: {result.name.lower(): count for result, count in d.ended.items()},
        "result",
        counter=True,
    ),
    Metric("wire_bytes_total", "Bytes received from servers.", lambda d: d.wire_bytes, counter=True),
    Metric(
        "stale_requests_total",
        "Requests ignored because their epoch is below the latest one of their partition.",
        lambda d: d.partitions.stale,
        counter=True,
    ),
    Metric("requests_in_flight", "Requests accepted and not ended; a rise: servers are slow.", lambda d: d.in_flight),
)
