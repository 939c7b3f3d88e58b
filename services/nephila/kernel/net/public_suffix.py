"""Registrable domains by the public suffix list, private suffixes included.

The list is the copy inside tldextract; nothing is downloaded. The first call loads it in some 30 ms.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tldextract import TLDExtract


@cache
def _extract() -> TLDExtract:
    import tldextract

    return tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None, include_psl_private_domains=True)


def registrable_domain(host: str) -> str:
    """Registrable domain of a host name or host key; the host itself for an address and for a public suffix."""
    return _extract()(host).top_domain_under_public_suffix or host


@lru_cache(maxsize=4096)
def site_of(host: str) -> str:
    """The site of a host without port; hosts of one site may share cookies.

    Below a top-level domain that is not in the list, as in an intranet, a site is the last two labels. An IP address is
    a site of its own.
    """
    if is_address(host):
        return host
    parts = _extract()(host)
    return parts.top_domain_under_public_suffix or (host if parts.suffix else ".".join(host.split(".")[-2:]))


@lru_cache(maxsize=1 << 15)
def domain_of(host_key: str) -> str:
    """The site of a host key, which may have a port. 4 µs for a host that is not in the cache (6 MB)."""
    host, _, port = host_key.rpartition(":")
    return site_of(host if port.isdigit() and host else host_key)


@lru_cache(maxsize=4096)
def is_public_suffix(name: str) -> bool:
    """Whether anyone can register a name below this one; then no cookie may be set for all of these names."""
    return "." not in name or _extract()(name).suffix == name


def is_address(host: str) -> bool:
    """Whether a canonical host is an IP address."""
    return host[:1] == "[" or ":" in host or host.rpartition(".")[2].isdigit()
