"""A proxy as a list or the settings name it: a URL, its class and its country. Pure.

Forms of a line, the second one as many providers export lists:

    http://user:password@proxy.example:3128 class=datacenter country=de
    203.0.113.9:8080:user:password
"""

from urllib.parse import unquote, urlsplit

import msgspec
from nephila.kernel.runtime.late_pattern import late_pattern

SCHEMES = {"http": 8080, "https": 443, "socks5": 1080}
"""Known schemes with their default ports. https: TLS to the proxy, then CONNECT. socks5h, which curl uses, means
socks5: `proxies.names` decides about names."""
_WORD = late_pattern(r"[a-z0-9][a-z0-9_-]{0,31}\Z")
_COUNTRY = late_pattern(r"[a-z]{2}\Z")
MAX_PROVIDER_CHARS = 80
_HOST = late_pattern(r"[a-z0-9_.:-]{1,253}\Z")


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One proxy. Two entries with the same `name` are the same proxy."""

    scheme: str
    host: str
    port: int
    user: str = ""
    password: str = ""
    kind: str = ""
    """Class, such as datacenter or residential; empty: unknown."""
    country: str = ""
    """Two letters in lower case; empty: unknown."""
    provider: str = ""
    """The operator of its network (ISP), in lower case with "-" for spaces; empty: unknown."""
    trusted: bool = False
    """Named by the operator, so its address may be a private one. Addresses of downloaded lists may not."""

    @property
    def name(self) -> str:
        """Identity, without password: providers select exits by the user name."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{self.user + '@' if self.user else ''}{host}:{self.port}"


def parse_endpoint(line: str, *, kind: str = "", country: str = "", trusted: bool = False) -> Endpoint:
    """The proxy of a line; `kind` and `country` apply where the line has none. Raises ValueError, whose text does not
    repeat the line: it may contain a password."""
    text, *options = line.split()
    values = {"class": kind, "country": country, "provider": ""}
    for option in options:
        key, _, value = option.partition("=")
        if key not in values:
            raise ValueError(f"option {key[:20]!r} is unknown; known are class, country and provider")
        values[key] = value.lower()
    if values["class"] and not _WORD.match(values["class"]):
        raise ValueError(f"class {values['class'][:40]!r} is not a word")
    if values["country"] and not _COUNTRY.match(values["country"]):
        raise ValueError(f"country {values['country'][:40]!r} is not a code of two letters")
    if len(values["provider"]) > MAX_PROVIDER_CHARS:
        raise ValueError("the provider is too long")
    scheme, host, port, user, password = _parts(text)
    check_credentials(user, password)
    return Endpoint(
        scheme=scheme,
        host=host,
        port=port,
        user=user,
        password=password,
        kind=values["class"],
        country=values["country"],
        provider=provider_of(values["provider"]),
        trusted=trusted,
    )


def provider_of(name: str) -> str:
    """The name of a provider in the form in which names are compared."""
    return "-".join(name.lower().split())[:MAX_PROVIDER_CHARS]


def _parts(text: str) -> tuple[str, str, int, str, str]:
    if "://" not in text:
        pieces = text.split(":")
        if len(pieces) == 4:  # host:port:user:password
            host, port, user, password = pieces
            return "http", _host(host), _port(port), user, password
        text = f"http://{text}"
    try:
        parts = urlsplit(text)
        port_number = parts.port
    except ValueError:
        raise ValueError("not a URL of a proxy") from None
    scheme = "socks5" if parts.scheme == "socks5h" else parts.scheme
    if scheme not in SCHEMES:
        raise ValueError(f"scheme {parts.scheme[:20]!r} is unknown; known are {', '.join(SCHEMES)}")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError("the URL of a proxy ends with its port")
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    return scheme, _host(parts.hostname or ""), port_number or SCHEMES[scheme], user, password


def check_credentials(user: str, password: str) -> None:
    """Raise ValueError for credentials that SOCKS5 or a log line cannot have."""
    if len(user.encode()) > 255 or len(password.encode()) > 255 or any(ord(char) < 32 for char in user + password):
        raise ValueError("user and password have at most 255 bytes and no control characters")


def _host(text: str) -> str:
    host = text.lower()
    if not _HOST.match(host):
        raise ValueError("the URL of a proxy has no valid host")
    return host


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 65_536):
        raise ValueError("the port of a proxy is a number below 65,536")
    return int(text)
