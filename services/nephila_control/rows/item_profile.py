"""What the fields of items hold: how many items fill each, how many values differ, the least and the most.

A table of fifty rows does not say whether a field is filled in all of them, and a wrong rule shows in the profile of
its field first. Invariant: a profile looks at `LOOKED_AT` items and counts at most `COUNTED` rows, however many there
are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from nephila.storage.ledgers.read_connection import NoTables, ReadConnection, only_jobs, open_for_reading
from nephila.storage.read.tabular import flat
from nephila.storage.source import Source

from nephila_control.item_types import FieldProfile, FieldValue, ItemProfile
from nephila_control.rows.item_table import Wanted, chosen, number_of

LOOKED_AT: Final = 2_000
"""Items of a profile: some 40 ms."""
COUNTED: Final = 100_000
"""Items that are counted where nothing is filtered: some 10 ms."""
FIELDS: Final = 100
VALUES: Final = 3
"""Most frequent values of a field."""
CHARS: Final = 200


def profile(source: Source, selection: Wanted) -> ItemProfile:
    try:
        with open_for_reading(source) as connection:
            items, complete = chosen(connection, selection, LOOKED_AT)
            total, counted = len(items), complete
            if not complete and not (selection.rule or selection.search or selection.tests):
                total, counted = _count(connection, selection)
    except NoTables:
        items, total, complete, counted = [], 0, True, True
    return ItemProfile(total=total, counted=counted, looked_at=len(items), complete=complete, fields=fields_of(items))


def _count(connection: ReadConnection, selection: Wanted) -> tuple[int, bool]:
    """Items of the jobs, and whether all were counted."""
    only, named = only_jobs("job", selection.jobs)
    query = f"SELECT count(*) FROM (SELECT 1 FROM items WHERE 1 = 1{only} LIMIT {COUNTED + 1}) AS i"
    (count,) = connection.execute(query, named).fetchone()
    return min(count, COUNTED), count <= COUNTED


def fields_of(items: Iterable[Mapping[str, Any]]) -> list[FieldProfile]:
    """Profiles of the first fields, in the order in which they appear."""
    fields: dict[str, _Field] = {}
    for item in items:
        for name, value in flat(item):
            field = fields.get(name)
            if field is None:
                if len(fields) == FIELDS:
                    continue
                field = fields[name] = _Field()
            field.note(value)
    return [field.profile(name) for name, field in fields.items()]


class _Field:
    def __init__(self) -> None:
        self.filled = 0
        self.values: Counter[str] = Counter()
        self.numbers = 0
        self.least = self.most = 0.0

    def note(self, value: Any) -> None:
        if value in (None, "", [], {}):
            return
        self.filled += 1
        self.values[str(value)[:CHARS]] += 1
        number = number_of(value)
        if number is None:
            return
        self.least = number if not self.numbers else min(self.least, number)
        self.most = number if not self.numbers else max(self.most, number)
        self.numbers += 1

    def profile(self, name: str) -> FieldProfile:
        is_number = bool(self.filled) and self.numbers == self.filled
        return FieldProfile(
            name=name,
            filled=self.filled,
            distinct=len(self.values),
            least=self.least if is_number else None,
            most=self.most if is_number else None,
            top=[FieldValue(value=value, items=count) for value, count in self.values.most_common(VALUES)],
        )
