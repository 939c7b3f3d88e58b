"""The Site document as structs: a site, its directories, and the settings that both can have.

A setting has the key and the type of the CrawlJob document (`kernel.documents.job_schema`) where that has it. New here
are score, start, frequency and topPages. Invariant: every setting is optional, because it may be inherited.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from msgspec import Meta, field

from nephila.kernel.documents import cron
from nephila.kernel.documents.browser_schema import Browser
from nephila.kernel.documents.field_types import (
    ApiVersion,
    Count,
    Instant,
    Interval,
    Metadata,
    Name,
    Text,
    Url,
    check_duration,
    seconds,
)
from nephila.kernel.documents.job_schema import (
    HostBudget,
    Language,
    Login,
    Order,
    Parse,
    Politeness,
    ProxyClass,
    Quota,
    RenderMode,
    Scope,
    Seed,
    SinkEntry,
    TenantName,
    TimeZone,
    Traps,
    Windows,
    check_shared,
)
from nephila.kernel.documents.struct_reader import Section
from nephila.kernel.messages import Recrawl
from nephila.scheduler.recrawl.policy import MAX_S, MIN_S

ADAPTIVE = "adaptive"
SHORTEST_S = 1.0
"""A run takes some seconds, and no other run of the directory begins before its end."""


def frequency(text: str, time_zone: str = "") -> Recrawl:
    """The policy of a frequency: "0 6 * * *", "6h", "adaptive" or "adaptive 1h 14d". `time_zone`: of cron. Raises
    `ValueError`."""
    words = text.split()
    if words[:1] == [ADAPTIVE]:
        if len(words) not in (1, 3):
            raise ValueError("is not adaptive, or adaptive with its shortest and longest interval, as adaptive 1h 14d")
        shortest, longest = map(_interval_s, words[1:]) if len(words) > 1 else (MIN_S, MAX_S)
        if shortest > longest:
            raise ValueError(f"has a shortest interval {words[1]} above its longest {words[2]}")
        return Recrawl(min_s=shortest, max_s=longest)
    if len(words) > 1:
        return Recrawl(cron=cron.Schedule(text, time_zone).expression, time_zone=time_zone)
    if not re.fullmatch(r"[\d.]+(ms|s|m|h|d).*", text.strip(), re.ASCII):
        raise ValueError("is no frequency like 6h, '0 6 * * *', adaptive, or adaptive 1h 14d")
    return Recrawl(every_s=_interval_s(text.strip()))


def _interval_s(text: str) -> float:
    found = seconds(check_duration(text))
    if found < SHORTEST_S:
        raise ValueError("is shorter than a second")
    return found


def _frequency(text: str) -> str:
    frequency(text)
    return text


Frequency = Annotated[
    str,
    Meta(min_length=1, max_length=200, extra={"what": "a frequency like 6h or '0 6 * * *'", "check": _frequency}),
]
Score = Annotated[float, Meta(gt=0, le=1000)]


class SiteSettings(Section, kw_only=True):
    """Settings of a site or of a directory."""

    score: Score | None = None
    """Importance: order and share when there is more to do than time."""
    start: Instant | None = None
    """No run before this instant; runs at intervals are counted from it."""
    frequency: Frequency | None = None
    """When runs are due: a duration, five fields of cron, adaptive, or adaptive with its bounds."""
    time_zone: TimeZone | None = None
    """IANA name of the time zone of a frequency in cron, and of windows. Left out: UTC."""
    windows: Windows | None = None
    """Hours of the day in which runs begin and URLs are fetched. Left out: all."""
    freshness: Interval | None = None
    """Objective: the last check of a watched page is at most this old; metrics and an alert show whether it is met."""
    top_pages: Count | None = None
    """New pages of one run at most; 0 = no limit."""
    seeds: Annotated[list[Seed], Meta(min_length=1, max_length=50_000)] | None = None
    """Pages that are watched. Left out: the directory's url."""
    scope: Scope | None = None
    strategy: Order | None = None
    keywords: Annotated[list[Text], Meta(max_length=1000)] | None = None
    politeness: Politeness | None = None
    render: RenderMode | None = None
    browser: Browser | None = None
    host_budget: HostBudget | None = None
    tenant: TenantName | None = None
    quota: Quota | None = None
    """Of a directory: what its job may spend. Of a site: what all its directories may spend together; it is not
    inherited."""
    traps: Traps | None = None
    sitemaps: bool | None = None
    links: bool | None = None
    parse: Parse | None = None
    cookies: bool | None = None
    login: Login | None = None
    proxy_class: ProxyClass | None = None
    language: Language | None = None
    max_page_bytes: Annotated[int, Meta(ge=0, le=1 << 30)] | None = None
    rules: Annotated[list[Name], Meta(max_length=10_000)] | None = None
    sinks: Annotated[list[SinkEntry], Meta(max_length=20)] | None = None


class Directory(SiteSettings, kw_only=True):
    """A part of a site that is harvested by runs of its own."""

    name: Name
    """Unique in its site. SITE.DIRECTORY is the name of its job."""
    url: Url
    """The settings hold for URLs below this prefix."""


class SiteSpec(SiteSettings, kw_only=True):
    """A site: settings of its directories, and the directories."""

    url: Url = ""
    """The settings of the site also hold for URLs below this prefix that are in no directory."""
    inherits: Name = ""
    """Another site whose settings hold where this site has none. The site `default` is inherited by all others."""
    directories: Annotated[list[Directory], Meta(max_length=100_000)] = field(default_factory=list)

    def __post_init__(self) -> None:
        check_shared(self.quota)


class Site(Section):
    """A site and its directories."""

    api_version: ApiVersion
    kind: Literal["Site"]
    metadata: Metadata
    spec: SiteSpec
