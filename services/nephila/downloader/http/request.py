"""The request as it goes out, and which answers are wanted. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache

from nephila.downloader.config import DownloaderConfig
from nephila.downloader.http.contract import HttpRequest
from nephila.downloader.http.decode import ACCEPT_ENCODING
from nephila.downloader.http.headers import split_header
from nephila.downloader.http.target import Target
from nephila.kernel.messages import FetchKind, FetchRequest
from nephila.kernel.runtime.errors import UsageError

ROBOTS_BYTES = 500 << 10
ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


def request_headers(config: DownloaderConfig) -> dict[str, str]:
    """The headers that every request carries; raises `UsageError` for one that cannot be sent."""
    headers = {"User-Agent": config.agent(), "Accept": ACCEPT, "Accept-Encoding": ACCEPT_ENCODING}
    for line in config.headers:
        host, name, value = split_header(line)
        if host:
            continue
        for known in list(headers):
            if known.lower() == name.lower():
                del headers[known]
        headers[name] = value
    for name, value in headers.items():
        if any(ord(char) < 32 or ord(char) == 127 for char in value):
            raise UsageError(f"header {name}: control characters in its value")
        if not value.isascii():
            raise UsageError(f"header {name}: only ASCII can be sent")
    return headers


def request_headers_of(request: HttpRequest) -> list[tuple[str, str]]:
    """The headers of this one order: credentials, validators, what the middleware has added."""
    headers = list(request.headers.items())
    if request.body is not None:
        headers.append(("Content-Length", str(len(request.body))))
    if request.target.authorization and "Authorization" not in request.headers:
        headers.append(("Authorization", request.target.authorization))
    for name, value in (("If-None-Match", request.etag), ("If-Modified-Since", request.last_modified)):
        # A validator is somebody else's text: only what fits on one header line goes back.
        if value and value.isprintable() and value.isascii():
            headers.append((name, value))
    return headers


class RequestHeads:
    """Builds request heads; the part that is the same for all is built once."""

    def __init__(self, config: DownloaderConfig) -> None:
        lines = "".join(f"{name}: {value}\r\n" for name, value in request_headers(config).items())
        self._rest = "\r\n" + lines
        self._plain = self._rest + "\r\n"

    def shown(self, request: HttpRequest) -> bytes:
        """The head without what may be secret: credentials and what the middleware has added. For archives."""
        if not (request.headers or request.target.authorization):
            return self.make(request)
        plain = HttpRequest(request.target, (), 0, etag=request.etag, last_modified=request.last_modified)
        return self.make(plain, secrets=False)

    def make(self, request: HttpRequest, *, secrets: bool = True) -> bytes:
        """Request line and headers, CRLF lines, ending in an empty one."""
        target = request.target
        method = "GET" if request.body is None else "POST"
        start = f"{method} {target.path} HTTP/1.1\r\nHost: {target.host_header}"
        if not (target.authorization or request.etag or request.last_modified or request.headers):
            return (start + self._plain).encode("ascii")
        headers = (pair for pair in request_headers_of(request) if secrets or pair[0] != "Authorization")
        own = "".join(f"{name}: {value}\r\n" for name, value in headers)
        # A cookie is octets, kept as Latin-1.
        return f"{start}{self._rest}{own}\r\n".encode("latin-1")


_LIST_ENDS = (".xml", ".rss", ".atom", ".rdf", ".xml.gz", ".rss.gz", ".atom.gz", ".rdf.gz")
_PLAIN_LIST_ENDS = (".gz", ".txt")


def names_list(path_query: str) -> bool:
    """Whether a URL has the name of a sitemap or feed. Servers call those whatever they like, application/gzip most of
    all, under which an archive would come that nobody wants; and a sitemap may be larger than any page."""
    name = path_query.partition("?")[0].rpartition("/")[2].lower()
    return name.endswith(_LIST_ENDS) or ("sitemap" in name and name.endswith(_PLAIN_LIST_ENDS))


def http_request_of(
    request: FetchRequest,
    target: Target,
    route: tuple[tuple[str, ...], int],
    max_list_bytes: int,
    on_sent: Callable[[], None] | None,
) -> HttpRequest:
    """What the fetcher is asked to do for a request, at a place that may be dialled."""
    is_robots = request.kind == FetchKind.ROBOTS
    is_list = not is_robots and names_list(target.path)
    addresses, port = route
    return HttpRequest(
        target,
        addresses,
        port,
        etag=request.etag,
        last_modified=request.last_modified,
        any_type=is_robots or is_list or request.seed,
        keep=ROBOTS_BYTES if is_robots else 0,
        max_bytes=max_list_bytes if is_list else 0,
        on_sent=on_sent,
    )


def media_filter(accept: Iterable[str], refuse: Iterable[str]) -> Callable[[str], bool]:
    """A function that says whether a media type is wanted; refusal wins, a missing type is wanted."""
    wanted, unwanted = _pattern(accept), _pattern(refuse)

    @lru_cache(maxsize=1024)
    def is_wanted(media_type: str) -> bool:
        return not media_type or (wanted.match(media_type) is not None and unwanted.match(media_type) is None)

    return is_wanted


def _pattern(types: Iterable[str]) -> re.Pattern[str]:
    alternatives = [re.escape(one.strip().lower()).replace(r"\*", ".*") for one in types]
    return re.compile(f"(?:{'|'.join(alternatives)})\\Z" if alternatives else r"(?!)")
