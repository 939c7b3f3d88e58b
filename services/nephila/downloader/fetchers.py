"""The table of fetchers, and what finds a place for them to dial.

Each is imported when it is chosen: an image or a laptop run pays for one of them only.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from nephila.downloader.config import DownloaderConfig
from nephila.downloader.fetcher import Fetcher
from nephila.kernel.clock import Clock
from nephila.kernel.egress import EgressGuard, HostMap
from nephila.kernel.errors import UsageError
from nephila.kernel.resolver import Egress, SystemResolver


def make_fetcher(config: DownloaderConfig, clock: Clock) -> Fetcher:
    """The one that the settings name; raises `UsageError` when there is none of that name."""
    try:
        make = FETCHERS[config.fetcher]
    except KeyError:
        raise UsageError(f"fetcher {config.fetcher!r}: known are {', '.join(FETCHERS)}") from None
    return make(config, clock)


def make_egress(config: DownloaderConfig, clock: Clock) -> Egress:
    """Names to places, behind the guard; raises `UsageError` for a map that makes no sense."""
    return Egress(
        EgressGuard(config.allow_private),
        SystemResolver(config.dns_timeout_s),
        clock,
        HostMap(config.host_map),
        ttl_s=config.dns_ttl_s,
        negative_ttl_s=config.dns_negative_ttl_s,
        cache_size=config.dns_cache_size,
    )


def _lean(config: DownloaderConfig, clock: Clock) -> Fetcher:
    from nephila.downloader.lean import LeanFetcher

    return LeanFetcher(config, clock)


def _aiohttp(config: DownloaderConfig, clock: Clock) -> Fetcher:
    from nephila.downloader.aio import AiohttpFetcher

    return AiohttpFetcher(config, clock)


def _auto(config: DownloaderConfig, clock: Clock) -> Fetcher:
    # The Proactor loop reads ahead into the buffer it was given; the lean fetcher shares one between connections.
    return (_aiohttp if sys.platform == "win32" else _lean)(config, clock)


FETCHERS: dict[str, Callable[[DownloaderConfig, Clock], Fetcher]] = {
    "auto": _auto,
    "lean": _lean,
    "aiohttp": _aiohttp,
}
