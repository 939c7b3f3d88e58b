"""Headers between a browser and a server: which ones pass the gateway, and the kind of request that they show. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import Enum

from nephila.downloader.http.accept_encoding import ACCEPT_ENCODING

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_CONTROLS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
# RFC 9110 7.6.1: headers of one connection.
_HOP = frozenset(
    (
        "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
        "transfer-encoding", "upgrade",
    )
)  # fmt: skip
# The gateway decodes the body and sets its length. Alt-Svc would lead the browser to another port or to QUIC. With
# Content-Disposition a page would be a download.
_NOT_TO_BROWSER = _HOP | {"content-encoding", "content-length", "content-disposition", "alt-svc"}
# The fetcher sets Host and Content-Length; it decodes the codings that it requests.
_NOT_TO_SERVER = _HOP | {"host", "content-length", "accept-encoding", "expect"}
SECRET = frozenset(("cookie", "authorization"))
_DOCUMENTS = frozenset(("document", "iframe", "frame", "fencedframe", "object", "embed"))
_MEDIA = frozenset(("image", "font", "audio", "video", "track"))

Headers = Mapping[str, str]


class ResponseUse(Enum):
    """The use of a response in the browser, as far as the gateway distinguishes it."""

    DOCUMENT = "document"
    """Main frame, iframe, frame, object or embed: robots.txt applies."""
    MEDIA = "media"
    """Image, font, audio or video."""
    PREFETCH = "prefetch"
    """Fetched in advance; a page that is rendered once has no use for it."""
    SERVICE_WORKER = "service worker"
    """The script of a service worker, which would answer later requests itself."""
    OTHER = "other"


def kind_of(headers: Headers) -> ResponseUse:
    """The kind of a request; names in lower case.

    A browser sends Sec-Fetch-Dest on https and to loopback only. Elsewhere navigations have Upgrade-Insecure-Requests,
    and images a typical Accept. Scripts cannot set a header with the prefix Sec-.
    """
    if headers.get("service-worker", "").lower() == "script":
        return ResponseUse.SERVICE_WORKER
    if "prefetch" in headers.get("sec-purpose", headers.get("purpose", "")).lower():
        return ResponseUse.PREFETCH
    destination = headers.get("sec-fetch-dest", "")
    if destination == "serviceworker":
        return ResponseUse.SERVICE_WORKER
    if destination in _DOCUMENTS:
        return ResponseUse.DOCUMENT
    if destination in _MEDIA:
        return ResponseUse.MEDIA
    if not destination:
        if headers.get("upgrade-insecure-requests") == "1":
            return ResponseUse.DOCUMENT
        if headers.get("accept", "").startswith("image/"):
            return ResponseUse.MEDIA
    return ResponseUse.OTHER


def is_of_script(headers: Headers) -> bool:
    """Whether a request is XHR or fetch of a script, as far as it shows its use."""
    return kind_of(headers) is ResponseUse.OTHER and headers.get("sec-fetch-dest", "empty") == "empty"


def to_server(headers: Headers) -> dict[str, str]:
    """The headers of a browser's request that the server receives, without credentials of the proxy."""
    named = _connection_options(headers.get("connection", ""))
    passed = {name: value for name, value in headers.items() if name not in _NOT_TO_SERVER and name not in named}
    passed["accept-encoding"] = ACCEPT_ENCODING
    return passed


def to_browser(headers: Headers) -> list[tuple[str, str]]:
    """The headers of a server's response that the browser receives; lines that are not valid HTTP are dropped."""
    named = _connection_options(headers.get("connection", ""))
    lines = []
    for name, value in headers.items():
        if name in _NOT_TO_BROWSER or name in named or not _TOKEN.match(name):
            continue
        # The fetcher joins repeated headers whose values may have a comma by line feeds.
        parts = value.split("\n")
        lines += [(name, _CONTROLS.sub(" ", part).strip()) for part in parts]
    return lines


def merge(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Header lines of a request as a mapping: names in lower case, repeated ones joined as in HTTP/1.1."""
    merged: dict[str, str] = {}
    for raw_name, raw_value in headers:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        if name in merged:
            value = f"{merged[name]}{'; ' if name == 'cookie' else ', '}{value}"
        merged[name] = value
    return merged


def _connection_options(value: str) -> frozenset[str]:
    return frozenset(option.strip().lower() for option in value.split(",")) if value else frozenset()
