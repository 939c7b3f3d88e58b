"""The CrawlJob document as structs: keys, types, limits, defaults and one text about each key.

Invariant: no other module lists the keys; docs/crawljob.schema.json is generated from these structs. How a document
becomes a job: `job_document`.
"""

from typing import Annotated, Literal, get_args

from msgspec import Meta, field

from nephila.kernel.documents import cron, fetch_windows
from nephila.kernel.documents.browser_schema import Browser, Selector
from nephila.kernel.documents.budget_schema import DomainBudget, HostBudget
from nephila.kernel.documents.field_types import (
    ApiVersion,
    Count,
    Duration,
    Expression,
    FileName,
    Instant,
    Interval,
    JobOwner,
    Metadata,
    Name,
    TenantName,
    Text,
    Url,
    seconds,
)
from nephila.kernel.documents.login_schema import Login
from nephila.kernel.documents.scheme_schema import Schemes
from nephila.kernel.documents.struct_reader import Section
from nephila.kernel.messages import NearCopies, Render, ScopeMode
from nephila.kernel.pages.requisites import MAX_REQUISITES
from nephila.native import UrlError, parse_url

Mode = Literal["host", "domain", "prefix", "any"]
MODES: dict[str, ScopeMode] = {
    "host": ScopeMode.UNSPECIFIED,
    "domain": ScopeMode.DOMAIN,
    "prefix": ScopeMode.PREFIX,
    "any": ScopeMode.ANY,
}
Order = Literal["bfs", "dfs", "best-first"]
LinkKind = Literal["canonical", "alternate", "feed", "next", "form", "script", "route", "json"]
FOLLOW = get_args(LinkKind)
MainTextName = Literal["density", "trafilatura", "all", "none"]
NearCopiesMode = Literal["store", "mark", "skip"]
NEAR_COPIES: dict[str, NearCopies] = {
    "store": NearCopies.UNSPECIFIED,
    "mark": NearCopies.MARK,
    "skip": NearCopies.SKIP,
}
RenderMode = Literal["never", "auto", "always"]
RENDERS: dict[str, Render] = {"never": Render.NEVER, "auto": Render.AUTO, "always": Render.ALWAYS}
Sink = Literal[
    "sqlite",
    "postgres",
    "jsonl",
    "markdown",
    "warc",
    "raw",
    "parquet",
    "dataset",
    "chunks",
    "opensearch",
    "items",
    "search",
]
_SINKS_LATER = ("s3", "kafka", "elasticsearch", "mongodb", "stdout")


def _schedule(text: str) -> str:
    return cron.Schedule(text).expression


def _time_zone(text: str) -> str:
    return cron.zone(text).key


def _window(text: str) -> str:
    return fetch_windows.window(text).text


def _host_pattern(text: str) -> str:
    below = "*." if text.startswith("*.") else ""
    try:
        parts = parse_url(f"http://{text.removeprefix(below)}/")
    except UrlError:
        parts = None
    if parts is None or parts.path_query != "/" or "*" in parts.host_key or "@" in text:
        raise ValueError("is no host like a.example, a.example:8080 or *.example.org")
    return below + parts.host_key


Schedule = Annotated[
    str,
    Meta(
        max_length=200,
        extra={"what": "a schedule like '0 6 * * *'", "check": _schedule},
        extra_json_schema={"pattern": r"^ *(?:[!-~]+ +){4}[!-~]+ *$"},
    ),
]
TimeZone = Annotated[
    str, Meta(min_length=1, max_length=64, extra={"what": "a time zone like Europe/Paris", "check": _time_zone})
]
Window = Annotated[
    str,
    Meta(
        max_length=20,
        extra={"what": "hours like 22:00-06:00", "check": _window},
        extra_json_schema={"pattern": fetch_windows.PATTERN},
    ),
]
Windows = Annotated[list[Window], Meta(max_length=24)]
HostPattern = Annotated[str, Meta(min_length=1, max_length=300, extra={"what": "a host", "check": _host_pattern})]
Expressions = Annotated[list[Expression], Meta(max_length=1000)]
ProxyClass = Annotated[
    str,
    Meta(
        max_length=40,
        pattern=r"^([a-z0-9][a-z0-9_-]*)?(/[a-z]{2})?$",
        extra={"what": "a class of proxies like residential, /de or residential/de"},
    ),
]
_RANGE = r"(?:[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*|\*)(?:;q=(?:0(?:\.\d{1,3})?|1(?:\.0{1,3})?))?"
Language = Annotated[
    str,
    Meta(
        max_length=200,
        pattern=rf"^(?:{_RANGE}(?:, ?{_RANGE})*)?$",
        extra={"what": "languages like de or 'de, en;q=0.5'"},
    ),
]
ItemFieldName = Annotated[str, Meta(min_length=1, max_length=300)]
QuotaPer = Literal["run", "day", "month"]
PerHost = Annotated[int, Meta(ge=1, le=1000)]


