"""Settings of the fetchers: what a request says, how long and how large a response may be, how connections are kept."""

import msgspec

from nephila import __version__

PROJECT_URL = "https://nephila.dev/bot"


class HttpConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Requests, responses and connections; what both fetchers and the native core read."""

    user_agent: str = ""
    """Value of User-Agent. Empty: `Nephila/<version> (+<contact>)`, or with an empty contact the project's page:
    `Nephila/<version> (+https://nephila.dev/bot)`."""

    contact: str = ""
    """URL or mail address in the default User-Agent, for webmasters. Empty: the project's page is sent. Without effect
    where user_agent is set."""

    headers: tuple[str, ...] = ()
    """Extra request headers: "Name: value" for every host replaces the default of that name; "HOST Name: value" is
    for one host, or with *.example.org for all hosts below a name."""

    connect_timeout_s: float = 10.0
    """Maximum time of one attempt to connect, TLS handshake included: three lost SYNs (1, 2, 4 s) and an answer."""

    headers_timeout_s: float = 20.0
    """Maximum time from the end of the request to the end of the response headers; slow pages are computed before
    the first header."""

    idle_timeout_s: float = 15.0
    """Maximum silence within a body."""

    body_timeout_s: float = 60.0
    """Maximum time of the whole body, against servers that send it slowly on purpose."""

    total_timeout_s: float = 90.0
    """Maximum time from the dial to the last byte; shorter than the scheduler's lease."""

    min_rate_bytes: float = 100.0
    """Minimum rate of a body in bytes per second, on average from idle_timeout_s on: at this rate 60 s (body_timeout_s)
    bring 6 KB, less than a page. 0 = none."""

    max_wire_bytes: int = 32 << 20
    """Maximum size of a body on the network; larger ones are files, not documents."""

    max_body_bytes: int = 32 << 20
    """Maximum size of a decoded body; a decompression bomb is cut off here."""

    max_list_bytes: int = 55 << 20
    """Both of these limits for a URL that is named like a sitemap or feed: the protocol allows a sitemap 50 MB."""

    max_ratio: float = 250.0
    """Maximum ratio of decoded to received bytes, checked above 1 MiB. Text rarely exceeds 100; the maximum of gzip
    is 1,032."""

    accept: tuple[str, ...] = (
        "text/*",
        "application/xhtml+xml",
        "*/xml",
        "*/*+xml",
        "application/json",
        "*/*+json",
        "application/pdf",
        "application/rss",
        "application/atom",
    )
    """Media types that are downloaded. A missing type is always accepted, and every type of a seed and of a URL
    that is named like a sitemap or feed."""

    refuse: tuple[str, ...] = ("text/css", "text/javascript", "application/javascript", "image/*", "audio/*", "video/*")
    """Media types that are stopped after the headers even if `accept` covers them (image/svg+xml is */*+xml)."""

    raw_capture: bool = False
    """Fill request_head, response_head and wire_body of a Page, for the sinks warc and raw."""

    fetcher: str = "auto"
    """\"native" (I/O thread of the native core, least CPU), "aiohttp", or "auto" = native wherever the core has it."""

    page_threads: int = 0
    """Threads that read HTML pages beside the event loop (native fetcher, with the parser in the same process); 0 = as
    many as cores for all processes, at least one and at most 8 in each, and none on one core, where the event loop
    reads them."""

    tls_verify: bool = True
    """Check certificates and host names; off only where no certificate can be trusted. Better: `ca_file`."""

    ca_file: str = ""
    """PEM file of certificates that are trusted beside those of the system: the authority of an intranet, or the
    self-signed certificate of a server."""

    keepalive_s: float = 15.0
    """Maximum time that an idle connection is kept; servers close them after 5-75 s."""

    rest_s: float = 0.2
    """Rest of the first connections to a server between two requests; another one is opened meanwhile. A response that
    the server sends late and unasked is noticed then, and is not taken for the next page. 0 = none."""

    pool_size: int = 500
    """Number of idle connections that are kept in any case; beyond it the oldest is closed first. 0: none."""

    pool_most: int = 2000
    """Maximum number of idle connections: the pool grows up to it while hosts return to connections that were closed
    for want of room. An idle TLS connection takes some 250 KB."""

    def agent(self) -> str:
        """The User-Agent as sent."""
        return self.user_agent or f"Nephila/{__version__} (+{self.contact or PROJECT_URL})"
