"""Request heads, and the filter of wanted media types. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache

from nephila.downloader.http.accept_encoding import ACCEPT_ENCODING
from nephila.downloader.http.config import HttpConfig
from nephila.downloader.http.contract import HttpRequest
from nephila.downloader.http.headers import split_header
from nephila.downloader.http.route import ProxyHop, Route
from nephila.downloader.http.target import TargetUrl
from nephila.downloader.http.tunnel.proxy_handshake import basic_credentials
from nephila.kernel.fragment_routes import form_of
from nephila.kernel.messages import FetchKind, FetchRequest
from nephila.kernel.pages.requisites import level_of
from nephila.kernel.runtime.errors import UsageError

ROBOTS_BYTES = 500 << 10
ROBOTS = FetchKind.ROBOTS
ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


def request_headers(config: HttpConfig) -> dict[str, str]:
    """The headers of every request; raises `UsageError` for a header that cannot be sent."""
    headers = {"User-Agent": config.agent(), "Accept": ACCEPT, "Accept-Encoding": ACCEPT_ENCODING}
    for line in config.headers:
        host, name, value = split_header(line)
        if host:
            continue
        for header in list(headers):
            if header.lower() == name.lower():
                del headers[header]
        headers[name] = value
    for name, value in headers.items():
        if any(ord(char) < 32 or ord(char) == 127 for char in value):
            raise UsageError(f"header {name}: control characters in its value")
        if not value.isascii():
            raise UsageError(f"header {name}: only ASCII can be sent")
    return headers


def request_headers_of(request: HttpRequest) -> dict[str, str]:
    """The headers of this request alone, credentials of its URL included."""
    headers = request.own_headers()
    if request.body is not None:
        headers["Content-Length"] = str(len(request.body))
    if request.target.authorization:
        headers.setdefault("Authorization", request.target.authorization)
    return headers


def proxy_headers_of(hop: ProxyHop) -> dict[str, str]:
    """The headers of a request that goes to a proxy itself; a tunnel carries none of them."""
    return {"Proxy-Authorization": basic_credentials(hop)} if hop.user else {}


class RequestHeads:
    """Builds request heads; the common part is built once."""

    def __init__(self, config: HttpConfig) -> None:
        lines = "".join(f"{name}: {value}\r\n" for name, value in request_headers(config).items())
        self._rest = "\r\n" + lines
        self._plain = self._rest + "\r\n"

    def shown(self, request: HttpRequest) -> bytes:
        """The head for archives: without credentials and secret headers."""
        return self.make(request, shown=True)

    def make(self, request: HttpRequest, shown: bool = False) -> bytes:
        """Request line and headers, CRLF lines, ending with an empty line. `shown`: as for archives."""
        target, proxy, headers = request.target, request.route.proxy, request.headers
        url = target.path
        if proxy is not None and not proxy.tunnel and not shown:
            url, headers = target.shown, {**proxy_headers_of(proxy), **request_headers_of(request)}
        elif not shown and (request.secret_headers is not None or request.body is not None or target.authorization):
            headers = request_headers_of(request)
        start = f"{request.method} {url} HTTP/1.1\r\nHost: {target.host_header}"
        if request.forwarded:
            only = "".join(f"\r\n{name}: {value}" for name, value in (headers or {}).items())
            return f"{start}{only}\r\n\r\n".encode("latin-1")
        if not headers:
            return (start + self._plain).encode("ascii")
        own = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        # A cookie is a sequence of octets, stored as Latin-1.
        return f"{start}{self._rest}{own}\r\n".encode("latin-1")


_LIST_ENDS = (".xml", ".rss", ".atom", ".rdf", ".xml.gz", ".rss.gz", ".atom.gz", ".rdf.gz")
_PLAIN_LIST_ENDS = (".gz", ".txt")


def names_list(path_query: str) -> bool:
    """Whether the path of a URL looks like a sitemap or feed.

    Servers send these with many media types, most often application/gzip, which is refused for other URLs; and a
    sitemap may be larger than any page.
    """
    name = path_query.partition("?")[0].rpartition("/")[2].lower()
    return name.endswith(_LIST_ENDS) or ("sitemap" in name and name.endswith(_PLAIN_LIST_ENDS))


def http_request_of(
    request: FetchRequest,
    target: TargetUrl,
    route: Route,
    max_list_bytes: int,
    on_sent: Callable[[], None] | None,
) -> HttpRequest:
    """The HTTP request for a FetchRequest, before the middleware adds to it."""
    is_robots = request.kind == ROBOTS
    is_list = not is_robots and names_list(target.path)
    made = HttpRequest(
        target,
        route,
        any_type=is_robots
        or is_list
        or request.seed
        or (request.context is not None and level_of(request.context) > 0),
        keep=ROBOTS_BYTES if is_robots else 0,
        max_bytes=max_list_bytes if is_list else 0,
        on_sent=on_sent,
        origin=request,
    )
    if request.context is not None and request.context.form and (form := form_of(request.url)) is not None:
        made.post_form(form.encode())
    return made


def media_filter(accept: Iterable[str], refuse: Iterable[str]) -> Callable[[str], bool]:
    """A predicate for wanted media types; `refuse` wins over `accept`, a missing type is wanted."""
    accepted, unwanted = _pattern(accept), _pattern(refuse)

    @lru_cache(maxsize=1024)
    def is_wanted(media_type: str) -> bool:
        return not media_type or (accepted.match(media_type) is not None and unwanted.match(media_type) is None)

    return is_wanted


def _pattern(types: Iterable[str]) -> re.Pattern[str]:
    alternatives = [re.escape(media_type.strip().lower()).replace(r"\*", ".*") for media_type in types]
    return re.compile(f"(?:{'|'.join(alternatives)})\\Z" if alternatives else r"(?!)")
