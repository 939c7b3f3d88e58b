"""What two versions of a rule make of the same pages, field by field: counts, and examples of changes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

MAX_EXAMPLES: Final = 3


@dataclass(slots=True)
class Change:
    """One field over all pages."""

    before: int = 0
    """Items in which it had a value."""
    after: int = 0
    gained: int = 0
    lost: int = 0
    changed: int = 0
    """Another value than before."""
    examples: list[tuple[str, Any, Any]] = field(default_factory=list)
    """(URL, before, after) of the first changes."""


@dataclass(slots=True)
class Comparison:
    """All pages so far."""

    pages: int = 0
    equal: int = 0
    """Pages whose items are the same."""
    items_before: int = 0
    items_after: int = 0
    fields: dict[str, Change] = field(default_factory=dict)

    def add(self, url: str, before: Sequence[Any], after: Sequence[Any]) -> None:
        """The items of a page before and after; of several, the first is held against the first."""
        self.pages += 1
        self.equal += list(before) == list(after)
        self.items_before += len(before)
        self.items_after += len(after)
        for number in range(max(len(before), len(after))):
            old = before[number] if number < len(before) else {}
            new = after[number] if number < len(after) else {}
            for name in dict.fromkeys((*old, *new)):
                self._one(name, url, old.get(name), new.get(name))

    def _one(self, name: str, url: str, old: Any, new: Any) -> None:
        change = self.fields.setdefault(name, Change())
        was, now = not _empty(old), not _empty(new)
        change.before += was
        change.after += now
        change.gained += now and not was
        change.lost += was and not now
        change.changed += was and now and old != new
        if old != new and (was or now) and len(change.examples) < MAX_EXAMPLES:
            change.examples.append((url, old, new))

    def as_json(self) -> dict[str, Any]:
        """For machines."""
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
