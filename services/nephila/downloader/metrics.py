"""Metrics of the downloader."""

from __future__ import annotations

from nephila.downloader.middleware.block_detector import BlockDetector
from nephila.downloader.middleware.user.user_files import UserMiddleware
from nephila.downloader.service import Downloader
from nephila.kernel.runtime.extensions import extension, is_installed
from nephila.kernel.runtime.metrics import Metric

PLAIN_METRICS: tuple[Metric[Downloader], ...] = (
    Metric(
        "fetches_total",
        "Requests that have ended, by result; `unspecified`: returned unfetched. Flat: nothing is fetched.",
        lambda d: {result.name.lower(): count for result, count in d.ended.items()},
        "result",
        counter=True,
    ),
    Metric(
        "wire_bytes_total",
        "Bytes received from servers. A rise: more or larger answers.",
        lambda d: d.wire_bytes,
        counter=True,
    ),
    Metric(
        "admission_limit",
        "Concurrent fetches that memory and CPU of the container allow. Below `concurrency`: see the headroom.",
        lambda d: d.admission.limit if d.admission is not None else 0,
    ),
    Metric(
        "admission_headroom_ratio",
        "Share of a resource left below its threshold; the lowest binds. At or below 0: nothing further is taken.",
        lambda d: d.admission.headroom_by_resource if d.admission is not None else {},
        "resource",
    ),
    Metric(
        "memory_waiting",
        "Bodies, child processes and browser pages that wait for memory. Above 0: pages are large for this container.",
        lambda d: d.budget.waiting,
    ),
    Metric(
        "memory_reserved_bytes",
        "Memory that is reserved and not in use yet. A rise: large pages are in flight.",
        lambda d: d.budget.outstanding_bytes,
    ),
    Metric(
        "memory_refused_total",
        "Bodies given back half read, since an earlier one needed the memory. A rise: the container is too small.",
        lambda d: d.budget.refused,
        counter=True,
    ),
    Metric(
        "slow_slots",
        "Slots held by hosts that answer slowly. At `slow_share` of the limit: others of them wait.",
        lambda d: d.slow,
    ),
    Metric(
        "slow_given_back_total",
        "Requests of slow hosts given back, since other hosts needed their slots. A rise: many servers drip or hang.",
        lambda d: d.slow_given_back,
        counter=True,
    ),
    Metric(
        "blocked_total",
        "Responses that were block pages, by product or kind. A rise: sites refuse this crawler.",
        lambda d: dict(d.chain.find(BlockDetector).found),
        "kind",
        counter=True,
    ),
    Metric(
        "middleware_failures_total",
        "Exceptions in middleware of the user, by file. Above 0: see the log for file and line.",
        lambda d: dict(d.chain.find(UserMiddleware).failures),
        "file",
        counter=True,
    ),
    Metric(
        "stale_requests_total",
        "Requests ignored because of an old epoch. A rise: partitions move between schedulers.",
        lambda d: d.partitions.stale,
        counter=True,
    ),
    Metric(
        "dns_names", "Names in the DNS cache. At dns.cache_size: light names are evicted.", lambda d: d.resolver.names
    ),
    Metric(
        "dns_hits_total", "Answers from the DNS cache. A rise is normal.", lambda d: d.resolver.stats.hits, counter=True
    ),
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
        "Background look-ups of names in use that expire soon. A rise: more names are in use, or TTLs are short.",
        lambda d: d.resolver.stats.refreshes,
        counter=True,
    ),
    Metric(
        "dns_stale_served_total",
        "Failed look-ups that an expired answer replaced; a rise: the name servers fail.",
        lambda d: d.resolver.stats.stale_served,
        counter=True,
    ),
    Metric(
        "dns_wildcard_total",
        "Names that the wildcard of their domain answered without a look-up; a rise: a domain has any number of hosts.",
        lambda d: d.resolver.stats.wildcards,
        counter=True,
    ),
    Metric("requests_in_flight", "Requests accepted and not ended; a rise: servers are slow.", lambda d: d.in_flight),
    Metric(
        "fetch_seconds",
        "From dial to the end of the response, connecting included. A rise: servers or the network are slow.",
        lambda d: d.fetch_s.value(),
        histogram=True,
    ),
    Metric(
        "first_byte_seconds",
        "From dial to the end of the response head. A rise while fetch_seconds rises alike: servers think longer.",
        lambda d: d.first_byte_s.value(),
        histogram=True,
    ),
    Metric(
        "host_requests_per_second",
        "Requests per second to the busiest host, over ten seconds. Above what its delay allows: politeness is broken.",
        lambda d: d.highest_host_rate,
    ),
    *(extension("proxy-metrics") if is_installed("proxy-metrics") else ()),
)

BROWSER_METRICS: tuple[Metric[Downloader], ...] = (
    extension("browser-metrics") if is_installed("browser-metrics") else ()
)
"""Metrics of a downloader whose pages a browser renders."""
METRICS = PLAIN_METRICS + BROWSER_METRICS
