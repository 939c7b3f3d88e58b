"""Settings of the look-up of names, and of the addresses that it may return."""

from typing import Annotated

import msgspec
from msgspec import Meta

from nephila.kernel.runtime.config import Positive


class DnsConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Look-ups, their cache, and the addresses that may be connected to."""

    allow_private: bool = False
    """Connect to loopback, private and other non-global addresses, and to any port. For tests and intranets
    only."""

    host_map: tuple[str, ...] = ()
    """\"pattern=address[:port]" instead of DNS: exact names and `*.suffix`; the longest match counts."""

    resolver: str = "auto"
    """\"aiodns" (c-ares: many look-ups at once, hosts file and DNS, no search list), "system" (getaddrinfo in
    threads: search list, nsswitch.conf, mDNS), or "auto" = aiodns where it is installed."""

    servers: tuple[str, ...] = ()
    """Name servers as "address[:port]", used in order. Empty: those of resolv.conf. For aiodns only."""

    concurrency: Positive = 1000
    """Simultaneous look-ups; the others wait. A look-up without an answer ends after `timeout_s`. The system's
    resolver makes 64 at most, a thread for each."""

    ttl_s: float = 300.0
    """Longest time that an answer is used. A shorter TTL of its records applies, but at least 30 s."""

    stale_s: float = 86_400.0
    """Time after its end that an answer is still used while its name servers fail (RFC 8767: 1 to 3 days). 0: never."""

    negative_ttl_s: float = 30.0
    """Time that a name counts as nonexistent, at least; the minimum in the SOA record of its site, up to 900 s, if that
    is longer (aiodns). Other failures of a look-up are not cached."""

    wildcard_names: Annotated[int, Meta(ge=0)] = 128
    """Names of one domain with equal answers after which a random name is looked up. If it has that answer too, the
    domain has a wildcard, and its further names are not looked up. 0: never."""

    cache_size: Positive = 100_000
    """Names in the cache; about 400 bytes each. The name used least is evicted first."""

    timeout_s: float = 15.0
    """Maximum time of one look-up with all its tries, and of the wait before it; then the request is given back."""
