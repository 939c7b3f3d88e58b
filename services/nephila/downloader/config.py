"""Every setting of the downloader, with its unit and why it has the value it has."""

from __future__ import annotations

import msgspec

from nephila import __version__
from nephila.kernel.runtime.config import Positive

PROJECT_URL = "https://nephila.dev/bot"


class DownloaderConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of one downloader; durations in seconds, sizes in bytes."""

    concurrency: Positive = 100
    """Fetches at once: what a slow network needs to keep one core busy."""

    window: Positive = 4096
    """Requests taken and not acked yet, the credit on `requests`: a request is acked once its page is durable, long
    after its fetch has ended, so this is far above `concurrency`."""

    per_host: int = 1
    """Fetches at once on one host key; the last guard behind the scheduler's own rule. 0 = no limit."""

    per_address: int = 4
    """Fetches at once on one server address: many names on one machine must not add up to a flood. 0 = no limit."""

    address_gap_s: float = 0.25
    """Between two starts on one server address; the last guard behind the scheduler's own rule. 0 = none."""

    networks: tuple[str, ...] = ()
    """Other limits for single networks: "10.0.0.0/8=16/0.05" = connections/gap. The scheduler's should be the same: it
    plans by its own, and what it starts too early comes back."""

    user_agent: str = ""
    """Value of User-Agent; empty = `Nephila/<version> (+<contact>)`."""

    contact: str = ""
    """URL or mail address named in the default User-Agent, so that a webmaster can reach the person who crawls."""

    headers: tuple[str, ...] = ()
    """Extra request headers: "Name: value" for every host, replacing the default of that name; "HOST Name: value" for
    one host, or *.example.org for all below a name."""

    cookies: str = ""
    """A file of cookies in Netscape's format, as browsers and curl export it; each job begins with them, and keeps what
    sites set."""

    secrets: str = ""
    """Directory below which `spec.login` of jobs may name files; empty: none may."""

    connect_timeout_s: float = 10.0
    """For one attempt to connect, TLS handshake included: three lost SYNs (1, 2, 4 s) and an answer."""

    headers_timeout_s: float = 20.0
    """From the request written to the end of the response headers: slow pages are made before the first header."""

    idle_timeout_s: float = 15.0
    """Longest silence within a body; a server that stalls longer has given up or is holding us."""

    body_timeout_s: float = 60.0
    """For the whole body, against servers that drip."""

    total_timeout_s: float = 90.0
    """From the dial to the last byte, everything included; stays below the scheduler's lease."""

    move_s: float = 2.5
    """What fetches under way may take when their partition goes to another member; then they are given back. Below the
    bus' drain_s (3 s), so that the outcomes are out before the other begins."""

    max_wire_bytes: int = 32 << 20
    """Body bytes read from the wire; pages beyond are files, not documents."""

    max_body_bytes: int = 32 << 20
    """Body bytes after content decoding; a bomb is cut off here."""

    max_list_bytes: int = 55 << 20
    """Both of these limits for a URL that a sitemap or feed has by its name: the protocol allows a sitemap 50 MB."""

    max_ratio: float = 250.0
    """Decoded by wire bytes, looked at above 1 MiB; text rarely passes 100, gzip's own ceiling is 1,032."""

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
    """Media types worth a download; a missing type is always accepted, and so is everything for a seed and for what is
    named like a sitemap or feed."""

    refuse: tuple[str, ...] = ("text/css", "text/javascript", "application/javascript", "image/*", "audio/*", "video/*")
    """Media types stopped after the headers though `accept` may cover them (image/svg+xml is */*+xml)."""

    allow_private: bool = False
    """Dial loopback, private and other non-global addresses and any port; for tests and intranets only."""

    host_map: tuple[str, ...] = ()
    """"pattern=address[:port]" instead of DNS; exact names and `*.suffix`, the longest match wins."""

    raw_capture: bool = False
    """Fill request_head, response_head and wire_body of a Page, for WARC and raw sinks."""

    fetcher: str = "auto"
    """"lean" (own protocol, least CPU), "aiohttp", or "auto" = lean wherever the event loop can run it."""

    tls_verify: bool = True
    """Check certificates and names; off only for intranets with home-made certificates."""

    keepalive_s: float = 15.0
    """How long an idle connection is kept; servers close after 5-75 s, a polite crawl comes back within a few."""

    pool_size: int = 500
    """Idle connections kept in all; the oldest goes first."""

    dns_resolver: str = "auto"
    """"aiodns" (c-ares: many look-ups at once, hosts file and DNS, no search list), "system" (getaddrinfo in threads:
    search list, nsswitch.conf, mDNS), or "auto" = aiodns where it is installed."""

    dns_servers: tuple[str, ...] = ()
    """Name servers as "address[:port]", asked in order; none = those of resolv.conf. For aiodns only."""

    dns_concurrency: Positive = 1000
    """Look-ups at once, the others wait; a name whose servers are silent holds its turn for `dns_timeout_s`. The
    system's resolver takes 64 at most, a thread for each."""

    dns_ttl_s: float = 300.0
    """How long an answer is used, whatever the record's own time."""

    dns_negative_ttl_s: float = 30.0
    """How long it is believed that a name does not exist; other failures of a look-up are not remembered."""

    dns_cache_size: Positive = 100_000
    """Names remembered; about 400 bytes each."""

    dns_timeout_s: float = 15.0
    """For one look-up with all its tries, counted from its turn; and for the turn, after which the request is given
    back."""

    def agent(self) -> str:
        """The User-Agent as sent."""
        return self.user_agent or f"Nephila/{__version__} (+{self.contact or PROJECT_URL})"
