"""Every setting of the downloader, with its unit and why it has the value it has."""

import msgspec

from nephila import __version__
from nephila.kernel.runtime.config import Positive

PROJECT_URL = "https://nephila.dev/bot"


class DownloaderConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of one downloader; durations in seconds, sizes in bytes."""

    concurrency: Positive = 100
    """Simultaneous fetches: as many as a slow network needs to keep one core busy."""

    admission: bool = True
    """Take only as many requests as the memory and CPU of the container allow, between 1 and `concurrency`."""

    admission_first_batch: Positive = 5
    """Requests before the size of pages is known, and while CPU is short."""

    admission_memory: float = 0.9
    """Share of the memory limit, above which nothing further is taken. The rest is for peaks of parser and storage."""

    admission_cpu: float = 0.9
    """The same for CPU: of the limit of the container, or of the cores for this process alone without one."""

    admission_loop_s: float = 1.0
    """Delay of the event loop at which nothing further is taken; 10 % below it the limit falls."""

    admission_processes: Positive = 1
    """Downloaders that share the container, such as worker processes; the program sets it."""

    window: Positive = 4096
    """Requests that are received and not yet acknowledged, the credit on `requests`. A request is acknowledged when
    its page is durable, long after the fetch, so this is far above `concurrency`."""

    per_host: int = 1
    """Simultaneous fetches on one host key; a second guard behind the scheduler's rule. 0 = no limit."""

    per_address: int = 4
    """Simultaneous fetches on one server address: many names on one machine must not add up to a flood. 0 = no
    limit."""

    address_gap_s: float = 0.25
    """Time between two starts on one server address; a second guard behind the scheduler's rule. 0 = none."""

    networks: tuple[str, ...] = ()
    """Other limits for single networks: "10.0.0.0/8=16/0.05" = connections/gap in seconds. The same as the
    scheduler's: the downloader gives back a request that starts too early."""

    user_agent: str = ""
    """Value of User-Agent. Empty: `Nephila/<version> (+<contact>)`, or with an empty contact the project's page:
    `Nephila/<version> (+https://nephila.dev/bot)`."""

    contact: str = ""
    """URL or mail address in the default User-Agent, for webmasters. Empty: the project's page is sent. Without effect
    where user_agent is set."""

    headers: tuple[str, ...] = ()
    """Extra request headers: "Name: value" for every host replaces the default of that name; "HOST Name: value" is
    for one host, or with *.example.org for all hosts below a name."""

    cookies: str = ""
    """A file of cookies in Netscape's format, as browsers and curl export it. Each job starts with these cookies
    and keeps those that sites set."""

    secrets: str = ""
    """Directory of the files that `spec.login` of jobs and `auth` may name. Empty: no files are allowed."""

    auth: tuple[str, ...] = ()
    """HTTP authentication: "PREFIX basic USER SECRET" or "PREFIX bearer SECRET". PREFIX is a URL, or a host for all of
    its https URLs; SECRET is env:NEPHILA_SECRET_NAME or file:NAME, a file in `secrets`."""

    throttle: tuple[str, ...] = ()
    """Rates of resources beside the delay of their host: "PREFIX RATE". PREFIX is a host with an optional path, or *
    for each host; RATE is 500KB/s, 10/s, 30/min or 100/h. A host whose rate is reached waits."""

    middleware_dir: str = ""
    """Folder of Python files with `on_request`, `on_response` or `on_outcome`, which run with the rights of this
    process. Empty: none."""

    detect_blocks: bool = True
    """Recognise challenges, captchas, ban texts and login pages: such a fetch ends as failed(blocked), and its host is
    paused."""

    signature_key: str = ""
    """PEM file of an Ed25519 key that signs every request (Web Bot Auth, RFC 9421). Empty: requests are not signed."""

    signature_agent: str = ""
    """URL of the directory with the public key, sent and signed as Signature-Agent. Empty: none is sent."""

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

    slow_rate_bytes: float = 4096.0
    """Rate of a fetch in bytes per second, from the dial on, below which its host counts as slow: a page of 10 KB takes
    longer than 2 s then."""

    slow_after_s: float = 2.0
    """Time after the dial from which a fetch may count as slow; servers that compute a page need less."""

    slow_share: float = 0.3
    """Share of `concurrency` that slow hosts may hold while others need slots. A fetch that becomes slow beyond it is
    given back and waits for a slot of this share. 1 = all."""

    move_s: float = 2.5
    """Time that fetches may take when their partition moves to another member; then they are given back. Shorter
    than drain_s of the bus (3 s), so that the outcomes are published before the other member begins."""

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

    allow_private: bool = False
    """Connect to loopback, private and other non-global addresses, and to any port. For tests and intranets
    only."""

    host_map: tuple[str, ...] = ()
    """\"pattern=address[:port]" instead of DNS: exact names and `*.suffix`; the longest match counts."""

    raw_capture: bool = False
    """Fill request_head, response_head and wire_body of a Page, for the sinks warc and raw."""

    fetcher: str = "auto"
    """\"native" (I/O thread of the native core, least CPU), "aiohttp", or "auto" = native wherever the core has it."""

    page_threads: int = 0
    """Threads that read HTML pages beside the event loop (native fetcher, with the parser in the same process); 0 = as
    many as cores, at most 8, and none on one core, where the event loop reads them."""

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

    dns_resolver: str = "auto"
    """\"aiodns" (c-ares: many look-ups at once, hosts file and DNS, no search list), "system" (getaddrinfo in
    threads: search list, nsswitch.conf, mDNS), or "auto" = aiodns where it is installed."""

    dns_servers: tuple[str, ...] = ()
    """Name servers as "address[:port]", used in order. Empty: those of resolv.conf. For aiodns only."""

    dns_concurrency: Positive = 1000
    """Simultaneous look-ups; the others wait. A look-up without an answer ends after `dns_timeout_s`. The system's
    resolver makes 64 at most, a thread for each."""

    dns_ttl_s: float = 300.0
    """Longest time that an answer is used. A shorter TTL of its records applies, but at least 30 s."""

    dns_stale_s: float = 86_400.0
    """Time after its end that an answer is still used while its name servers fail (RFC 8767: 1 to 3 days). 0: never."""

    dns_negative_ttl_s: float = 30.0
    """Time that a name counts as nonexistent, at least; the minimum in the SOA record of its site, up to 900 s, if that
    is longer (aiodns). Other failures of a look-up are not cached."""

    dns_cache_size: Positive = 100_000
    """Names in the cache; about 400 bytes each. The name used least is evicted first."""

    dns_timeout_s: float = 15.0
    """Maximum time of one look-up with all its tries, and of the wait before it; then the request is given back."""

    browser_enabled: bool = False
    """Serve `requests.browser`: pages that a browser renders. Needs Playwright and Chromium
    (nephila browser install). Over Kafka such a member serves no other requests."""

    browser_executable: str = ""
    """Path or name of Chromium. Empty: chromium, chromium-browser or google-chrome of PATH, or that of
    `playwright install chromium`."""

    browser_processes: Positive = 1
    """Simultaneous browser processes; one keeps about one core busy."""

    browser_pages: Positive = 4
    """Simultaneous pages in one browser process, each in a context of its own; waits overlap."""

    browser_uses: int = 200
    """Pages after which a browser process is replaced, against leaks; 0 = never."""

    browser_memory_bytes: int = 2 << 30
    """Maximum memory of a browser with its child processes, held while it runs: a page with more than its share
    (divided by browser_pages) ends as failed(browser_memory), otherwise the browser is replaced; 0 = no limit."""

    browser_timeout_s: float = 45.0
    """Maximum time of a page in a browser: load, waits, steps and captures. Shorter than total_timeout_s."""

    browser_block: tuple[str, ...] = ("image", "font", "media")
    """Kinds of resources that a browser does not load: image, font, media. They do not change text and links."""

    browser_captures: str = ""
    """Directory of the files that jobs capture of rendered pages (spec.browser.capture). Empty: nothing is written; a
    crawl writes to captures/ in its output directory."""

    browser_verdicts: str = ""
    """File that stores which pages of jobs with render auto need a browser, over a restart. Empty: none; a crawl
    writes to its output directory."""

    browser_page_bytes: int = 64 << 20
    """Maximum size of all responses of a page in a browser, on the network."""

    browser_page_requests: int = 500
    """Maximum number of requests of a page in a browser."""

    browser_page_parallel: Positive = 6
    """Simultaneous requests of a page in a browser: as many as browsers open to one host."""

    browser_host_rate: float = 10.0
    """Requests per second that all pages in this program's browser send to one host, after a burst of 3 s. The pace of
    the host applies to pages; this limits what a page loads. 0 = no limit."""

    browser_sandbox: bool = True
    """Chromium's own sandbox. Without effect for root, where Chromium has none; off where a container forbids user
    namespaces."""

    proxies: tuple[str, ...] = ()
    """Sources of proxies: "http://user:password@host:port class=datacenter country=de" (or https://, socks5://),
    "file PATH", "list URL", "json URL path=data.items token=FILE"; see docs/proxies.md. Empty: requests are direct."""

    proxy_class: str = "any"
    """Proxies of jobs that name none: any, direct (none), a class as residential, a country as /de, or residential/de.
    Also of robots.txt, which belongs to no job."""

    no_proxy: tuple[str, ...] = ()
    """Hosts that never use a proxy: exact names, and *.example.org for hosts below a name."""

    proxy_slots: Positive = 4
    """Simultaneous requests through one proxy."""

    proxy_names: str = "local"
    """Where names are resolved: "local" (here; the proxy receives the checked address), "proxy" (there; here as well,
    for the egress guard and the pace), "proxy_only" (names that are unknown here are allowed; see docs/proxies.md)."""

    proxy_check_url: str = ""
    """A page that echoes the request, for checks: reachability, response time, anonymity, lies. Empty: only the
    connection to a proxy is tested."""

    proxy_check_https_url: str = ""
    """The same over https; a proxy that fails it serves only http. Empty: not tested."""

    proxy_check_s: float = 300.0
    """Time between two checks of a proxy that works; an evicted one is checked after 60 s, then after twice as long."""

    proxy_checks: Positive = 20
    """Simultaneous checks: they share the connection of the crawl."""

    proxy_collect_s: float = 60.0
    """Time between two reads of a source. Files are read only when they have changed."""

    proxy_pool: str = ""
    """File that stores proxies and their scores over a restart, readable for its owner only. Empty: none."""

    proxy_anonymous: bool = False
    """Use no proxy that shows this program's address to the server. Needs proxy_check_url."""

    proxy_second_share: float = 0.05
    """Share of the plain http pages of a proxy that are fetched once more through another proxy and compared: proxies
    that lie are found, and their pages fetched again. The first two pages of each proxy always are. 0: none."""

    proxy_country_header: str = ""
    """Header of the check's response with the country of the proxy, such as cf-ipcountry."""

    proxy_countries: str = ""
    """File of address ranges with their country: "first,last,DE" or "network,DE"."""

    proxy_give_up_s: float = 600.0
    """Time without a working proxy after which requests fail with the reason proxy; before, their hosts wait."""

    def agent(self) -> str:
        """The User-Agent as sent."""
        return self.user_agent or f"Nephila/{__version__} (+{self.contact or PROJECT_URL})"
