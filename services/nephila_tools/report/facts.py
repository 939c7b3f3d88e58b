"""The facts of a report: counts and lists from the tables, read once. Nothing is written or fetched.

Cost: each query reads every row's first page once, about 1 s per 100,000 rows; links are read for broken URLs only.
"""

from __future__ import annotations

import heapq
import json
import math
import re
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlsplit

from nephila.storage.ledgers.read_connection import ReadConnection, open_for_reading
from nephila.storage.read.reader import REQUISITE
from nephila.storage.source import Source

TOP: Final = 10
"""Rows of a list of pages or hosts."""
BROKEN: Final = 100
"""Broken URLs that are named."""
REFERRERS: Final = 3
"""Pages that are named for each of them."""
BINS: Final = 96
"""Steps of time in the chart at most."""
OUTCOMES: Final = ("stored", REQUISITE, "dropped", "denied", "failed")
DAY_S: Final = 86_400.0
STEPS: Final = (
    *(1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0),
    *(3600.0, 7200.0, 10_800.0, 21_600.0, 43_200.0, DAY_S),
)
"""Lengths of a step of time that a person reads at once."""
_FETCH_S: Final = re.compile(r'\{"fetch_s":"(\d{1,9}(?:\.\d{1,9})?)"')
"""First entry of the column meta, where the fetch was measured."""
_KIB: Final = 1024


@dataclass(slots=True)
class PageFact:
    """A page in a list."""

    url: str
    title: str
    value: float


@dataclass(slots=True)
class HostFact:
    """Rows of one host."""

    name: str
    outcomes: dict[str, int] = field(default_factory=dict)
    bytes: int = 0

    @property
    def total(self) -> int:
        """Rows of all outcomes."""
        return sum(self.outcomes.values())


@dataclass(slots=True)
class BrokenFact:
    """A URL that failed, and the pages that link to it."""

    url: str
    reason: str
    referrers: list[tuple[str, str]] = field(default_factory=list)
    """(page, text of the link), the first few."""
    total: int = 0
    """Pages that link to it."""


@dataclass(slots=True)
class Timeline:
    """Fetches that ended, by outcome, in steps of equal length."""

    start: float = 0.0
    step_s: float = 1.0
    counts: list[dict[str, int]] = field(default_factory=list)


@dataclass(slots=True)
class Facts:
    """The facts of a report."""

    outcomes: dict[str, int] = field(default_factory=dict)
    reasons: list[tuple[str, str, int]] = field(default_factory=list)
    """(outcome, reason, rows), the most first."""
    hosts: list[HostFact] = field(default_factory=list)
    hosts_total: int = 0
    hosts_stored: int = 0
    """Those with a stored page."""
    timeline: Timeline = field(default_factory=Timeline)
    first: float = 0.0
    last: float = 0.0
    fetches: int = 0
    bytes: int = 0
    sizes: list[tuple[str, int]] = field(default_factory=list)
    """(range in words, stored pages)."""
    depths: list[tuple[str, int]] = field(default_factory=list)
    types: list[tuple[str, int]] = field(default_factory=list)
    largest: list[PageFact] = field(default_factory=list)
    slowest: list[PageFact] = field(default_factory=list)
    """By seconds from the request to the last byte; empty where the rows have no time."""
    links_kept: bool = False
    links: int = 0
    broken: list[BrokenFact] = field(default_factory=list)
    broken_total: int = 0
    items: list[tuple[str, int, int]] = field(default_factory=list)
    """(rule, pages, items)."""
    changes: dict[str, int] = field(default_factory=dict)
    """Fetches of known pages by result: changed, same, gone."""

    @property
    def rows(self) -> int:
        """URLs that have ended."""
        return sum(self.outcomes.values())

    @property
    def stored(self) -> int:
        """Pages that are stored."""
        return self.outcomes.get("stored", 0)


def gather(source: Source, job: str | None) -> Facts:
    """The facts of a crawl, or of one job. Raises `UserError` where there is no table to read."""
    facts = Facts()
    with open_for_reading(source) as connection:
        query = _Query(connection, job)
        _outcomes(facts, query)
        _time(facts, query)
        _shapes(facts, query)
        _pages(facts, query)
        _broken(facts, query)
        _items(facts, query)
    return facts


