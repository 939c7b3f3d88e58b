"""Requests and answers about the fields of items: what they hold, and the pictures that they name."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from nephila_control.requests import Request
from nephila_control.screen_types import JobFilter, Word


class GetItemPicture(Request):
    """A field of an item that has the URL of a picture."""

    job: Annotated[JobFilter, Meta(min_length=1)]
    url_key: Annotated[str, Meta(max_length=64, pattern=r"^[0-9a-f]+$")]
    rule: Word
    field: Word
    """Dotted name of the field."""
    ordinal: Annotated[int, Meta(ge=0, le=1 << 40)] = 0


class FieldValue(msgspec.Struct, kw_only=True):
    """A value of a field."""

    value: str
    """First 200 characters."""
    items: int


class FieldProfile(msgspec.Struct, kw_only=True):
    """What a field of items holds."""

    name: str
    """Dotted name."""
    filled: int
    """Items that have a value."""
    distinct: int
    least: float | None
    most: float | None
    """Least and largest number; null for a field with another value than a number."""
    top: list[FieldValue]
    """The most frequent values, three at most."""


class ItemProfile(msgspec.Struct, kw_only=True):
    """Number of items, and what their fields hold."""

    total: int
    """Items that fit; a lower bound where `counted` is false."""
    counted: bool
    looked_at: int
    """Items that fit, among the first 2,000 that were looked at: the fields are theirs."""
    complete: bool
    """False if there are more items than were looked at."""
    fields: list[FieldProfile]
