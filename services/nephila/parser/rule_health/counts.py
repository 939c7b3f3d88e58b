"""What one parser saw of its rules since it last told: counts per field, made of extractions. Pure.

A page counts once, however many items it has: of each field the share of them that have it. Items that were left out
because a required field was empty count as well.
"""

from __future__ import annotations

from typing import Final

from nephila.kernel import messages as m
from nephila.parser.rule_health.health import BUCKETS, ITEMS, LINKS
from nephila.parser.rules.extract import Count, Extraction
from nephila.parser.rules.spec import Rule

MATCH: Final = "(match)"
"""Pages of the rule's URLs that have the content it asks for."""


class Tally:
    """The pages of one version of a rule."""

    def __init__(self, rule: Rule) -> None:
        self.name = rule.name
        self.version = rule.version
        self.pages = 0
        self._rule = rule
        self._fields: dict[str, m.FieldStats] = {}
        self._marks: dict[str, int] = {}
        """Field → its first value on the page before."""

    def saw(self, found: Extraction) -> None:
        """A page was read by the rule. O(fields)."""
        self.pages += 1
        if self._rule.content:
            self._field(MATCH).filled += 1
        if self._rule.fields:
            self._number(ITEMS, len(found.items))
        if found.links is not None:
            self._number(LINKS, len(found.links))
        for path, count in found.counts.items():
            self._count(path, count)

    def missed(self) -> None:
        """A page of the rule's URLs has not what the rule asks of the content."""
        self.pages += 1
        self._field(MATCH)

    def take(self) -> m.RuleStats:
        """What is to be told; counting begins anew."""
        stats = m.RuleStats(self.name, self.version, self.pages, list(self._fields.values()))
        self.pages, self._fields = 0, {}
        return stats

    def _field(self, name: str) -> m.FieldStats:
        """The counts of a field that was looked for on one page more."""
        field = self._fields.get(name)
        if field is None:
            field = self._fields[name] = m.FieldStats(name)
        field.pages += 1
        return field

    def _number(self, name: str, number: int) -> None:
        field = self._field(name)
        if number:
            field.filled += 1
            _valued(field, number)

    def _count(self, path: str, count: Count) -> None:
        field = self._field(path)
        field.filled += count.filled / count.tried
        field.refused += count.refused / count.tried
        if count.filled:
            _valued(field, count.length)
            field.digits += count.digits
            field.repeated += self._marks.get(path) == count.mark
            self._marks[path] = count.mark


def _valued(field: m.FieldStats, length: int) -> None:
    field.valued += 1
    field.length += length
    bucket = min(length.bit_length(), BUCKETS - 1)
    field.lengths += [0] * (bucket + 1 - len(field.lengths))
    field.lengths[bucket] += 1
