"""The parts of a URL that a request needs: scheme, host, port, request target, credentials. Pure.

The URL is serialised by the one parser of the project (WHATWG) first. The result splits without ambiguity, so the host
that the egress guard checks is the host that is dialled.
"""

from __future__ import annotations

from base64 import b64encode
from urllib.parse import unquote_to_bytes

from nephila.native import parse_url

_PORTS = {"http": 80, "https": 443}


class TargetUrl:
    """One parsed URL; raises `UrlError` (a ValueError) for other texts and other schemes than http(s).

    `host` is ASCII; `dial_host` has an IPv6 literal without brackets. `href` has no fragment and may contain
    credentials, so it must not be logged.
    """

    __slots__ = ("authorization", "dial_host", "host", "host_header", "href", "path", "port", "scheme")

    def __init__(self, url: str, base: str = "") -> None:
        href = self.href = parse_url(url, base or None).href
        scheme, _, rest = href.partition("://")
        port = _PORTS[scheme]
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
        self.path = slash + path

    @property
    def shown(self) -> str:
        """The URL without credentials."""
        return f"{self.scheme}://{self.host_header}{self.path}"


def _basic(userinfo: str) -> str:
    user, _, password = userinfo.partition(":")
    return "Basic " + b64encode(unquote_to_bytes(user) + b":" + unquote_to_bytes(password)).decode("ascii")
