"""Requests and answers of the operations on audit samples, and on frequencies of recrawls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from msgspec import Meta
from nephila.kernel.documents.field_types import Duration

from nephila_control.requests import Request
from nephila_control.screen_types import JobFilter, Word

if TYPE_CHECKING:
    from nephila_harvest.audit.precision import Interval

MAX_SIZE = 100_000
"""Rows of a sample, at most."""
SampleName = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f/]+$")]
SampleKind = Literal["pages", "items", "links"]


class DrawSample(Request):
    """A stratified sample of stored pages, of items, or of links whose target is not stored. Pages and items of a crawl
    with more fetches are drawn from 8,000 of them, or four times the size, which the seed and the URLs choose; sizes
    of strata are then estimates. `nephila audit sample` draws from all."""

    sample: Annotated[str, Meta(max_length=200, pattern=r"^[^\x00-\x1f/]*$")] = ""
    """Name of the sample; an empty name is the instant."""
    kind: SampleKind = "pages"
    size: Annotated[int, Meta(ge=1, le=MAX_SIZE)] = 300
    by: Literal["directory", "rule", "job", "reason"] = "directory"
    """Kind of the strata."""
    seed: Word = "nephila"
    """The same seed draws the same pages."""
    job: JobFilter = ""


class GetSample(Request):
    """A sample, and one of its rows."""

    sample: SampleName
    number: Annotated[int, Meta(ge=0, le=MAX_SIZE)] = 0
    """Number of a row; 0: the first one without a label, in the order of labelling: the strata in turn."""


class LabelRow(Request):
    """A verdict on one row of a sample. An earlier verdict on the same version of the page or item is replaced."""

    sample: SampleName
    number: Annotated[int, Meta(ge=1, le=MAX_SIZE)]
    version: Word
    """Version of the row that was shown."""
    verdict: Literal["right", "wrong"]
    reason: Annotated[str, Meta(max_length=1000, pattern=r"^[^\x00]*$")] = ""
    """Reason why the row is wrong."""
    person: Word = ""


class Precision(msgspec.Struct, kw_only=True):
    """An estimate with its interval of 95 %, each from 0 to 1."""

    estimate: float
    low: float
    high: float


def precision_of(interval: Interval | None) -> Precision | None:
    """An interval as it is answered; None: there is no label."""
    return Precision(estimate=interval.estimate, low=interval.low, high=interval.high) if interval is not None else None


class SampleOf(msgspec.Struct, kw_only=True):
    """A sample."""

    name: str
    at: str
    kind: SampleKind
    by: str
    drawn: int
    labelled: int
    precision: Precision | None
    """None without a label."""


class SampleList(msgspec.Struct, kw_only=True):
    """The newest 50 samples, the newest first."""

    samples: list[SampleOf]


class Stratum(msgspec.Struct, kw_only=True):
    """A part of what was sampled."""

    name: str
    size: int
    """Pages or items in it."""
    sampled: int
    right: int
    wrong: int
    precision: Precision | None


class SampleRow(msgspec.Struct, kw_only=True):
    """One row of a sample, as it is judged."""

    number: int
    stratum: str
    job: str
    url: str
    rule: str
    version: str
    title: str
    text: str
    """Text of at most 20,000 characters; data of an item."""
    gone: bool
    """True if the crawl no longer has this page or item."""
    changed: bool
    """True if the text differs from the text that was drawn."""
    verdict: str
    """right, wrong, or empty without a label."""
    reason: str
    person: str
    labelled_at: str


class SampleDetail(msgspec.Struct, kw_only=True):
    """A sample with what was found so far."""

    sample: SampleOf
    row: SampleRow | None
    """Null if every row has a label and the request names no row."""
    next: int
    """Number of the next row without a label; 0: there is none."""
    back: int
    skip: int
    """Numbers of the rows before and behind this one, in the order of labelling; 0: there is none."""
    strata: list[Stratum]
    """Strata with rows in the sample, the largest first, 200 at most."""
    reasons: dict[str, int]
    """The most frequent reasons of wrong ones, ten at most."""


class RowLabelled(msgspec.Struct, kw_only=True):
    """The label is stored."""

    sample: SampleOf
    next: int
    """Number of the next row without a label; 0: there is none."""


class GetAuditOutcome(Request):
    """What the samples say together."""

    pages: Annotated[str, Meta(max_length=200, pattern=r"^[^\x00-\x1f/]*$")] = ""
    """Name of a sample of stored pages; empty: the newest."""
    links: Annotated[str, Meta(max_length=200, pattern=r"^[^\x00-\x1f/]*$")] = ""
    """Name of a sample of links that are not stored; empty: the newest."""


class ProposedExpression(msgspec.Struct, kw_only=True):
    """An expression for the scope, from labels."""

    kind: Literal["include", "exclude"]
    expression: str
    """RE2, searched in the full URL."""
    hits: int
    """Labelled URLs that the expression is for."""
    against: int
    """Labelled URLs of the other kind that the expression matches."""
    share: Precision


class AuditOutcomeOf(msgspec.Struct, kw_only=True):
    """Precision and recall with their intervals of 95 %, and expressions for the scope."""

    pages: str
    """Sample of stored pages; empty: there is none."""
    links: str
    """Sample of links; empty: there is none."""
    precision: Precision | None
    recall: Precision | None
    """Stored share of the wanted pages; null without labels of both samples."""
    proposals: list[ProposedExpression]


class CompareFrequencies(Request):
    """A recorded history of recrawls against other frequencies and budgets."""

    scenarios: Annotated[list[Annotated[str, Meta(min_length=1, max_length=60)]], Meta(min_length=1, max_length=10)]
    """Each 6h, 1h..14d (adaptive), or with a budget in requests a day 1d@5000."""
    job: JobFilter = ""
    within: Duration = "12h"
    """A change counts as found in time within this."""


class FrequencyOutcome(msgspec.Struct, kw_only=True):
    """What a frequency gives over the recorded time."""

    name: str
    """`recorded` or a scenario."""
    requests: int
    per_day: float
    changes: int
    """Changes that were old enough at the end to be judged."""
    found_in_time: Precision | None
    """Share of the changes that are found in time; null without a change."""
    mean_delay_s: float
    versions_lost: int
    """Changes that another one replaced before a fetch."""
    cut: bool
    """True if only a part of the history was replayed."""


class FrequenciesCompared(msgspec.Struct, kw_only=True):
    """All scenarios over the same pages, what was recorded first."""

    pages: int
    of: int
    """Pages that were fetched at least twice."""
    days: float
    outcomes: list[FrequencyOutcome]
