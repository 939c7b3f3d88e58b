"""Which keyword groups of a job's schemes match a text: one pass over the text for all keywords, then the groups.

A group matches if its scheme searches it on a platform that leads to the page, and each part that is not optional has
a keyword in the text; a group of optional parts alone needs one of them. A scheme matches if a group does and none of
its exclusions occurs. Cost: O(text) and O(matched groups).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
from nephila.kernel.documents.scheme_schema import Group, NamedScheme, SchemeSpec
from nephila.native import KeywordSet


class KeywordMatch(msgspec.Struct):
    """The keywords of schemes that occur in a text, and the schemes that they match or exclude."""

    keywords: list[str] = msgspec.field(default_factory=list)
    """All keywords that occur, in the order of the schemes."""
    schemes: dict[str, list[str]] = msgspec.field(default_factory=dict)
    """Scheme → its groups that match."""
    excluded: dict[str, str] = msgspec.field(default_factory=dict)
    """Scheme → the exclusion that occurs."""


class _Group(NamedTuple):
    scheme: str
    name: str
    required: frozenset[int]
    platforms: frozenset[str]
    """Platforms on which the scheme searches the group."""


class KeywordMatcher:
    """All keywords of some schemes. Immutable; built in O(bytes of the keywords)."""

    def __init__(self, schemes: Iterable[NamedScheme]) -> None:
        self._terms: dict[str, int] = {}
        self._parts: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        """Keyword → (group, part) that have it."""
        self._exclusions: defaultdict[int, list[str]] = defaultdict(list)
        """Keyword → schemes that exclude it."""
        self._groups: list[_Group] = []
        for scheme in schemes:
            for name, parts in scheme.spec.groups.items():
                self._add_group(scheme, name, parts)
            for word in scheme.spec.exclude:
                self._exclusions[self._number(word)].append(scheme.name)
        self._words = list(self._terms)
        self._set = KeywordSet(self._words)

    def match(self, text: bytes, platforms: Iterable[str]) -> KeywordMatch:
        """The keywords of the UTF-8 text of a page that these platforms lead to, and the groups that it matches."""
        numbers = self._set.find(text)
        result = KeywordMatch([self._words[number] for number in numbers if number in self._parts])
        for number in numbers:
            for scheme in self._exclusions.get(number, ()):
                result.excluded.setdefault(scheme, self._words[number])
        touched: defaultdict[int, set[int]] = defaultdict(set)
        for number in numbers:
            for group, part in self._parts.get(number, ()):
                touched[group].add(part)
        for index in sorted(touched):
            group_of = self._groups[index]
            matches = not group_of.platforms.isdisjoint(platforms) and group_of.required <= touched[index]
            if matches and group_of.scheme not in result.excluded:
                result.schemes.setdefault(group_of.scheme, []).append(group_of.name)
        return result

    def _add_group(self, scheme: NamedScheme, name: str, parts: Group) -> None:
        index = len(self._groups)
        required = frozenset(number for number, part in enumerate(parts.values()) if not part.optional)
        self._groups.append(_Group(scheme.name, name, required, frozenset(platforms_of(scheme.spec, name))))
        for number, part in enumerate(parts.values()):
            for word in part.any:
                self._parts[self._number(word)].append((index, number))

    def _number(self, word: str) -> int:
        return self._terms.setdefault(word, len(self._terms))


def platforms_of(spec: SchemeSpec, group: str) -> list[str]:
    """Platforms on which a scheme searches a group."""
    return [use.name for use in spec.platforms if not use.groups or group in use.groups]


def lacking(parts: Group, keywords: Sequence[str]) -> list[str]:
    """Names of the parts of a group of which a page with these keywords has none, and has to have one."""
    present = set(keywords)
    return [name for name, part in parts.items() if not part.optional and present.isdisjoint(part.any)]
