"""The table of resolvers, and the guarded resolver built from the settings.

A resolver is imported when it is chosen, so that a process pays for one of them only.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

from nephila.downloader.dns.config import DnsConfig
from nephila.downloader.dns.contract import Resolver
from nephila.downloader.dns.guarded_resolver import GuardedResolver
from nephila.downloader.dns.hash_tree import HashTree
from nephila.downloader.dns.system_resolver import SystemResolver
from nephila.downloader.dns.wildcard_zones import WildcardZones
from nephila.kernel.net.egress import EgressGuard, HostMap, literal
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.runtime.extras import library_line

_THREADS = 64


def make_guarded_resolver(config: DnsConfig, clock: Clock) -> GuardedResolver:
    """The resolver behind the egress guard. Raises `UsageError` for settings that make no sense."""
    return GuardedResolver(
        EgressGuard(config.allow_private),
        make_resolver(config),
        HashTree(config.cache_size),
        clock,
        HostMap(config.host_map),
        ttl_s=config.ttl_s,
        negative_ttl_s=config.negative_ttl_s,
        stale_s=config.stale_s,
        wildcards=WildcardZones(config.wildcard_names),
    )


def make_proxy_resolver(config: DnsConfig, clock: Clock, *, allow_private: bool) -> GuardedResolver:
    """A resolver of the names of proxies: the host map, which is for servers, does not apply."""
    return GuardedResolver(EgressGuard(allow_private), make_resolver(config), HashTree(1000), clock)


def make_resolver(config: DnsConfig) -> Resolver:
    """The resolver that the settings name; raises `UsageError` for an unknown name."""
    for server in config.servers:
        literal(f"dns.servers {server!r}", server)
    try:
        make = RESOLVERS[config.resolver]
    except KeyError:
        raise UsageError(f"dns.resolver {config.resolver!r}: known are {', '.join(RESOLVERS)}") from None
    return make(config)


def _aiodns(config: DnsConfig) -> Resolver:
    from nephila.downloader.dns.aiodns_resolver import AiodnsResolver

    if find_spec("aiodns") is None:
        raise UsageError(f"dns.resolver aiodns: aiodns is not installed; {library_line('aiodns')}")
    return AiodnsResolver(config.servers, config.timeout_s, config.concurrency)


def _system(config: DnsConfig) -> Resolver:
    if config.servers:
        raise UsageError("dns.servers: the system resolver uses the servers of resolv.conf; use dns.resolver aiodns")
    return SystemResolver(config.timeout_s, min(config.concurrency, _THREADS))


def _installed(config: DnsConfig) -> Resolver:
    return (_aiodns if find_spec("aiodns") else _system)(config)


RESOLVERS: dict[str, Callable[[DnsConfig], Resolver]] = {
    "auto": _installed,
    "aiodns": _aiodns,
    "system": _system,
}