class Seed(Section):
    """Where a crawl begins: a URL, or a map with exactly one key."""

    SHORT = True
    ONLY_ONE = True
    url: Url = ""
    """A page."""
    file: FileName = ""
    """A file of URLs, one a line, in the directory of the document."""
    sitemap: Url = ""
    """A sitemap or an index of sitemaps, plain or gzip."""
    feed: Url = ""
    """An RSS or Atom feed."""

    @property
    def source(self) -> tuple[str, str]:
        """The key and its value."""
        return next((name, value) for name in self.__struct_fields__ if (value := getattr(self, name)))


class Scope(Section):
    """Which URLs belong to the job."""

    mode: Mode = "host"
    """How far from the hosts of the seeds links are followed."""
    include: Expressions = field(default_factory=list)
    """RE2, searched in the full URL. If the list is not empty, a link must match one of them."""
    exclude: Expressions = field(default_factory=list)
    """RE2, searched in the full URL. A URL that matches one of them is not fetched."""
    max_depth: Annotated[int, Meta(ge=-1, le=10**6)] = -1
    """Maximum number of links from a seed; 0 = seeds only, -1 = no limit."""
    max_pages: Count = 0
    """Maximum number of stored pages; 0 = no limit."""
    links_per_page: Count = 0
    """New links of one page, sitemap or feed that are taken: the first ones, with strategy best-first the most relevant
    ones. The others end as dropped(top_of_page). 0 = no limit."""
    links_per_level: Count = 0
    """New links of one depth that are taken in a run (from one refreshAt or other change of the document to the next).
    The others end as dropped(top_of_level). 0 = no limit."""


class Host(Section):
    """Politeness towards one host."""

    host: HostPattern
    """A host, or *.example.org for all hosts below a name."""
    delay: Duration | None = None
    """As politeness.delay."""
    concurrency: PerHost | None = None
    """As politeness.concurrencyPerHost."""


class Politeness(Section):
    """The load that the job puts on hosts."""

    delay: Duration = "1s"
    """Time between the end of a fetch and the next start on the same host."""
    concurrency_per_host: PerHost = 1
    """Simultaneous fetches on one host."""
    respect_robots: bool = True
    """Fetch robots.txt and obey it."""
    adaptive: bool = False
    """The delay grows with the time that a fetch takes."""
    hosts: Annotated[list[Host], Meta(max_length=10_000)] = field(default_factory=list)
    """Other values for single hosts; the first entry that matches a host counts."""


class Recrawl(Section):
    """How often pages are fetched again. Left out: never."""

    min: Interval | None = None
    """Shortest interval. Between min and max the interval follows the page's rate of change."""
    max: Interval | None = None
    """Longest interval."""
    every: Interval | None = None
    """A fixed interval instead of min and max."""
    monitor: bool = False
    """Only seeds are fetched again; a new page is fetched once."""
    gone_after: Annotated[int, Meta(ge=1, le=100)] = 3
    """Answers of 404 or 410 in a row after which a page counts as gone."""
    refresh_at: Instant | None = None
    """Pages last fetched before this instant are fetched again at it, once. A later document moves it."""
    freshness: Interval | None = None
    """Objective: the last check of a watched page is at most this old. It changes no interval; metrics and an alert
    show whether it is met."""

    def __post_init__(self) -> None:
        if (self.min is None) != (self.max is None):
            raise ValueError("it needs both min and max, or every")
        if self.min is not None and self.max is not None and seconds(self.min) > seconds(self.max):
            raise ValueError(f"min {self.min} is longer than max {self.max}")
        if self.every is not None and self.min is not None:
            raise ValueError("every and min and max exclude each other")
        shortest = self.every or self.min
        if self.freshness is not None and shortest is not None and seconds(self.freshness) < seconds(shortest):
            raise ValueError(f"freshness {self.freshness} is shorter than the shortest interval, {shortest}")


class Quota(Section):
    """What may be spent in a period. When it is used up, no URL is fetched until the next period; the queue is kept."""

    pages: Count = 0
    """Fetches of pages; 0 = no limit."""
    bytes: Annotated[int, Meta(ge=0, le=10**18)] = 0
    """Bytes received from the network; 0 = no limit."""
    browser_seconds: Count = 0
    """Time in a browser, summed over pages; 0 = no limit."""
    per: QuotaPer = "run"
    """Period: run (the whole job, or from one refreshAt to the next), day or month (UTC)."""


