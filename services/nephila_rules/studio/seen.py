"""What a person sees of a draft: selectors and fields that are offered, and rows of the table."""

from __future__ import annotations

import msgspec

from nephila_rules.studio.draft import FieldType, Source


class Offer(msgspec.Struct, frozen=True):
    """A selector that is offered."""

    take: Source
    kind: str
    """data, css or xpath."""
    type: FieldType
    many: bool
    here: int
    """Values on the page that is shown."""
    filled: int
    """Of the other pages, those on which it gives something."""
    others: int
    sample: list[str]
    """Its values on the shown page, else on another one."""
    cost: float


class Row(msgspec.Struct, frozen=True):
    """What the rule takes from one page."""

    url: str
    items: list[dict[str, str]]
    """The first ones: field → its value as text; empty for none."""
    total: int
    problems: list[str]


class SuggestedField(msgspec.Struct, frozen=True):
    name: str
    sample: str
    """Its value on the shown page."""


class Suggestion(msgspec.Struct, frozen=True):
    """Fields that the page offers by itself."""

    kind: str
    """product, article, recipe, event or job."""
    fields: list[SuggestedField]
