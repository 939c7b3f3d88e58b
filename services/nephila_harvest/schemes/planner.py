"""The plan of keyword schemes: every search as a navigation seed, lazily. Pure.

Order: searches without dates first, then by their first day, the oldest first; within a day by scheme, group,
combination of keywords and platform, as the documents have them. A combination has one keyword of each part of its
group; a part that is optional may be left out. A plan against an earlier state of the same schemes has only searches
that this state did not have. About a microsecond per search, memory independent of their number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from itertools import product
from typing import NamedTuple

from nephila.kernel.documents.scheme_schema import Dates, Group, NamedPlatform, NamedScheme, Schemes, Search

from nephila_harvest.schemes.templates import CompiledSearch, Span, is_dated

Combination = tuple[str, ...]
"""Keywords in the order of the parts; empty for an optional part that is left out."""


class NavigationSeed(NamedTuple):
    """The first page of one search."""

    url: str
    scheme: str
    group: str
    platform: str
    keywords: tuple[str, ...]


def plan(state: Schemes, before: Schemes | None = None) -> Iterator[NavigationSeed]:
    """All searches of `state` that `before` does not have. The schemes are checked (`documents.check`)."""
    platforms = {platform.name: platform.search for platform in state.platforms}
    earlier = _Earlier(before)
    streams = [
        _dated_seeds(scheme, platforms, earlier, span)
        for scheme in state.schemes
        for span in _all_spans(scheme, platforms)
    ]
    # Streams are in the order of schemes; a stable sort keeps it within a day.
    streams.sort(key=lambda stream: stream.first)
    for stream in streams:
        yield from stream.seeds


def count(state: Schemes) -> dict[tuple[str, str, str], int]:
    """Searches by (scheme, platform, group), without making them. O(groups × platforms)."""
    platforms = {platform.name: platform.search for platform in state.platforms}
    numbers: dict[tuple[str, str, str], int] = {}
    for scheme in state.schemes:
        days = len(spans(scheme.spec.dates))
        for use in scheme.spec.platforms:
            times = days if is_dated(platforms[use.name]) else 1
            for name, group in scheme.spec.groups.items():
                if not use.groups or name in use.groups:
                    numbers[scheme.name, use.name, name] = times * combinations_count(group)
    return numbers


def combinations(group: Group) -> Iterator[Combination]:
    """All combinations of a group, in the order of its parts and keywords."""
    choices = [[*part.any, ""] if part.optional else part.any for part in group.values()]
    return (combination for combination in product(*choices) if any(combination))


def combinations_count(group: Group) -> int:
    """Number of `combinations`."""
    number = 1
    for part in group.values():
        number *= len(part.any) + part.optional
    return number - all(part.optional for part in group.values())


def spans(dates: Dates | None) -> list[Span]:
    """Spans of dates, the oldest first."""
    if dates is None:
        return []
    first, last = date.fromisoformat(dates.first), date.fromisoformat(dates.last or dates.first)
    days = int(dates.step[:-1])
    starts = range(0, (last - first).days + 1, days)
    return [Span(first + timedelta(days=at), min(first + timedelta(days=at + days - 1), last)) for at in starts]


class _Stream(NamedTuple):
    first: date
    seeds: Iterator[NavigationSeed]


def _all_spans(scheme: NamedScheme, platforms: dict[str, Search]) -> list[Span | None]:
    """None for the platforms without dates, then each span."""
    dated = any(is_dated(platforms[use.name]) for use in scheme.spec.platforms)
    return [None, *(spans(scheme.spec.dates) if dated else [])]


def _dated_seeds(scheme: NamedScheme, platforms: dict[str, Search], earlier: _Earlier, span: Span | None) -> _Stream:
    return _Stream(span.first if span else date.min, _seeds(scheme, platforms, earlier, span))


def _seeds(
    scheme: NamedScheme, platforms: dict[str, Search], earlier: _Earlier, span: Span | None
) -> Iterator[NavigationSeed]:
    uses = [
        (use, CompiledSearch(platforms[use.name], span), dict[str, str]())
        for use in scheme.spec.platforms
        if is_dated(platforms[use.name]) == (span is not None)
    ]
    for name, group in scheme.spec.groups.items():
        chosen = [
            (use.name, search, encoded, earlier.group_of(scheme, name, use.name, platforms[use.name], span))
            for use, search, encoded in uses
            if not use.groups or name in use.groups
        ]
        if not chosen or all(earlier_group is not None and earlier_group.covers(group) for *_, earlier_group in chosen):
            continue
        for combination in combinations(group):
            words = tuple(filter(None, combination))
            for platform, search, encoded, earlier_group in chosen:
                if earlier_group is not None and combination in earlier_group:
                    continue
                parts = []
                for word in words:
                    if word not in encoded:
                        encoded[word] = search.encoded(word)
                    parts.append(encoded[word])
                yield NavigationSeed(search.url(parts), scheme.name, name, platform, words)


class _KnownGroup:
    """The combinations of a group that were searched before."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self._parts = [{*part.any, *([""] if part.optional else [])} for part in group.values()]

    def covers(self, group: Group) -> bool:
        """Whether all combinations of `group` are here. O(keywords)."""
        if len(group) != len(self._parts):
            return False
        return all(
            {*part.any, *([""] if part.optional else [])} <= words
            for part, words in zip(group.values(), self._parts, strict=True)
        )

    def __contains__(self, combination: Combination) -> bool:
        return len(combination) == len(self._parts) and all(
            word in words for word, words in zip(combination, self._parts, strict=True)
        )


class _Earlier:
    """What an earlier state of the schemes has searched."""

    def __init__(self, state: Schemes | None) -> None:
        self._schemes = (
            {named.name: named for named in state.schemes} if state is not None and not state.incomplete else {}
        )
        self._platforms = {named.name: named.search for named in state.platforms} if state is not None else {}

    def group_of(
        self, scheme: NamedScheme, group: str, platform: str, search: Search, span: Span | None
    ) -> _KnownGroup | None:
        """The group as it was searched on this platform for these dates; None if it was not."""
        before = self._schemes.get(scheme.name)
        if before is None or not _same_first_page(self._platforms.get(platform), search):
            return None
        uses = [use for use in before.spec.platforms if use.name == platform]
        if group not in before.spec.groups or not any(not use.groups or group in use.groups for use in uses):
            return None
        if span is not None and span not in spans(before.spec.dates):
            return None
        return _KnownGroup(before.spec.groups[group])


def _same_first_page(before: Search | None, now: Search) -> bool:
    """Whether the URLs of two searches are the same; the limit of pages is no part of them."""
    names = [name for name in Search.__struct_fields__ if name not in ("limit", "step")]
    return before is not None and all(getattr(before, name) == getattr(now, name) for name in names)


def merged(before: Schemes | None, schemes: Sequence[NamedScheme], platforms: Sequence[NamedPlatform]) -> Schemes:
    """The state with these schemes and platforms in the place of those of the same name."""
    state = before or Schemes()
    by_name = {named.name: named for named in (*state.schemes, *schemes)}
    search_by_name = {named.name: named for named in (*state.platforms, *platforms)}
    return Schemes(list(by_name.values()), list(search_by_name.values()))
