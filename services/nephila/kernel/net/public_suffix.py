"""Registrable domains by the public suffix list, private suffixes included.

The list is the file inside tldextract; nothing is downloaded. The library itself is not imported: it would bring an
HTTP client and two tries of objects, 0.2 CPU-s and 27 MB beside 12 ms and 2.5 MB of the set here (docs/adr/0275).
Rules are matched as publicsuffix.org/list has it, in the ASCII form that host keys have.
"""

from __future__ import annotations

from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path


@cache
def _rules() -> frozenset[str]:
    """The rules, as `co.uk`, `*.ck` and `!www.ck`."""
    package = find_spec("tldextract")
    assert package is not None, "tldextract is a dependency"
    assert package.origin is not None
    text = Path(package.origin).with_name(".tld_set_snapshot").read_text("utf-8")
    lines = (line.split(maxsplit=1)[0] for line in text.splitlines() if line.strip() and not line.startswith("//"))
    return frozenset(rule if rule.isascii() else ".".join(map(_ascii, rule.split("."))) for rule in lines)


def _ascii(label: str) -> str:
    """A label of the list, which is normalised, as the DNS has it."""
    return label if label.isascii() else f"xn--{label.encode('punycode').decode()}"


def _suffix_of(name: str) -> str:
    """The public suffix of a name; empty below a top-level domain that is not in the list. O(labels)."""
    rules = _rules()
    while name:
        parent = name.partition(".")[2]
        if f"!{name}" in rules:
            return parent
        if name in rules or f"*.{parent}" in rules:
            return name
        name = parent
    return ""


def _below_suffix(name: str, suffix: str) -> str:
    """The suffix with one more label of the name; empty without a suffix, and for a suffix itself."""
    if not suffix or name == suffix:
        return ""
    return f"{name[: -len(suffix) - 1].rpartition('.')[2]}.{suffix}"


def registrable_domain(host: str) -> str:
    """Registrable domain of a host name or host key; the host itself for an address and for a public suffix."""
    name = host.partition(":")[0].rstrip(".").lower()
    return _below_suffix(name, _suffix_of(name)) or host


@lru_cache(maxsize=4096)
def site_of(host: str) -> str:
    """The site of a host without port; hosts of one site may share cookies.

    Below a top-level domain that is not in the list, as in an intranet, a site is the last two labels. An IP address is
    a site of its own.
    """
    if is_address(host):
        return host
    name = host.rstrip(".").lower()
    suffix = _suffix_of(name)
    return _below_suffix(name, suffix) or (host if suffix else ".".join(host.split(".")[-2:]))


@lru_cache(maxsize=1 << 15)
def domain_of(host_key: str) -> str:
    """The site of a host key, which may have a port. 1 µs for a host that is not in the cache (6 MB)."""
    host, _, port = host_key.rpartition(":")
    return site_of(host if port.isdigit() and host else host_key)


@lru_cache(maxsize=4096)
def is_public_suffix(name: str) -> bool:
    """Whether anyone can register a name below this one; then no cookie may be set for all of these names."""
    return "." not in name or _suffix_of(name) == name


def is_address(host: str) -> bool:
    """Whether a canonical host is an IP address."""
    return host[:1] == "[" or ":" in host or host.rpartition(".")[2].isdigit()
