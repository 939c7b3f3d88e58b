"""Columns of items: a column for each field of any item, with dotted names for nested objects, and its type. Pure.

Command line and console have the same columns. Money is an object of amount and currency everywhere, so it has the two
columns NAME.amount and NAME.currency, and a null instead of it adds none. A list is one column; `exploded` makes an
item of each element instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, Final

from nephila.storage.read.tabular import flat

FIXED: Final = ("job", "url", "url_key", "rule", "rule_version", "ordinal")
"""Columns of the table `items`; a field with such a name is the column data.NAME."""
MONEY: Final = frozenset(("amount", "currency"))
MAX_FIELDS: Final = 200
"""Fields of the objects in a list; a list of wider ones is text."""
MAX_DEPTH: Final = 8
"""Lists and objects within a list; deeper ones are text."""
_INT64: Final = 1 << 63
_INSTANT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)")
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
Kind = str | tuple[str, Any]
"""Type of a column: empty (only nulls), bool, int, float, date, instant, text, ("list", type of the elements) or
("struct", {field: type})."""


class ItemColumns:
    """The fields of the items that were noted."""

    def __init__(self) -> None:
        self._kinds: dict[str, Kind] = {}
        self._inner: set[str] = set()
        """Names of objects whose fields are columns."""
        self._final: dict[str, Kind] | None = None

    def note(self, data: Mapping[str, Any]) -> None:
        self._final = None
        for name, value in flat(data):
            kind = "float" if _is_amount(name, value, data) else kind_of(value)
            self._kinds[name] = merged(self._kinds.get(name, ""), kind)
            at = name.find(".")
            while at > 0:
                self._inner.add(name[:at])
                at = name.find(".", at + 1)

    @property
    def kinds(self) -> dict[str, Kind]:
        """Field → type, in the order in which the fields came. An object that is null in some items is no field."""
        if self._final is None:
            self._final = {name: kind for name, kind in self._kinds.items() if kind or name not in self._inner}
        return self._final

    @property
    def header(self) -> list[str]:
        """Names of all columns: those of the table, then those of the fields."""
        taken = {*FIXED, "data"}
        names = list(FIXED)
        for name in self.kinds:
            column = f"data.{name}" if name in taken else name
            while column in taken:
                column += "_"
            taken.add(column)
            names.append(column)
        return names

    def values(self, data: Mapping[str, Any]) -> list[Any]:
        """The values of an item in the order of the fields; None where it has none."""
        fields = dict(flat(data))
        return [fields.get(name) for name in self.kinds]


def _is_amount(name: str, value: Any, data: Mapping[str, Any]) -> bool:
    """Whether a value is the amount of money: a whole number has the type of any other amount."""
    if not name.endswith(".amount") or not isinstance(value, int) or isinstance(value, bool):
        return False
    return f"{name.removesuffix('.amount')}.currency" in dict(flat(data))


def kind_of(value: Any, depth: int = 0) -> Kind:
    """The type of a value. O(value)."""
    if value is None or value == {}:
        return ""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int" if -_INT64 <= value < _INT64 else "text"
    if isinstance(value, float):
        return "float"
    if isinstance(value, str):
        return "instant" if instant(value) else "date" if day(value) else "text"
    if depth >= MAX_DEPTH:
        return "text"
    if isinstance(value, list):
        element: Kind = ""
        for element_value in value:
            element = merged(element, kind_of(element_value, depth + 1))
        return "list", element
    if isinstance(value, dict) and len(value) <= MAX_FIELDS and depth:
        fields = {str(name): kind_of(field_value, depth + 1) for name, field_value in value.items()}
        if fields.get("amount") == "int" and value.keys() == MONEY:
            fields["amount"] = "float"
        return "struct", fields
    return "text"


def merged(left: Kind, other: Kind) -> Kind:
    """The type that has the values of both."""
    if not left or left == other:
        return other
    if not other:
        return left
    if isinstance(left, tuple) and isinstance(other, tuple) and left[0] == other[0]:
        if left[0] == "list":
            return "list", merged(left[1], other[1])
        fields = {name: merged(left[1].get(name, ""), other[1].get(name, "")) for name in {**left[1], **other[1]}}
        return ("struct", fields) if len(fields) <= MAX_FIELDS else "text"
    return "float" if {left, other} == {"int", "float"} else "text"


def instant(text: str) -> datetime | None:
    """An instant with its offset, in UTC; None for any other text."""
    if len(text) > 40 or not _INSTANT.fullmatch(text):
        return None
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def day(text: str) -> date | None:
    """A date without a time; None for any other text."""
    if len(text) != 10 or not _DATE.fullmatch(text):
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def exploded(data: Mapping[str, Any], path: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The item once for each element of the list at a dotted name, with the element in its place. An item without such
    a list, or with an empty one, is there once."""
    value = data.get(path[0])
    if len(path) == 1:
        made = [{**data, path[0]: element} for element in value] if isinstance(value, list) else []
    elif isinstance(value, dict):
        made = [{**data, path[0]: inner} for inner in exploded(value, path[1:])]
    else:
        made = []
    yield from made or [{**data, path[0]: None} if isinstance(value, list) else dict(data)]
