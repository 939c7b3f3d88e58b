"""Requests and answers of the operations on audit samples."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from nephila.control.requests import Request
from nephila.control.screen_types import JobFilter, Word

MAX_SIZE = 100_000
"""Rows of a sample, at most."""
SampleName = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f/]+$")]
SampleKind = Literal["pages", "items"]


class DrawSample(Request):
    """A stratified sample of stored pages, or of items."""

    sample: Annotated[str, Meta(max_length=200, pattern=r"^[^\x00-\x1f/]*$")] = ""
    """Its name; empty: the instant."""
    kind: SampleKind = "pages"
    size: Annotated[int, Meta(ge=1, le=MAX_SIZE)] = 300
    by: Literal["directory", "rule", "job"] = "directory"
    """What the strata are."""
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
    """That of the row that was shown."""
    verdict: Literal["right", "wrong"]
    reason: Annotated[str, Meta(max_length=1000, pattern=r"^[^\x00]*$")] = ""
    """Why it is wrong."""
    person: Word = ""


class Precision(msgspec.Struct, kw_only=True):
    """An estimate with its interval of 95 %, each from 0 to 1."""

    estimate: float
    low: float
    high: float


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
    """At most 20,000 characters; of an item its data."""
    gone: bool
    """The crawl has this page or item no more."""
    changed: bool
    """It has another text now than when it was drawn."""
    verdict: str
    """right, wrong, or empty without a label."""
    reason: str
    person: str
    labelled_at: str


class SampleDetail(msgspec.Struct, kw_only=True):
    """A sample with what was found so far."""

    sample: SampleOf
    row: SampleRow | None
    """None: every row has a label, and none was asked for."""
    next: int
    """Number of the next row without a label; 0: there is none."""
    back: int
    skip: int
    """Numbers of the rows before and behind this one, in the order of labelling; 0: there is none."""
    strata: list[Stratum]
    """Those with rows in the sample, the largest first, 200 at most."""
    reasons: dict[str, int]
    """The most frequent reasons of wrong ones, ten at most."""


class RowLabelled(msgspec.Struct, kw_only=True):
    """The label is stored."""

    sample: SampleOf
    next: int
    """Number of the next row without a label; 0: there is none."""
