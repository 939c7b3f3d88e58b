"""The table of resolvers, and the guarded resolver built from the settings.

A resolver is imported when it is chosen, so that a process pays for one of them only.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

from nephila.downloader.config import DownloaderConfig
from nephila.downloader.dns.contract import Resolver
from nephila.downloader.dns.guarded_resolver import GuardedResolver
from nephila.downloader.dns.hash_tree import HashTree
from nephila.downloader.dns.system_resolver import SystemResolver
from nephila.kernel.net.egress import EgressGuard, HostMap, literal
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.runtime.extras import library_line

_THREADS = 64


def make_guarded_resolver(config: DownloaderConfig, clock: Clock) -> GuardedResolver:
    """The resolver behind the egress guard. Raises `UsageError` for settings that make no sense."""
    return GuardedResolver(
        EgressGuard(config.allow_private),
        make_resolver(config),
        HashTree(config.dns_cache_size),
        clock,
        HostMap(config.host_map),
        ttl_s=config.dns_ttl_s,
        negative_ttl_s=config.dns_negative_ttl_s,
        stale_s=config.dns_stale_s,
    )


def make_proxy_resolver(config: DownloaderConfig, clock: Clock, *, allow_private: bool) -> GuardedResolver:
    """A resolver of the names of proxies: the host map, which is for servers, does not apply."""
    return GuardedResolver(EgressGuard(allow_private), make_resolver(config), HashTree(1000), clock)


def make_resolver(config: DownloaderConfig) -> Resolver:
    """The resolver that the settings name; raises `UsageError` for an unknown name."""
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
        raise UsageError(f"dns_resolver aiodns: aiodns is not installed; {library_line('aiodns')}")
    return AiodnsResolver(config.dns_servers, config.dns_timeout_s, config.dns_concurrency)


def _system(config: DownloaderConfig) -> Resolver:
    if config.dns_servers:
        raise UsageError("dns_servers: the system resolver uses the servers of resolv.conf; use dns_resolver aiodns")
    return SystemResolver(config.dns_timeout_s, min(config.dns_concurrency, _THREADS))


def _installed(config: DownloaderConfig) -> Resolver:
    return (_aiodns if find_spec("aiodns") else _system)(config)


RESOLVERS: dict[str, Callable[[DownloaderConfig], Resolver]] = {
    "auto": _installed,
    "aiodns": _aiodns,
    "system": _system,
}