class _Query:
    """Queries of one table, restricted to a job."""

    def __init__(self, connection: ReadConnection, job: str | None) -> None:
        self._connection, self._job = connection, job

    def __call__(self, text: str, **values: Any) -> list[Any]:
        """`{only}` becomes the job's term."""
        only = "job = :job" if self._job is not None else "1 = 1"
        return self._connection.execute(text.format(only=only), {"job": self._job, **values}).fetchall()


def _outcomes(facts: Facts, query: _Query) -> None:
    hosts: dict[str, HostFact] = {}
    # Hosts are distinguished by the first four bytes of url_key, MD5 of the host key.
    rows = query(
        "SELECT substr(url_key, 1, 8), outcome, reason, count(*), CAST(sum(bytes) AS bigint), min(url) FROM pages"
        " WHERE {only} GROUP BY 1, 2, 3"
    )
    reasons: dict[tuple[str, str], int] = defaultdict(int)
    for prefix, outcome, reason, count, size, url in rows:
        outcome = REQUISITE if reason == REQUISITE else outcome
        reasons[outcome, "" if outcome == "stored" else reason] += count
        facts.outcomes[outcome] = facts.outcomes.get(outcome, 0) + count
        host = hosts.setdefault(prefix, HostFact(host_of(url)))
        host.outcomes[outcome] = host.outcomes.get(outcome, 0) + count
        if outcome == "stored":
            host.bytes += size or 0
            facts.bytes += size or 0
    facts.reasons = sorted(((o, r, n) for (o, r), n in reasons.items()), key=lambda row: (-row[2], row))
    facts.hosts_total = len(hosts)
    facts.hosts_stored = sum("stored" in host.outcomes for host in hosts.values())
    facts.hosts = sorted(hosts.values(), key=lambda host: (-host.total, host.name))[:TOP]


def host_of(url: str) -> str:
    """The host of a URL as a person reads it."""
    try:
        return urlsplit(url).netloc.rpartition("@")[2].lower() or url
    except ValueError:
        return url


def _seconds(text: str | None) -> float:
    try:
        return datetime.fromisoformat(text).timestamp() if text else 0.0
    except ValueError:
        return 0.0


def _time(facts: Facts, query: _Query) -> None:
    ((count, first, last),) = query(
        "SELECT count(*), min(fetched_at), max(fetched_at) FROM fetches WHERE {only} AND fetched_at != ''"
    )
    facts.fetches, facts.first, facts.last = count, _seconds(first), _seconds(last)
    for change, number in query("SELECT change, count(*) FROM fetches WHERE {only} AND fetch_no > 1 GROUP BY change"):
        if change:
            facts.changes[change] = number
    if not count:
        return
    span = max(facts.last - facts.first, 1.0)
    # To the second, the minute or the hour: a few thousand groups for any number of fetches.
    digits, tail = (19, "Z") if span < 7_200 else (16, ":00Z") if span < 432_000 else (13, ":00:00Z")
    groups = query(
        f"SELECT substr(fetched_at, 1, {digits}), outcome, count(*) FROM fetches"
        " WHERE {only} AND fetched_at != '' GROUP BY 1, 2"
    )
    unit = {19: 1.0, 16: 60.0, 13: 3600.0}[digits]
    step = next((step for step in STEPS if step >= max(unit, span / BINS)), math.ceil(span / BINS / DAY_S) * DAY_S)
    steps = int(span / step) + 1
    facts.timeline = Timeline(facts.first, step, [{} for _ in range(steps)])
    for at, outcome, number in groups:
        index = min(max(int((_seconds(at + tail) - facts.first) / step), 0), steps - 1)
        bin_ = facts.timeline.counts[index]
        bin_[outcome] = bin_.get(outcome, 0) + number


