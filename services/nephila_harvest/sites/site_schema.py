"""The Site document as structs: a site, its directories, and the settings that both can have.

The settings are the fields of a job (`kernel.documents.job_schema.JobSpec`) and those of the plan (`Planned`).
Invariant: every setting is optional, because it may be inherited.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from msgspec import Meta, field
from nephila.kernel.documents import cron
from nephila.kernel.documents.field_types import (
    ApiVersion,
    Count,
    Instant,
    Interval,
    Metadata,
    Name,
    Url,
    check_duration,
    seconds,
)
from nephila.kernel.documents.job_schema import JobSpec, Quota, Recrawl, check_shared
from nephila.kernel.documents.struct_reader import Section
from nephila.scheduler.recrawl.policy import RecrawlPolicy

ADAPTIVE = "adaptive"
DEFAULT_BOUNDS = ["1h", "30d"]
SHORTEST_S = 1.0
"""A run takes some seconds, and no other run of the directory begins before its end."""


def frequency(text: str, time_zone: str = "") -> RecrawlPolicy:
    """The policy of a frequency: "0 6 * * *", "6h", "adaptive" or "adaptive 1h 14d". `time_zone`: of cron. Raises
    `ValueError`."""
    words = text.split()
    if words[:1] == [ADAPTIVE]:
        if len(words) not in (1, 3):
            raise ValueError("is not adaptive, or adaptive with its shortest and longest interval, as adaptive 1h 14d")
        shortest, longest = words[1:] or DEFAULT_BOUNDS
        if _interval_s(shortest) > _interval_s(longest):
            raise ValueError(f"has a shortest interval {shortest} above its longest {longest}")
        return RecrawlPolicy(Recrawl(min=shortest, max=longest))
    if len(words) > 1:
        return RecrawlPolicy(None, cron.Schedule(text, time_zone).expression, time_zone)
    if not re.fullmatch(r"[\d.]+(ms|s|m|h|d).*", text.strip(), re.ASCII):
        raise ValueError("is no frequency like 6h, '0 6 * * *', adaptive, or adaptive 1h 14d")
    _interval_s(text.strip())
    return RecrawlPolicy(Recrawl(every=text.strip()))


def _interval_s(text: str) -> float:
    interval_s = seconds(check_duration(text))
    if interval_s < SHORTEST_S:
        raise ValueError("is shorter than a second")
    return interval_s


def _frequency(text: str) -> str:
    frequency(text)
    return text


Frequency = Annotated[
    str,
    Meta(min_length=1, max_length=200, extra={"what": "a frequency like 6h or '0 6 * * *'", "check": _frequency}),
]
Score = Annotated[float, Meta(gt=0, le=1000)]


class Planned(Section, kw_only=True):
    """Settings of the plan, which a job does not have."""

    score: Score | None = None
    """Importance: order and share when there is more to do than time."""
    start: Instant | None = None
    """No run before this instant; runs at intervals are counted from it."""
    frequency: Frequency | None = None
    """When runs are due: a duration, five fields of cron in timeZone, adaptive, or adaptive with its bounds."""
    freshness: Interval | None = None
    """Objective: the last check of a watched page is at most this old; metrics and an alert show whether it is met."""
    top_pages: Count | None = None
    """New pages of one run at most; 0 = no limit."""
    paused: bool | None = None
    """No run begins; the run that is open goes on."""
    country: Annotated[str, Meta(max_length=100)] | None = None
    """Where the site is, for people and filters."""
    type: Annotated[str, Meta(max_length=100)] | None = None
    """Kind of site, as newspaper, for people and filters."""
    description: Annotated[str, Meta(max_length=2000)] | None = None
    """For people."""


OF_A_RUN = ("paused", "schedule", "recrawl", "weight", "site", "schemes")
"""Fields of a job that are no settings of a site: a run sets them, or they come from elsewhere."""
if TYPE_CHECKING:
    JobSettings = Planned
else:
    JobSettings = msgspec.defstruct(
        "JobSettings",
        [
            (job_field.name, job_field.type | None, None)
            for job_field in msgspec.structs.fields(JobSpec)
            if job_field.name not in OF_A_RUN
        ],
        bases=(Planned,),
        namespace={"TEXTS_OF": JobSpec},
        kw_only=True,
    )


class SiteSettings(JobSettings, kw_only=True):
    """Settings of a site or of a directory: those of the plan, and the fields of a job, each optional. Runs begin in
    the windows; without seeds the directory's url is watched."""

    quota: Quota | None = None
    """Of a directory: what its job may spend. Of a site: what all its directories may spend together; it is not
    inherited."""


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
