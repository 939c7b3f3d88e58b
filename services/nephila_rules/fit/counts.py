"""Counts of one parser for one rule since it last published: per field, from extractions. Pure.

A page counts once, however many items it has: it adds to each field the share of its items that have a value. Items
that were dropped because a required field was empty count as well.
"""

from __future__ import annotations

from typing import Final

from nephila.kernel import messages as m

from nephila_rules.fit.health import BUCKETS, ITEMS, LINKS
from nephila_rules.runtime.extract import Extraction, FieldCount
from nephila_rules.runtime.spec import Rule

MATCH: Final = "(match)"
"""Pages that match the rule's URLs and its conditions on content."""


class RuleCounts:
    """Counts of one version of a rule."""

    def __init__(self, rule: Rule) -> None:
        self.name = rule.name
        self.version = rule.version
        self.pages = 0
        self._rule = rule
        self._fields: dict[str, m.FieldStats] = {}
        self._previous_hashes: dict[str, int] = {}
        """Field → hash of its first value on the previous page."""

    def add_page(self, extraction: Extraction) -> None:
        """Count a page that the rule has read. O(fields)."""
        self.pages += 1
        if self._rule.content:
            self._field(MATCH).filled += 1
        if self._rule.fields:
            self._count_number(ITEMS, len(extraction.items))
        if extraction.links is not None:
            self._count_number(LINKS, len(extraction.links))
        for path, count in extraction.counts.items():
            self._add_field(path, count)

    def add_mismatch(self) -> None:
        """Count a page that matches the rule's URLs but not its conditions on content."""
        self.pages += 1
        self._field(MATCH)

    def take(self) -> m.RuleStats:
        """The counts as a message; counting starts again at zero."""
        stats = m.RuleStats(self.name, self.version, self.pages, list(self._fields.values()))
        self.pages, self._fields = 0, {}
        return stats

    def _field(self, name: str) -> m.FieldStats:
        """The counts of a field, with one more page on which the rule looked for it."""
        field = self._fields.get(name)
        if field is None:
            field = self._fields[name] = m.FieldStats(name)
        field.pages += 1
        return field

    def _count_number(self, name: str, number: int) -> None:
        field = self._field(name)
        if number:
            field.filled += 1
            _add_value(field, number)

    def _add_field(self, path: str, count: FieldCount) -> None:
        field = self._field(path)
        field.filled += count.filled / count.tried
        field.refused += count.refused / count.tried
        if count.filled:
            _add_value(field, count.length)
            field.digits += count.digits
            field.repeated += self._previous_hashes.get(path) == count.hash
            self._previous_hashes[path] = count.hash


def _add_value(field: m.FieldStats, length: int) -> None:
    field.valued += 1
    field.length += length
    bucket = min(length.bit_length(), BUCKETS - 1)
    field.lengths += [0] * (bucket + 1 - len(field.lengths))
    field.lengths[bucket] += 1