def _shapes(facts: Facts, query: _Query) -> None:
    """How large, how deep and of which type the stored pages are."""
    bounds = [4, 16, 64, 256, 1024, 4096]
    names = ["< 4 KB", "4-16 KB", "16-64 KB", "64-256 KB", "256 KB-1 MB", "1-4 MB", "> 4 MB"]
    case = " ".join(f"WHEN bytes < {bound * _KIB} THEN {number}" for number, bound in enumerate(bounds))
    sizes = dict(
        query(
            f"SELECT CASE {case} ELSE {len(bounds)} END, count(*) FROM pages"
            " WHERE {only} AND outcome = 'stored' GROUP BY 1"
        )
    )
    facts.sizes = [(name, sizes.get(number, 0)) for number, name in enumerate(names)]
    depths = query("SELECT depth, count(*) FROM pages WHERE {only} AND outcome = 'stored' GROUP BY 1 ORDER BY 1")
    facts.depths = [(str(depth), count) for depth, count in depths[:12]]
    if rest := sum(count for _, count in depths[12:]):
        facts.depths.append((f"{depths[12][0]}+", rest))
    types = query(
        "SELECT content_type, count(*) FROM pages WHERE {only} AND outcome = 'stored'"
        " GROUP BY 1 ORDER BY 2 DESC LIMIT 8"
    )
    facts.types = [(name or "unknown", count) for name, count in types]


def _pages(facts: Facts, query: _Query) -> None:
    rows = query(
        "SELECT url, title, bytes FROM pages WHERE {only} AND outcome = 'stored' ORDER BY bytes DESC, url"
        f" LIMIT {TOP}"
    )
    facts.largest = [PageFact(*row) for row in rows]
    keys = query("SELECT job, url_key, substr(meta, 1, 32) FROM pages WHERE {only} AND outcome = 'stored'")
    timed = ((float(match[1]), job, key) for job, key, meta in keys if (match := _FETCH_S.match(meta)))
    for took_s, job, key in heapq.nlargest(TOP, timed):
        statement = "SELECT url, title FROM pages WHERE {only} AND job = :of AND url_key = :key"
        ((url, title),) = query(statement, of=job, key=key)
        facts.slowest.append(PageFact(url, title, took_s))


def _broken(facts: Facts, query: _Query) -> None:
    ((facts.links,),) = query("SELECT count(*) FROM links WHERE {only}")
    facts.links_kept = facts.links > 0
    ((facts.broken_total,),) = query("SELECT count(*) FROM pages WHERE {only} AND outcome = 'failed'")
    rows = query(
        "SELECT url_key, url, reason FROM pages WHERE {only} AND outcome = 'failed'"
        f" ORDER BY reason, url LIMIT {BROKEN}"
    )
    broken = {key: BrokenFact(url, reason) for key, url, reason in rows}
    if broken and facts.links_kept:
        # One pass over the links: the table has no index by target.
        marks = ", ".join(f"'{key}'" for key in broken if key.isalnum())
        links = query(
            f"SELECT l.to_key, p.url, l.anchor FROM (SELECT * FROM links WHERE {{only}} AND to_key IN ({marks})) AS l"
            " JOIN pages AS p ON p.job = l.job AND p.url_key = l.from_key ORDER BY p.url"
        )
        for key, url, anchor in links:
            fact = broken[key]
            fact.total += 1
            if len(fact.referrers) < REFERRERS:
                fact.referrers.append((url, anchor))
    facts.broken = sorted(broken.values(), key=lambda fact: (-fact.total, fact.reason, fact.url))


def _items(facts: Facts, query: _Query) -> None:
    facts.items = [
        (rule, pages, items)
        for rule, pages, items in query(
            "SELECT rule, count(DISTINCT url_key), count(*) FROM items WHERE {only} GROUP BY rule ORDER BY 3 DESC"
        )
    ]


def options_of(run: Any) -> list[tuple[str, str]]:
    """The options of the crawl as text, without those that may hold secrets (headers, cookies, passwords)."""
    options = run.options
    pairs = []
    for name in ("scope", "include", "exclude", "strategy", "max_pages", "max_depth", "max_time", "delay", "render"):
        value = options.get(name)
        if value not in (None, "", [], 0, 0.0, -1, False):
            pairs.append((name.replace("_", " "), json.dumps(value) if isinstance(value, list) else str(value)))
    if options.get("ignore_robots"):
        pairs.append(("robots.txt", "ignored"))
    if options.get("contact"):
        pairs.append(("contact", str(options["contact"])))
    return pairs
