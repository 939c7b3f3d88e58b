"""Metrics of the downloader."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nephila_browser.lane import BrowserLane

from nephila.downloader.middleware.block_detector import BlockDetector
from nephila.downloader.middleware.user.user_files import UserMiddleware
from nephila.downloader.proxies.proxy import ALIVE, ProxyFault
from nephila.downloader.proxies.selection import ProxySelection
from nephila.downloader.service import Downloader
from nephila.kernel.runtime.metrics import Metric


def _proxies(read: Callable[[ProxySelection], Any], empty: Any = 0) -> Callable[[Downloader], Any]:
    """A figure of the proxies; `empty` in a downloader without proxies."""
    return lambda d: empty if d.proxies is None else read(d.proxies)


def _faults(proxies: ProxySelection) -> dict[str, float]:
    return {fault.value: count for fault, count in proxies.faults.items() if fault is not ProxyFault.BANNED}


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
        "dns_names", "Names in the DNS cache. At dns_cache_size: light names are evicted.", lambda d: d.resolver.names
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
    Metric(
        "proxy_requests_total",
        "Requests sent through proxies, by class of the proxy. A rise is normal where proxies are set.",
        _proxies(lambda proxies: dict(proxies.picks), {}),
        "class",
        counter=True,
    ),
    Metric(
        "proxy_failures_total",
        "Requests that a proxy failed, by fault; a rise of `dead` or `refused`: proxies or credentials do not work.",
        _proxies(_faults, {}),
        "fault",
        counter=True,
    ),
    Metric(
        "proxy_bans_total",
        "Responses by which a server blocked a proxy (403, 429, block pages). A rise: the site refuses these proxies.",
        _proxies(lambda proxies: proxies.faults[ProxyFault.BANNED]),
        counter=True,
    ),
    Metric(
        "proxy_proxies",
        "Proxies by state; `alive` near 0: requests wait for proxies.",
        _proxies(lambda proxies: {state.value: count for state, count in proxies.pool.counts().items()}, {}),
        "state",
    ),
    Metric(
        "proxy_alive",
        "Proxies that requests may use. A rise: evicted proxies have passed a check, or lists have grown.",
        _proxies(lambda proxies: proxies.pool.counts()[ALIVE]),
    ),
    Metric(
        "proxy_evicted_total",
        "Evictions of proxies that worked before. A rise: proxies die, lie or are banned.",
        _proxies(lambda proxies: proxies.pool.evicted),
        counter=True,
    ),
    Metric(
        "proxy_readmitted_total",
        "Evicted proxies that passed a later check. A rise: proxies fail now and then.",
        _proxies(lambda proxies: proxies.pool.readmitted),
        counter=True,
    ),
    Metric(
        "proxy_compared_total",
        "Pages fetched once more through another proxy to compare both. A rise is normal: `proxy_second_share`.",
        _proxies(lambda proxies: proxies.second_fetches.compared),
        counter=True,
    ),
    Metric(
        "proxy_unchecked_total",
        "Pages that should be compared, without another proxy that works. A rise: no lie can be found; add proxies.",
        _proxies(lambda proxies: proxies.second_fetches.unchecked),
        counter=True,
    ),
    Metric(
        "proxy_undecided_total",
        "Pages that were different at each of three proxies. A rise: pages change with each request.",
        _proxies(lambda proxies: proxies.second_fetches.undecided),
        counter=True,
    ),
    Metric(
        "proxy_retracted_total",
        "Pages of proxies that lie, which are fetched again. A rise: see the log for the proxies.",
        _proxies(lambda proxies: proxies.retracted),
        counter=True,
    ),
    Metric(
        "proxy_none_total",
        "Requests that found no working proxy; a rise: no proxy of their class works, and their hosts wait.",
        _proxies(lambda proxies: proxies.without_proxy),
        counter=True,
    ),
)


def _browser(read: Callable[[BrowserLane], Any], empty: Any = 0) -> Callable[[Downloader], Any]:
    """A figure of the browser lane; `empty` in a downloader without one."""
    return lambda d: empty if d.browser is None else read(d.browser)


BROWSER_METRICS: tuple[Metric[Downloader], ...] = (
    Metric(
        "browser_pages_total",
        "Pages rendered by a browser. Flat while pages are in flight: the browser hangs.",
        _browser(lambda lane: lane.browser.pool.pages),
        counter=True,
    ),
    Metric(
        "browser_seconds_total",
        "Seconds that pages took in a browser. A rise against browser_pages_total: pages are slow, or the CPU is full.",
        _browser(lambda lane: lane.browser.pool.seconds),
        counter=True,
    ),
    Metric(
        "browser_cpu_seconds_total",
        "CPU of all browser processes. A rise against browser_pages_total: pages cost more, so fewer fit a core.",
        _browser(lambda lane: lane.browser.pool.cpu_s()),
        counter=True,
    ),
    Metric(
        "browser_processes",
        "Browser processes that run. 0 while requests are in flight: the browser does not start.",
        _browser(lambda lane: lane.browser.pool.processes),
    ),
    Metric(
        "browser_memory_bytes",
        "Memory of all browser processes. A rise up to browser_memory_bytes for each is normal; then pages end.",
        _browser(lambda lane: lane.browser.pool.memory_bytes()),
    ),
    Metric(
        "browser_launched_total",
        "Browser processes started. A rise with browser_crashes_total: the browser crashes.",
        _browser(lambda lane: lane.browser.pool.launched),
        counter=True,
    ),
    Metric(
        "browser_retired_total",
        "Browser processes ended, by reason: uses and memory are planned, crash and hang are not.",
        _browser(lambda lane: dict(lane.browser.pool.retired), {}),
        "reason",
        counter=True,
    ),
    Metric(
        "browser_crashes_total",
        "Browser processes that crashed, or were killed because they hung. A rise: little memory, or a hostile page.",
        _browser(lambda lane: lane.browser.pool.crashes),
        counter=True,
    ),
    Metric(
        "browser_sub_requests_total",
        "Requests of rendered pages beside the document. A rise against browser_pages_total: pages load more.",
        _browser(lambda lane: lane.browser.sub_requests),
        counter=True,
    ),
    Metric(
        "browser_blocked_total",
        "Requests of rendered pages that the gateway refused or that failed, by reason. A rise of address: an attack.",
        _browser(lambda lane: dict(lane.browser.blocked), {}),
        "reason",
        counter=True,
    ),
    Metric(
        "browser_lane_total",
        "Pages of jobs with render auto, by lane; both: compared. A rise of both: many new URL patterns.",
        _browser(lambda lane: dict(lane.chosen), {}),
        "lane",
        counter=True,
    ),
    Metric(
        "browser_compared_total",
        "Pages that were fetched by both lanes and compared. A rise is normal.",
        _browser(lambda lane: lane.verdicts.compared),
        counter=True,
    ),
)
METRICS = PLAIN_METRICS + BROWSER_METRICS