class SiteOfJob(Section):
    """The site that a job belongs to. `nephila sites` writes it."""

    name: Name
    """Name of the site."""
    quota: Quota = field(default_factory=Quota)
    """A quota of all jobs of the site together, per day or month. It is the same in all of them."""

    def __post_init__(self) -> None:
        check_shared(self.quota)


class Traps(Section):
    """When a part of a site counts as a trap."""

    off: bool = False
    """No part of a site counts as a trap."""
    cap_fetches: Annotated[int, Meta(ge=1, le=10**9)] = 100
    """Fetches below a path prefix without new content that are always allowed."""
    cap_share: Annotated[float, Meta(gt=0, le=1)] = 0.05
    """Share of the host's fetches above which such a prefix is closed."""


class Parse(Section):
    """What is taken from pages."""

    follow: Annotated[list[LinkKind], Meta(max_length=8)] = field(default_factory=list)
    """Links in addition to anchors and frames: of <link> canonical, alternate (other languages), feed, next; form (GET,
    with its default values); script (addresses in quotes, onclick); json (of JSON documents); route (#/ and #! of
    single-page applications are part of a URL)."""
    nofollow: Literal["follow", "skip"] = "follow"
    """Follow or skip links with rel nofollow, ugc or sponsored."""
    main_text: MainTextName = "density"
    """The text of a page: density (the text without navigation and boilerplate), trafilatura (by that library, where
    it is installed), all (all visible text), none (none is stored; a later fetch compares
    all visible text)."""
    near_copies: NearCopiesMode = "store"
    """Pages whose text is nearly that of another page of the job: store (no look-up), mark (stored; the row names the
    other page), skip (not stored; the URL ends as dropped(near_copy))."""
    requisites: Annotated[int, Meta(ge=0, le=MAX_REQUISITES)] = 0
    """Requisites (styles, pictures, scripts, fonts, icons) fetched at most per page, for archives; they need the sink
    warc. 0 = none."""


class Ignore(Section):
    """What differs at each fetch and is no change of a page, as a counter of visitors. The row has the whole text."""

    expressions: Annotated[list[Expression], Meta(max_length=100)] = field(default_factory=list)
    """RE2; what they match is left out of the text that is compared."""
    selectors: Annotated[list[Selector], Meta(max_length=100)] = field(default_factory=list)
    """CSS; the elements that they match are left out of it. For pages of at most 256 KiB."""
    only_fields: Annotated[list[ItemFieldName], Meta(max_length=100)] = field(default_factory=list)
    """Dotted names of item fields, as price.amount. A page with items has changed when one of these has; its text is
    not compared."""


class Changes(Section):
    """When a page counts as changed: in the change feed, for webhooks, and for the interval of recrawl."""

    ignore: Ignore = field(default_factory=Ignore)
    """What is no change."""


class SinkEntry(Section):
    """One output of the job."""

    type: Annotated[Sink, Meta(extra={"later": _SINKS_LATER})]
    """The format. A database, sqlite or postgres, is always written."""
    secret_ref: Name = ""
    """For postgres in a cluster: the secret with its URL. Elsewhere NEPHILA_STORAGE__STORE holds the URL."""


