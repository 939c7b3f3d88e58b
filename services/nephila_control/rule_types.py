"""The types of the operations on rules: requests and answers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from nephila_control.requests import Name, Request

MAX_JOBS = 20
"""Jobs of one rule in an answer."""


class ApplyRules(Request):
    """Create rules or change them; all of them or, where one is wrong, none."""

    rules: Annotated[list[dict[str, Any]], Meta(min_length=1, max_length=1000)]
    """ParseRule documents (docs/parserule.schema.json)."""


class RuleName(Request):
    """One rule."""

    name: Name


class Rule(msgspec.Struct, kw_only=True):
    """A rule that pages are read by."""

    name: str
    version: int
    document: dict[str, Any]
    jobs: list[str] = []
    """Jobs that name the rule, 20 at most. A job without rules of its own in one crawl reads pages by all of them."""


class RuleList(msgspec.Struct, kw_only=True):
    """All rules by name."""

    rules: list[Rule]


class RuleChange(msgspec.Struct, kw_only=True):
    """What a change did to one rule."""

    name: str
    verdict: Literal["created", "changed", "unchanged", "deleted"]
    version: int = 0
    warning: str = ""
    """Why fields of the rule stay empty in this program, with the remedy. Services over Kafka log it instead."""


class RulesApplied(msgspec.Struct, kw_only=True):
    """What an apply changed, in the order of the request."""

    rules: list[RuleChange]


class RuleVersion(msgspec.Struct, kw_only=True):
    """A version of a rule that is in effect, or was."""

    version: int
    etag: str
    """Equal for equal documents."""
    at: float = 0.0
    """Begin of its time in effect, in seconds since 1970 UTC; 0: not known."""
    document: dict[str, Any]
    difference: list[str] = []
    """Lines of a unified diff from the version in effect to this one; empty for the one in effect."""


class RuleSample(msgspec.Struct, kw_only=True):
    """What some consecutive pages of one version had."""

    at: float
    """Instant of the last of these pages, in seconds since 1970 UTC."""
    version: int
    pages: int
    items: float
    """Share of the pages with items."""
    fields: dict[str, float]
    """Field → share of the pages with a value."""


class RuleVersionList(msgspec.Struct, kw_only=True):
    """The last versions of a rule, the one in effect first."""

    versions: list[RuleVersion]
    history: list[RuleSample] = []
    """The oldest first. A version before the present one has one sample, the present one up to 32 of nearly equal
    numbers of pages; the last one is not full. Empty before the first page."""


class FieldFill(msgspec.Struct, kw_only=True):
    """How often a field of a rule has a value."""

    name: str
    now: float
    """Share of the last pages with a value."""
    usual: float
    """Learned share; 0 until some pages were counted."""


class RuleHealth(msgspec.Struct, kw_only=True):
    """Whether a rule still fits its site."""

    rule: str
    version: int
    degraded: bool
    findings: str = ""
    """One line says what differs from before."""
    since: float = 0.0
    """Seconds since 1970 UTC at which the rule became degraded; 0 while it is not."""
    pages: int
    fill_rate: float
    """Share of the last pages with items."""
    fields: list[FieldFill] = []
    """Fields in the order of their first values; empty before the first page."""


class RuleHealthList(msgspec.Struct, kw_only=True):
    """Degraded rules first, then by name."""

    rules: list[RuleHealth]
