"""The item of a content page as a function of the page and the schemes of its job. Pure.

The item has id, content, resource (the platform), url and time, the title, the keywords and the schemes with their
groups that match. Fields of the platform's rule replace these or are added. A page that matches no scheme has no item;
its note keeps those fields of the rule that its row does not have, so that a later scheme finds the same item as one
that was there before. Invariant: the result depends on page, fields and schemes, not on the schemes before.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple
from zlib import crc32

import msgspec
from nephila.kernel.documents.scheme_schema import NamedScheme, Schemes

from nephila_harvest.schemes.matcher import KeywordMatcher

SEARCH: Final = "search"
"""Key of a row's metadata with the stage, platform, scheme, group and page of its URL; of a content page also with
`MATCHED`, `VERSION` and `FIELDS`."""
MATCHED: Final = "matched"
"""Whether the page matches a scheme."""
VERSION: Final = "version"
"""Version of the schemes with which the page was evaluated."""
FIELDS: Final = "fields"
"""Fields of the rule of a page without an item."""
ALSO: Final = "also"
"""Platforms that lead to the page, beside that of its context."""
KEYWORDS: Final = "keywords"
SCHEMES: Final = "schemes"
_encode = msgspec.json.Encoder().encode


class ContentPage(NamedTuple):
    """The parts of a content page that its items are made of."""

    url_key: str
    url: str
    platform: str
    title: str
    text: str
    time: str
    """When it was published, or else fetched."""
    also: tuple[str, ...] = ()
    """Further platforms that lead to it."""


class Evaluated(NamedTuple):
    item: dict[str, Any] | None
    note: dict[str, Any]
    """What is added to the note of its row under `SEARCH`."""


class SchemeEvaluator:
    """All schemes of a job. Immutable; built in O(bytes of the keywords)."""

    def __init__(self, schemes: Iterable[NamedScheme]) -> None:
        named = list(schemes)
        self.version = (
            crc32(_encode([(scheme.name, scheme.spec.platforms, *_searched(scheme)) for scheme in named])) | 1 << 31
        )
        """Differs when another item may follow from the same page."""
        self._matcher = KeywordMatcher(named)

    def evaluate(self, page: ContentPage, fields: dict[str, Any]) -> Evaluated:
        """`fields` replace those of the page: an earlier item of the page, or fields of the rule."""
        own = _own_fields(page)
        base = {**own, **{name: value for name, value in fields.items() if name not in (KEYWORDS, SCHEMES)}}
        platforms = (page.platform, *page.also)
        match = self._matcher.match(f"{page.title}\n{base['content']}".encode("utf-8", "replace"), platforms)
        note: dict[str, Any] = {MATCHED: bool(match.schemes), VERSION: self.version}
        if page.also:
            note[ALSO] = sorted(page.also)
        if match.schemes:
            return Evaluated({**base, KEYWORDS: match.keywords, SCHEMES: match.schemes}, note)
        added = {name: value for name, value in base.items() if name not in own or own[name] != value}
        return Evaluated(None, {**note, FIELDS: added} if added else note)


def evaluator_of(schemes: Schemes) -> SchemeEvaluator:
    """The evaluator of a job's section `schemes`."""
    return SchemeEvaluator(schemes.schemes)


def _searched(scheme: NamedScheme) -> tuple[object, object]:
    # The dates determine the searches alone.
    return scheme.spec.groups, scheme.spec.exclude


def _own_fields(page: ContentPage) -> dict[str, Any]:
    return {
        "id": page.url_key,
        "content": page.text,
        "resource": page.platform,
        "url": page.url,
        "time": page.time,
        "title": page.title,
    }
