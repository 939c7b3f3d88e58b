"""The table of fetchers, the table of resolvers, and what finds a place for them to dial.

Each is imported when it is chosen: an image or a laptop run pays for one of them only.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.util import find_spec

from nephila.downloader.config import DownloaderConfig
from nephila.downloader.dns.resolver import GuardedResolver, Resolver, SystemResolver
from nephila.downloader.http.contract import Fetcher
from nephila.kernel.net.egress import EgressGuard, HostMap, literal
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import UsageError


def make_fetcher(config: DownloaderConfig, clock: Clock) -> Fetcher:
    """The one that the settings name; raises `UsageError` when there is none of that name."""
    try:
        make = FETCHERS[config.fetcher]
    except KeyError:
        raise UsageError(f"fetcher {config.fetcher!r}: known are {', '.join(FETCHERS)}") from None
    return make(config, clock)


def make_guarded_resolver(config: DownloaderConfig, clock: Clock) -> GuardedResolver:
    """Names to places, behind the guard; raises `UsageError` for a map that makes no sense."""
    return GuardedResolver(
        EgressGuard(config.allow_private),
        make_resolver(config),
        clock,
        HostMap(config.host_map),
        ttl_s=config.dns_ttl_s,
        negative_ttl_s=config.dns_negative_ttl_s,
        cache_size=config.dns_cache_size,
    )


def make_resolver(config: DownloaderConfig) -> Resolver:
    """The one that the settings name; raises `UsageError` when there is none of that name."""
    for server in config.dns_servers:
        literal(f"dns_servers {server!r}", server)
    try:
        make = RESOLVERS[config.dns_resolver]
    except KeyError:
        raise UsageError(f"dns_resolver {config.dns_resolver!r}: known are {', '.join(RESOLVERS)}") from None
    return make(config)


def _aiodns(config: DownloaderConfig) -> Resolver:
    from nephila.downloader.dns.aiodns_resolver import AiodnsResolver

    if find_spec("aiodns") is None:
        raise UsageError("dns_resolver aiodns: aiodns is not installed; pip install 'nephila[downloader]'")
    return AiodnsResolver(config.dns_servers, config.dns_timeout_s, config.dns_concurrency)


def _system(config: DownloaderConfig) -> Resolver:
    if config.dns_servers:
        raise UsageError("dns_servers: the system's resolver asks the servers of resolv.conf; use dns_resolver aiodns")
    return SystemResolver(config.dns_timeout_s, min(config.dns_concurrency, _THREADS))


def _installed(config: DownloaderConfig) -> Resolver:
    return (_aiodns if find_spec("aiodns") else _system)(config)


def _lean(config: DownloaderConfig, clock: Clock) -> Fetcher:
    from nephila.downloader.http.lean import LeanFetcher

    return LeanFetcher(config, clock)


def _aiohttp(config: DownloaderConfig, clock: Clock) -> Fetcher:
    from nephila.downloader.http.aiohttp_fetcher import AiohttpFetcher

    return AiohttpFetcher(config, clock)


def _auto(config: DownloaderConfig, clock: Clock) -> Fetcher:
    # The Proactor loop reads ahead into the buffer it was given; the lean fetcher shares one between connections.
    return (_aiohttp if sys.platform == "win32" else _lean)(config, clock)


_THREADS = 64
RESOLVERS: dict[str, Callable[[DownloaderConfig], Resolver]] = {
    "auto": _installed,
    "aiodns": _aiodns,
    "system": _system,
}
FETCHERS: dict[str, Callable[[DownloaderConfig, Clock], Fetcher]] = {
    "auto": _auto,
    "lean": _lean,
    "aiohttp": _aiohttp,
}
