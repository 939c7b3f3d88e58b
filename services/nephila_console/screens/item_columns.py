"""Columns of the table of items: what stands in each, and its profile. Pure.

An amount and its currency are two fields of an item and one thing for a person, so they are one column.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from nephila_control.item_types import FieldProfile

from nephila_console.words import cell

AMOUNT: Final = ".amount"
CURRENCY: Final = ".currency"
_PICTURE: Final = re.compile(r"https?://\S+\.(?:png|jpe?g|gif|webp|avif|svg)(?:[?#]\S*)?", re.IGNORECASE)
_PICTURE_NAMES: Final = ("image", "img", "picture", "photo", "thumbnail")


class Column(NamedTuple):
    name: str
    """Field that the column is ordered and filtered by."""
    title: str
    profile: FieldProfile | None
    is_number: bool
    currency: str = ""
    """Field of the currency; empty unless the column has money."""
    is_picture: bool = False
    """Whether each value is the URL of a picture."""

    def text(self, item: Mapping[str, Any]) -> str:
        text = cell(item.get(self.name))
        unit = cell(item.get(self.currency)) if self.currency else ""
        return f"{text} {unit}" if text and unit else text


def columns_of(
    names: Sequence[str], profiles: Mapping[str, FieldProfile], rows: Sequence[Mapping[str, Any]]
) -> list[Column]:
    """Columns in the order of the names; the currency of an amount has none of its own."""
    money = {name for name in names if name.endswith(AMOUNT) and name.removesuffix(AMOUNT) + CURRENCY in names}
    taken = {name.removesuffix(AMOUNT) for name in money}.intersection(names)
    units = {name.removesuffix(AMOUNT) + CURRENCY for name in money}
    return [
        Column(
            name=name,
            title=name.removesuffix(AMOUNT) if name in money and name.removesuffix(AMOUNT) not in taken else name,
            profile=profiles.get(name),
            is_number=name in money or _is_numeric(row.get(name) for row in rows),
            is_picture=_are_pictures(name, [row[name] for row in rows if row.get(name)]),
            currency=name.removesuffix(AMOUNT) + CURRENCY if name in money else "",
        )
        for name in names
        if name not in units
    ]


def _is_numeric(values: Iterable[Any]) -> bool:
    present = [value for value in values if value is not None]
    return bool(present) and all(isinstance(value, int | float) for value in present)


def _are_pictures(name: str, values: Sequence[Any]) -> bool:
    urls = [value for value in values if isinstance(value, str) and value.startswith(("http://", "https://"))]
    if not urls or len(urls) < len(values):
        return False
    return name.rpartition(".")[2].lower() in _PICTURE_NAMES or all(_PICTURE.fullmatch(url) for url in urls)
