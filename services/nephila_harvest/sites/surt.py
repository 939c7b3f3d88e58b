"""SURT: a URL with its host in reversed order, so that a site, its subdomains and its directories are prefixes. Pure.

http://www.news.example/world/2026/a.html → "example,news,)/world/2026/a.html". The scheme, a leading www., the query
and the fragment are left out. A directory covers itself and everything below it: "/world" covers /world and
/world/2026, and not /world-cup.
"""

from __future__ import annotations

from collections.abc import Iterator

import re2
from nephila.native import UrlError, parse_url


def surt(url: str) -> str:
    """The key of a URL. Raises `UrlError`."""
    parts = parse_url(url)
    return _host(parts.host_key) + parts.path_query.partition("?")[0].rstrip("/")


def directory_prefix(url: str, *, subdomains: bool = False) -> str:
    """The prefix that a directory's URL binds settings to; `subdomains`: it covers all hosts below the name."""
    parts = parse_url(url)
    path = parts.path_query.partition("?")[0]
    head, _, last = path.rpartition("/")
    if "." in last:  # a page of the directory
        path = head
    path = path.rstrip("/")
    host = _host(parts.host_key)
    return host.removesuffix(")") if subdomains and not path else host + path


def prefixes(key: str) -> Iterator[str]:
    """All prefixes that cover a key, the longest first. O(length)."""
    host, _, path = key.partition(")")
    while path:
        yield f"{host}){path}"
        path = path.rpartition("/")[0]
    if ")" in key:
        yield f"{host})"
    while host:
        yield host
        host = host[: host[:-1].rfind(",") + 1]


def expression(prefix: str) -> str:
    """RE2 that finds the URLs that a prefix covers."""
    host, closed, path = prefix.partition(")")
    labels, _, port = host.rpartition(",")
    name = ".".join(reversed(labels.split(",")))
    below = r"(www\.)?" if closed else r"([^/?#@]*\.)?"
    end = r"([/?#]|$)"
    return rf"^https?://{below}{re2.escape(name + port)}{re2.escape(path)}{end}"


def _host(host_key: str) -> str:
    name, colon, port = host_key.removeprefix("www.").partition(":")
    return ",".join(reversed(name.split("."))) + "," + colon + port + ")"


def is_below(url: str, directory: str) -> bool:
    """Whether a URL is in a directory; scheme, default port and a leading www do not count. False for no URL."""
    try:
        return directory_prefix(directory) in prefixes(surt(url))
    except UrlError:
        return False
