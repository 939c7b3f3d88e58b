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
    Metric("dns_names", "Names in the DNS cache.", lambda d: d.resolver.names),
    Metric("dns_hits_total", "Answers from the DNS cache.", lambda d: d.resolver.stats.hits, counter=True),
    Metric(
        "dns_lookups_total",
        "DNS look-ups sent; a rise against dns_hits_total: the cache is too small, or TTLs are short.",
        lambda d: d.resolver.stats.lookups,
        counter=True,
    ),
    Metric(
        "dns_lookup_seconds_total",
        "Seconds spent in DNS look-ups; a rise against dns_lookups_total: the name servers are slow.",
        lambda d: d.resolver.stats.lookup_s,
        counter=True,
    ),
    Metric(
        "dns_failures_total",
        "DNS look-ups without an answer; a rise: the name servers fail.",
        lambda d: d.resolver.stats.failures,
        counter=True,
    ),
    Metric(
        "dns_refreshes_total",
        "Look-ups in the background, of names in use whose answers expire soon.",
        lambda d: d.resolver.stats.refreshes,
        counter=True,
    ),
    Metric(
        "dns_stale_served_total",
        "Failed look-ups that an expired answer replaced; a rise: the name servers fail.",
        lambda d: d.resolver.stats.stale_served,
        counter=True,
    ),
    Metric("requests_in_flight", "Requests accepted and not ended; a rise: servers are slow.", lambda d: d.in_flight),
)
