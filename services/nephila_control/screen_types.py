"""Requests and answers of the operations that screens are made of: rows, items, hosts, counts and curves."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from nephila_control.requests import Request, Url

JobFilter = Annotated[str, Meta(max_length=1000, pattern=r"^[^\x00-\x1f]*$")]
"""Of this job only; empty: of all jobs."""
Search = Annotated[str, Meta(max_length=500, pattern=r"^[^\x00]*$")]
PageLimit = Annotated[int, Meta(ge=1, le=200)]
Word = Annotated[str, Meta(max_length=200, pattern=r"^[^\x00]*$")]


class ListPages(Request):
    """Rows, the newest first."""

    job: JobFilter = ""
    outcome: Literal["", "stored", "denied", "failed", "dropped"] = ""
    reason: Word = ""
    """Rows with this reason only."""
    search: Search = ""
    """Part of the URL or of the title; letters of ASCII in any case."""
    before: Annotated[int, Meta(ge=0, le=1 << 62)] = 0
    """Continue behind this row, the `next` of the answer before."""
    limit: PageLimit = 50


class SearchPages(Request):
    """Pages by their words, the best first."""

    query: Annotated[Search, Meta(min_length=1)]
    """Words that have to be in a page, "phrases", -without, prefix*, title:, url:, host:, since:, until:."""
    job: JobFilter = ""
    skip: Annotated[int, Meta(ge=0, le=200)] = 0
    """Number of pages that are left out; at most 200 pages are put in order."""
    limit: PageLimit = 20


class GetPage(Request):
    """One URL."""

    url: Annotated[Url, Meta(min_length=1)]
    job: JobFilter = ""


class GetScreenshot(Request):
    """The screenshot of a page that was rendered."""

    url: Annotated[Url, Meta(min_length=1)]
    job: JobFilter = ""


class GetBody(Request):
    """The body of a stored page."""

    url: Annotated[Url, Meta(min_length=1)]
    form: Literal["markdown", "source"] = "markdown"
    start: Annotated[int, Meta(ge=0, le=1 << 40)] = 0
    """Index of the first character."""
    limit: Annotated[int, Meta(ge=1, le=2_000_000)] = 200_000
    """Characters at most."""


class ListItems(Request):
    """Items in the order of job, page, rule and number, or of a field."""

    job: JobFilter = ""
    rule: Word = ""
    search: Search = ""
    """Part of the data; letters of ASCII in any case."""
    field: Word = ""
    """Dotted name of a field that is compared, as price.amount."""
    test: Literal["", "contains", "is", "not", "empty", "filled", "above", "below"] = ""
    """How the field is compared with `value`; above and below compare numbers."""
    value: Search = ""
    where: Annotated[str, Meta(max_length=4000, pattern=r"^[^\x00]*$")] = ""
    """Further comparisons that hold as well: a JSON list of [field, test, value], ten at most."""
    sort: Word = ""
    """Dotted name of a field, with - before it for the largest first: numbers, then texts, empty ones last."""
    after: Annotated[str, Meta(max_length=2000, pattern=r"^[^\x00]*$")] = ""
    """Continue behind this item, the `next` of the answer before."""
    limit: PageLimit = 50


class OfJob(Request):
    """One job, or all of them."""

    job: JobFilter = ""


SeriesRange = Literal["", "15m", "1h", "24h", "7d"]


class GetSeries(OfJob):
    """The curves of one job, or of all of them, over a time up to now."""

    range: SeriesRange = ""
    """Time of `samples`; empty: since the program started."""


class ListHosts(Request):
    """Hosts with queued URLs or with requests under way."""

    job: JobFilter = ""
    search: Search = ""
    """Part of the host's name."""
    name: Word = ""
    """This host alone, also one without a queue."""
    sort: Literal["next", "name", "queued", "delay", "latency", "errors", "rate"] = "next"
    """next: requests under way first, then by the instant of the next request. Others but name: the largest first."""
    limit: PageLimit = 50


