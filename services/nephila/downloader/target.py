"""What a URL means to somebody who dials: scheme, host, port, request target, credentials. Pure.

Everything rests on the WHATWG serialisation: once a URL has been through the one parser of the system, it splits
without ambiguity, and what the egress guard checks is what is dialled.
"""

from __future__ import annotations

from base64 import b64encode
from urllib.parse import unquote_to_bytes

from nephila.downloader._url import href_of

_PORTS = {"http": 80, "https": 443}


class BadUrlError(ValueError):
    """The URL cannot be fetched; the text says why, without its credentials."""


class Target:
    """One URL, ready to dial. `host` is ASCII; an IPv6 literal carries no brackets in `dial_host`."""

    __slots__ = ("authorization", "dial_host", "host", "host_header", "href", "path", "port", "scheme")

    def __init__(self, url: str, base: str = "") -> None:
        href = self.href = href_of(url, base)
        scheme, separator, rest = href.partition("://")
        port = _PORTS.get(scheme)
        if not separator or port is None:
            raise BadUrlError(f"scheme {href.partition(':')[0]!r} is not http or https")
        authority, slash, path = rest.partition("/")
        userinfo, at, hostport = authority.rpartition("@")
        self.authorization = _basic(userinfo) if at else ""
        self.host_header = hostport
        self.scheme = scheme
        if hostport[-1:] == "]" or ":" not in hostport:
            self.host, self.port = hostport, port
        else:
            self.host, _, digits = hostport.rpartition(":")
            self.port = int(digits)
        self.dial_host = self.host[1:-1] if self.host[:1] == "[" else self.host
        self.path = slash + path.partition("#")[0]

    @property
    def url(self) -> str:
        """The URL without its fragment, credentials included: never for a log."""
        return self.href.partition("#")[0]


def _basic(userinfo: str) -> str:
    user, _, password = userinfo.partition(":")
    return "Basic " + b64encode(unquote_to_bytes(user) + b":" + unquote_to_bytes(password)).decode("ascii")
