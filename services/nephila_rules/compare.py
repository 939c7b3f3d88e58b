"""Comparison of the items of two versions of a rule, field by field: counts and examples of changes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

MAX_EXAMPLES: Final = 3


@dataclass(slots=True)
class FieldChanges:
    """Changes of one field over all pages."""

    before: int = 0
    """Items in which the field had a value, before and after."""
    after: int = 0
    gained: int = 0
    lost: int = 0
    changed: int = 0
    """Items in which the value is another one than before."""
    examples: list[tuple[str, Any, Any]] = field(default_factory=list)
    """(URL, before, after) of the first changes."""


@dataclass(slots=True)
class RuleComparison:
    """Comparison of all pages so far."""

    pages: int = 0
    equal: int = 0
    """Pages with equal items."""
    items_before: int = 0
    items_after: int = 0
    fields: dict[str, FieldChanges] = field(default_factory=dict)

    def add(self, url: str, before: Sequence[Any], after: Sequence[Any]) -> None:
        """Add the items of a page before and after. Items are compared by their position on the page."""
        self.pages += 1
        self.equal += list(before) == list(after)
        self.items_before += len(before)
        self.items_after += len(after)
        for number in range(max(len(before), len(after))):
            old = before[number] if number < len(before) else {}
            new = after[number] if number < len(after) else {}
            for name in dict.fromkeys((*old, *new)):
                self._add_field(name, url, old.get(name), new.get(name))

    def _add_field(self, name: str, url: str, old: Any, new: Any) -> None:
        change = self.fields.setdefault(name, FieldChanges())
        was, now = not _empty(old), not _empty(new)
        change.before += was
        change.after += now
        change.gained += now and not was
        change.lost += was and not now
        change.changed += was and now and old != new
        if old != new and (was or now) and len(change.examples) < MAX_EXAMPLES:
            change.examples.append((url, old, new))

    def as_json(self) -> dict[str, Any]:
        """The comparison as plain JSON values."""
        names = ("before", "after", "gained", "lost", "changed")
        return {
            "pages": self.pages,
            "equal": self.equal,
            "items_before": self.items_before,
            "items_after": self.items_after,
            "fields": {
                name: {
                    **{key: getattr(change, key) for key in names},
                    "examples": [{"url": url, "before": old, "after": new} for url, old, new in change.examples],
                }
                for name, change in self.fields.items()
            },
        }


def _empty(value: Any) -> bool:
    return value is None or value in ("", [], {})