class ChangeHost(Request):
    """Change the pace of a host for all jobs. A person cannot make a host faster than robots.txt and the jobs allow."""

    name: Annotated[str, Meta(min_length=1, max_length=300, pattern=r"^[^\x00-\x20/@?#]+$")]
    """Name of the host, with its port where that is not the usual one."""
    action: Literal["retry", "pause", "delay"]
    """retry: end the pause and the back-off; the host waits for its delay at most. pause: dispatch nothing for
    `seconds`. delay: leave at least `seconds` between two requests; 0 restores the delay of the jobs."""
    seconds: Annotated[float, Meta(ge=0, le=2_592_000)] = 0.0
    """Up to 30 days for a pause, up to one day for a delay."""


class PageRow(msgspec.Struct, kw_only=True):
    """A URL that has ended."""

    url: str
    url_key: str
    job: str
    outcome: str
    reason: str
    words: str
    """Meaning of the reason."""
    status: int
    """Status of HTTP; 0 without an answer."""
    title: str
    content_type: str
    bytes: int
    depth: int
    fetched_at: str
    """ISO 8601 in UTC."""
    fetch_no: int
    change: str
    """new, changed or same; empty where a page is not compared."""


class PageList(msgspec.Struct, kw_only=True):
    """Some rows."""

    pages: list[PageRow]
    next: int = 0
    """Pass it as `before` for older ones; 0: these were the oldest. A page with fewer rows than `limit` may have
    a next one: a request looks at a bounded number of fetches."""


class Fragment(msgspec.Struct, kw_only=True):
    """A part of a passage, as text."""

    text: str
    hit: bool = False
    """True for a word of the search."""


class SearchHit(msgspec.Struct, kw_only=True):
    """A page of a search."""

    url: str
    url_key: str
    job: str
    title: list[Fragment]
    lang: str
    fetched_at: str
    passage: list[Fragment]
    """The part of the text with the most words of the search."""


class SearchResults(msgspec.Struct, kw_only=True):
    """Some pages of a search."""

    hits: list[SearchHit]
    total: int
    """Pages that were found, 1,000 at most."""
    looked_at: int
    """Number of the newest pages that were searched, if the search has frequent words; 0 if all were."""
    behind: int
    """Fetches that the index has not read yet. It reads on."""


class Link(msgspec.Struct, kw_only=True):
    """A link of a page."""

    url: str
    text: str
    outcome: str
    """Outcome of the row of the target; empty without a row."""


class Screenshot(msgspec.Struct, kw_only=True):
    """A picture."""

    content_type: str
    body: bytes
    """Base64 in JSON."""


class LinksIn(msgspec.Struct, kw_only=True):
    """Links that lead to a page."""

    links: list[Link]
    """The first 500; the URL and the outcome are those of the page with the link."""
    complete: bool
    """False if there are more links, or not all stored links were looked at."""


class PageItem(msgspec.Struct, kw_only=True):
    """An item of a page."""

    rule: str
    version: int
    data: Any


class PageVersion(msgspec.Struct, kw_only=True):
    """The text of a page before its last change."""

    fetch_no: int
    changed_at: str
    fetched_at: str
    title: str
    text: str


class PageDetail(msgspec.Struct, kw_only=True):
    """One URL with all that is stored about it."""

    page: PageRow
    final_url: str
    lang: str
    sha256: str
    first_at: str
    changed_at: str
    near_copy_of: str
    meta: dict[str, Any]
    text: str
    """First 200,000 characters of the text."""
    text_chars: int
    """Characters of the whole text."""
    links: list[Link]
    """First 500 links."""
    items: list[PageItem]
    """First 100 items."""
    fetches: list[dict[str, Any]]
    """The last 100 rows of the table `fetches`, the newest last."""
    previous: PageVersion | None
    screenshot: bool = False
    """Whether there is one; see the operation get_screenshot."""


class Body(msgspec.Struct, kw_only=True):
    """A part of a body as text."""

    url: str
    content_type: str
    fetched_at: float
    """Seconds since 1970 UTC; 0: not known."""
    text: str
    chars: int
    """Characters of the whole text."""


class Item(msgspec.Struct, kw_only=True):
    """An item."""

    job: str
    url: str
    url_key: str
    rule: str
    rule_version: int
    ordinal: int
    data: Any