class JobSpec(Section, kw_only=True):
    """The whole desired state of a job."""

    paused: bool = False
    """No URL of the job is fetched."""
    seeds: Annotated[list[Seed], Meta(extra_json_schema={"maxItems": 50_000})] = field(default_factory=list)
    """Where to start: URLs, files, sitemaps, feeds. At least one, unless the job has schemes."""
    scope: Scope = field(default_factory=Scope)
    """Which URLs belong to the job."""
    strategy: Order = "bfs"
    """Order of the URLs of a host."""
    keywords: Annotated[list[Text], Meta(max_length=1000)] = field(default_factory=list)
    """Words and phrases that best-first prefers."""
    politeness: Politeness = field(default_factory=Politeness)
    """The load that the job puts on hosts."""
    render: RenderMode = "never"
    """Which pages a browser renders: never, always, or auto (those whose content needs it, as samples show). With auto
    and always, routes (#/ and #!) are part of a URL, as with follow: [route]."""
    browser: Browser = field(default_factory=Browser)
    """How pages are rendered."""
    schedule: Schedule = ""
    """When all pages are due again: five fields of cron, in the zone of timeZone."""
    time_zone: TimeZone = cron.UTC
    """IANA name of the time zone of schedule and windows. Left out: UTC."""
    windows: Windows = field(default_factory=list)
    """Hours of the day in which URLs are fetched, in the zone of timeZone: 22:00-06:00. Outside of them the job waits
    and keeps its queue. Left out: at all hours."""
    recrawl: Recrawl | None = None
    """How often pages are fetched again. Left out: never."""
    host_budget: HostBudget = field(default_factory=HostBudget)
    """Limits of what the job spends on one host."""
    domains: DomainBudget = field(default_factory=DomainBudget)
    """Limits of what the job spends on one registrable domain, with scope any."""
    traps: Traps = field(default_factory=Traps)
    """When a part of a site counts as a trap."""
    weight: Annotated[float, Meta(gt=0, le=1000)] = 1.0
    """Share of the fetches relative to other jobs; with a tenant, to its other jobs."""
    tenant: TenantName = ""
    """The tenant that the job belongs to. The scheduler's setting tenants has its quota and its share."""
    owner: JobOwner = ""
    """Person or team that answers for the job, as crawl-team@example.org; lists are filtered by it."""
    quota: Quota = field(default_factory=Quota)
    """What the job may spend in a period."""
    site: SiteOfJob | None = None
    """The site that the job belongs to."""
    sitemaps: bool = False
    """Sitemaps of the seeds' hosts are seeds as well."""
    links: bool = False
    """The links of each page are stored in the table links."""
    record_links: bool = False
    """New links are recorded with their text and not fetched: rows with the reason link_recorded, new in the change
    feed. Only seeds are fetched."""
    parse: Parse = field(default_factory=Parse)
    """What is taken from pages."""
    changes: Changes = field(default_factory=Changes)
    """When a page counts as changed."""
    cookies: bool = False
    """Cookies of sites are kept and sent back; always so with login."""
    login: Login | None = None
    """How to log in to a site before its pages are fetched."""
    proxy_class: ProxyClass = ""
    """Proxies of the job: any, direct (none), a class as residential, a country as /de, or residential/de. Left out:
    the downloader's setting proxies.default."""
    language: Language = ""
    """Accept-Language of the requests for pages, as de or 'de, en;q=0.5'. A header of the downloader's settings
    comes before it."""
    referer: Url = ""
    """Referer of the requests for pages: some servers answer only readers that come from one of their pages. A header
    of the downloader's settings comes before it."""
    max_page_bytes: Annotated[int, Meta(ge=0, le=1 << 30)] = 0
    """A larger page ends as failed(too_large); 0 = the downloader's limit."""
    rules: Annotated[list[Name], Meta(max_length=10_000)] = field(default_factory=list)
    """Names of ParseRules. Left out: generic extraction."""
    sinks: Annotated[list[SinkEntry], Meta(max_length=20)] = field(default_factory=list)
    """Outputs in addition to the database."""
    schemes: Schemes | None = None
    """Keyword schemes; their searches are seeds. `nephila schemes apply` writes them."""

    def __post_init__(self) -> None:
        if self.login is not None and self.login.steps and self.render == "never":
            raise ValueError("its steps need a browser: set spec.render to always, or auto", "login")
        if self.time_zone != cron.UTC and not (self.schedule or self.windows):
            raise ValueError("it is the zone of schedule and windows, and neither is given", "timeZone")
        if self.recrawl is None:
            return
        if self.recrawl.every is not None and self.schedule:
            raise ValueError("every and schedule exclude each other", "recrawl")
        frequencies = (self.recrawl.every, self.recrawl.min, self.recrawl.refresh_at, self.schedule or None)
        if all(value is None for value in frequencies):
            raise ValueError("it has no frequency; give min and max, every, refreshAt, or spec.schedule", "recrawl")


def check_shared(quota: Quota | None) -> None:
    """Raise `ValueError` for a quota of several jobs whose period is a run: each job has runs of its own."""
    if quota is not None and quota != Quota() and quota.per == "run":
        raise ValueError("a quota of a site is per day or per month", "quota")


class CrawlJob(Section):
    """A crawl: the whole desired state of a job. Generated by tools/schemas.py; do not edit."""

    api_version: ApiVersion
    """Version of the format."""
    kind: Literal["CrawlJob"]
    """Kind of the document."""
    metadata: Metadata
    """The name of the job is part of the key of its rows."""
    spec: JobSpec
    """The whole desired state."""

    def __post_init__(self) -> None:
        if not self.spec.seeds and self.spec.schemes is None:
            raise ValueError("it has no seeds", "spec")
