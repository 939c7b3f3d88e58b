"""Sites that a rule reads, by what its fields give: page after page, from a seed, before and after a change."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from nephila.kernel import messages as m
from nephila_rules.fit.counts import RuleCounts
from nephila_rules.fit.health import RuleHealth
from nephila_rules.runtime import rule_schema as schema
from nephila_rules.runtime.extract import Extraction, FieldCount
from nephila_rules.runtime.spec import Rule, build

AT_ONCE = 5
"""Pages that are reported together."""


@dataclass(frozen=True)
class Field:
    """What a field is like on a kind of page."""

    filled: float = 0.99
    characters: float = 40.0
    spread: float = 0.4
    """Of the logarithm of its length."""
    digits: float = 0.1
    values: int = 10**9
    """How many different ones there are."""
    refused: bool = False
    """Where it is empty there is something of another type."""


@dataclass(frozen=True)
class Kind:
    """A kind of page."""

    fields: dict[str, Field]
    items: float = 1.0
    """How many, in the mean; 1: exactly one."""
    broken: tuple[str, ...] = ()
    required: tuple[str, ...] = field(default=("title",))


NEWS = Kind(
    {
        "title": Field(1.0, 60, 0.3, 0.2),
        "text": Field(0.995, 3000, 0.7, 0.95),
        "author": Field(0.85, 18, 0.25, 0.0, 40),
        "date": Field(0.99, 20, 0.0, 1.0, 400),
        "image": Field(0.7, 80, 0.2, 0.6),
        "paywall": Field(0.15, 6, 0.1, 0.0, 1),
    }
)
LIST = Kind(
    {
        "title": Field(1.0, 50, 0.4, 0.3),
        "price": Field(0.97, 6, 0.3, 1.0, 500),
        "old_price": Field(0.3, 6, 0.3, 1.0, 500),
        "stars": Field(0.6, 3, 0.0, 1.0, 30),
    },
    items=24,
)


def rule(kind: Kind, version: int = 1) -> Rule:
    """A rule with the fields of a kind of page."""
    fields = {name: schema.Field(css="p", required=name in kind.required) for name in kind.fields}
    return build("r", version, schema.RuleSpec(match=schema.Match(url=["."]), fields=fields))


def extraction(kind: Kind, source: random.Random) -> Extraction:
    """What the rule gives on one page of that kind."""
    wanted = 1 if kind.items == 1 else max(int(source.gauss(kind.items, kind.items / 4)), 1)
    found, items = Extraction(), 0
    for _ in range(wanted):
        for name, what in kind.fields.items():
            count = found.counts.setdefault(name, FieldCount())
            count.tried += 1
            if source.random() < what.filled:
                if not count.filled:
                    count.length = max(int(what.characters * math.exp(source.gauss(0, what.spread))), 1)
                    count.digits = source.random() < what.digits
                    count.hash = source.randrange(what.values)
                count.filled += 1
            else:
                count.refused += what.refused
                if name in kind.required:
                    break
        else:
            items += 1
    found.items = [b"{}"] * items
    return found


Site = Callable[[int, random.Random], Kind]
"""The kind of the page of a number."""


@dataclass
class Watched:
    """A rule's owner that receives the counts of one parser or several."""

    health: RuleHealth = field(default_factory=RuleHealth)
    page: int = 0
    counts_by_version: dict[int, list[RuleCounts]] = field(default_factory=dict)
    """Of each version, one for each parser."""

    def read(self, site: Site, pages: int, seed: int, *, version: int = 1) -> None:
        """Have so many further pages read by one parser, alarm or not."""
        source = random.Random(seed)
        (counts,) = self.counts_by_version.setdefault(version, [RuleCounts(rule(site(0, source), version))])
        for number in range(pages):
            counts.add_page(extraction(site(number, source), source))
            if counts.pages >= AT_ONCE:
                self.tell(counts.take())

    def until_alarm(
        self, site: Site, pages: int, seed: int, *, version: int = 1, parsers: int = 1, at_once: int = AT_ONCE
    ) -> int:
        """Have so many further pages read; the number of the page with which an alarm came (from 1), 0 for none."""
        source = random.Random(seed)
        counts_by_version = self.counts_by_version.setdefault(
            version, [RuleCounts(rule(site(0, source), version)) for _ in range(parsers)]
        )
        for number in range(pages):
            counts = source.choice(counts_by_version)
            counts.add_page(extraction(site(number, source), source))
            if counts.pages >= at_once:
                self.tell(counts.take())
            if self.health.findings():
                return number + 1
        return 0

    def tell(self, stats: m.RuleStats) -> None:
        """One message."""
        self.page += stats.pages
        self.health.add(stats, 1000.0 + self.page)


def always(kind: Kind) -> Site:
    """A site of one kind of page."""
    return lambda number, source: kind


def without(kind: Kind, *names: str, **changes: object) -> Kind:
    """The kind with some fields gone, or otherwise changed."""
    from dataclasses import replace

    values = changes or {"filled": 0.0}
    fields = {name: replace(what, **values) if name in names else what for name, what in kind.fields.items()}
    return replace(kind, fields=fields)


def mixed(one: Kind, other: Kind, share: Callable[[int], float]) -> Site:
    """A site of two kinds of pages, the other with a share that changes."""
    return lambda number, source: other if source.random() < share(number) else one