class ItemList(msgspec.Struct, kw_only=True):
    """Some items."""

    items: list[Item]
    rules: list[str]
    """Rules that have items."""
    next: str = ""
    """Pass it as `after` for more; empty: these were the last."""
    complete: bool = True
    """False if there are more items than the 20,000 that were put in order."""


class OutcomeCount(msgspec.Struct, kw_only=True):
    """Fetches that ended alike."""

    outcome: str
    reason: str
    words: str
    fetches: int


class TimeBin(msgspec.Struct, kw_only=True):
    """Fetches of one step of time."""

    at: int
    """Begin of the step, in seconds since 1970 UTC."""
    outcomes: dict[str, int]


class OutcomeCounts(msgspec.Struct, kw_only=True):
    """How the fetches ended, the most frequent first. A URL that was fetched again counts for each fetch."""

    counts: list[OutcomeCount]
    step_s: int
    """Length of a step of the timeline."""
    timeline: list[TimeBin]
    """Steps without a fetch are left out."""
    complete: bool
    """False while the server reads the table; the next answer counts more."""


class Sample(msgspec.Struct, kw_only=True):
    """The counts of an instant."""

    at: float
    """Seconds since 1970 UTC."""
    queued: int
    in_flight: int
    stored: int
    denied: int
    failed: int
    dropped: int


class Series(msgspec.Struct, kw_only=True):
    """The counts over the range of the request, in equal steps, the oldest first; the last sample is the present."""

    samples: list[Sample]
    step_s: float
    recent: list[Sample] = []
    """The last eleven minutes in steps of 10 s; longer steps if nothing ended meanwhile."""


HostWait = Literal[
    "in_flight", "ready", "held", "delay", "refused", "robots", "longer", "address", "job", "budget", "domain", "idle"
]
"""in_flight: a request is under way. ready: the next slot is its own. held: a person has paused it. delay: the
pause between two requests. refused: the server refused a request or did not answer. robots: robots.txt cannot be read.
longer: a longer pause of another cause. address: hosts of one server address take turns. job: its jobs can take no more
now (paused, a spent page budget, a quota or a window). budget: the budget of its jobs for this host is spent. domain:
its domain is over its budget. idle: no URL of it is queued."""


class RecentFetches(msgspec.Struct, kw_only=True):
    """The last 20 fetches of a host, without robots.txt, while the host is in memory."""

    fetches: int = 0
    """Number of the fetches that the others are about; 0: nothing is known."""
    latency_p50_s: float = 0.0
    latency_p95_s: float = 0.0
    last_status: int = 0
    """Status of HTTP; 0 without an answer."""
    error_share: float = 0.0
    """Share without an answer, or with a status of 400 and more."""
    rate: float = 0.0
    """Fetches per second, from the first of them until now."""


class Host(msgspec.Struct, kw_only=True):
    """A host with queued URLs or with requests under way."""

    name: str
    why: HostWait
    wait_s: float
    """Seconds until its next request; 0: it waits for no instant."""
    queued: int
    in_flight: int
    delay_s: float
    """Pause between two requests; 0 where it is not in memory."""
    address: str
    jobs: list[str]
    """Jobs with URLs queued there, the first five."""
    recent: RecentFetches = msgspec.field(default_factory=RecentFetches)
    domain: str = ""
    """The budget of the domain that holds the host back, in words."""
    rank: int = 0
    """Rank of its domain by `domains.ranks`, the highest one of its jobs; 0: none."""
    least_delay_s: float = 0.0
    """Shortest pause between two requests that a person has set; 0 where there is none."""
    held_s: float = 0.0
    """Seconds until the end of the pause that a person has set."""


class HostChanged(msgspec.Struct, kw_only=True):
    """The pace of a host is changed."""

    name: str
    action: str
    seconds: float


class HostList(msgspec.Struct, kw_only=True):
    """Some hosts in the order of the request."""

    hosts: list[Host]
    total: int
    """Hosts that were looked at; the search is among them."""
    partitions: int = 0
    """Partitions whose schedulers were asked; 0: one program, which has all hosts."""
    answered: int = 0
    """Those that answered in time. Hosts of the others are missing in this list."""
