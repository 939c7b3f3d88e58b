"""Metrics of the proxies of a downloader."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from nephila.downloader.service import Downloader
from nephila.kernel.runtime.metrics import Metric

from nephila_proxies.proxy import ALIVE, ProxyFault
from nephila_proxies.selection import ProxySelection


def _proxies(read: Callable[[ProxySelection], Any], empty: Any = 0) -> Callable[[Downloader], Any]:
    """A figure of the proxies; `empty` in a downloader without proxies."""
    return lambda d: empty if d.proxies is None else read(cast("ProxySelection", d.proxies))


def _faults(proxies: ProxySelection) -> dict[str, float]:
    return {fault.value: count for fault, count in proxies.faults.items() if fault is not ProxyFault.BANNED}


PROXY_METRICS: tuple[Metric[Downloader], ...] = (
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
        "Pages fetched once more through another proxy to compare both. A rise is normal: `proxies.second_share`.",
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
