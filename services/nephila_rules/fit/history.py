"""How the shares of a rule went: the present version in parts of its pages, each version before as a whole. Pure.

Shares of the last pages say that a field broke, not how it went before. Parts are counted in pages, since a rule
without pages has nothing to tell. Invariant: fewer than `PARTS` parts of nearly equal numbers of pages; neighbours are
joined when there would be more. So the state of a rule with 20 fields grows by some 2 KB, however long it runs.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import msgspec
from nephila.kernel import messages as m

FIRST_PAGES: Final = 10
"""Pages of a part at the beginning of a version. A message of a parser is not divided."""
PARTS: Final = 32
VERSIONS: Final = 10
"""Versions before the present one."""
FIELDS: Final = 200
"""Fields of one version; further ones have no history."""
NONE: Final = -1
"""Share of a field that the rule did not look for."""


class Part(msgspec.Struct, array_like=True):
    """Some consecutive pages of one version."""

    until: float = 0.0
    """Instant of the last of them, seconds since 1970 UTC."""
    pages: int = 0
    shares: list[int] = msgspec.field(default_factory=list)
    """Of the pages with a value, in thousandths, in the order of the names."""


class EndedVersion(msgspec.Struct, array_like=True):
    version: int
    names: list[str]
    whole: Part


class Sample(NamedTuple):
    at: float
    version: int
    pages: int
    shares: dict[str, float]
    """Field → share of the pages with a value."""


class History(msgspec.Struct, array_like=True):
    version: int = 0
    names: list[str] = msgspec.field(default_factory=list)
    """Fields of the present version, `(items)` among them."""
    parts: list[Part] = msgspec.field(default_factory=list)
    part_pages: int = FIRST_PAGES
    until: float = 0.0
    """Instant of the last page."""
    pages: int = 0
    """Pages of the part that is not full."""
    looked: list[float] = msgspec.field(default_factory=list)
    """Pages of that part on which the rule looked for the field, by field,"""
    filled: list[float] = msgspec.field(default_factory=list)
    """and the sum of their shares with a value."""
    ended: list[EndedVersion] = msgspec.field(default_factory=list)

    def add(self, stats: m.RuleStats, names: Sequence[str], now: float) -> None:
        """Adds the counts of a parser; `names` are the fields that have a history. O(fields)."""
        if stats.version != self.version:
            self._begin(stats.version)
        numbers = {name: number for number, name in enumerate(self.names)}
        for name in names:
            if name not in numbers and len(self.names) < FIELDS:
                numbers[name] = len(self.names)
                self.names.append(name)
                self.looked.append(0.0)
                self.filled.append(0.0)
        for field in stats.fields:
            if (number := numbers.get(field.field)) is not None:
                self.looked[number] += field.pages
                self.filled[number] += field.filled
        self.pages += stats.pages
        self.until = now
        if self.pages >= self.part_pages:
            self._close()

    def samples(self) -> Iterator[Sample]:
        """The oldest first."""
        for ended in self.ended:
            yield _sample(ended.version, ended.names, ended.whole)
        for part in (*self.parts, *([self._open()] if self.pages else ())):
            yield _sample(self.version, self.names, part)

    def _begin(self, version: int) -> None:
        parts = [*self.parts, *([self._open()] if self.pages else ())]
        if parts:
            self.ended.append(EndedVersion(self.version, self.names, _joined(parts)))
            del self.ended[:-VERSIONS]
        self.version, self.names, self.parts, self.part_pages = version, [], [], FIRST_PAGES
        self.pages, self.looked, self.filled = 0, [], []

    def _open(self) -> Part:
        pairs = zip(self.looked, self.filled, strict=True)
        shares = [round(1000 * min(filled / looked, 1.0)) if looked else NONE for looked, filled in pairs]
        return Part(self.until, self.pages, shares)

    def _close(self) -> None:
        self.parts.append(self._open())
        self.pages, self.looked, self.filled = 0, [0.0] * len(self.names), [0.0] * len(self.names)
        if len(self.parts) == PARTS:
            self.parts = [_joined(self.parts[first : first + 2]) for first in range(0, PARTS, 2)]
            self.part_pages *= 2


def _joined(parts: Sequence[Part]) -> Part:
    names = max(len(part.shares) for part in parts)
    return Part(parts[-1].until, sum(part.pages for part in parts), [_mean(parts, number) for number in range(names)])


def _mean(parts: Sequence[Part], number: int) -> int:
    """A field that came later has no share in earlier parts."""
    shares = [(part.shares[number], part.pages) for part in parts if len(part.shares) > number]
    counted = [(share, pages) for share, pages in shares if share != NONE]
    pages = sum(pages for _, pages in counted)
    return round(sum(share * pages for share, pages in counted) / pages) if pages else NONE


def _sample(version: int, names: Sequence[str], part: Part) -> Sample:
    pairs = zip(names, part.shares, strict=False)
    return Sample(part.until, version, part.pages, {name: share / 1000 for name, share in pairs if share != NONE})
