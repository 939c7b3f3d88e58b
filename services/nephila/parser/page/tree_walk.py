"""The elements of a tree that `nephila extract` needs, found in one walk; every separate query would cost another one.

Invariant: document order; at most as many of each kind as the constants say, except media (bounded in media.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any, Final

from nephila.kernel.page_facts.author_names import name_of
from nephila.kernel.page_facts.published import as_date, first_date, line_dates
from nephila.parser.page.html_tree import css, css_first, one_by_one

MAX_METAS: Final = 300
MAX_TEXTS: Final = 100
MAX_AUTHORS: Final = 20
MAX_AUTHOR_CHARS: Final = 100
"""A longer byline is the first sentence of the article, or a list."""

_ALWAYS: Final = 'meta[content], script[type="application/ld+json"], img, source, video, iframe, embed'
_HEADINGS: Final = "h1, h2"
_PUBLISHED: Final = '[itemprop~="datePublished"], [itemprop~="dateCreated"]'
_MODIFIED: Final = '[itemprop~="dateModified"]'
_TIMES: Final = "time[datetime]"
_DATED: Final = '[class*="date" i], [class*="publish" i], [class*="posted" i], [class*="time" i]'
_CHANGED: Final = re.compile(r"updat|modif|revis", re.IGNORECASE)
"""Classes of the date of a change."""
_AUTHORS: Final = '[rel="author"], [itemprop~="author"]'
_MEDIA: Final = frozenset(("img", "source", "video", "iframe", "embed"))
_BYLINES: Final = '[class*="byline"], [class*="author"]'


class PageElements:
    """Elements of `tree` (selectolax; None: no elements). Elements that most pages have in their head are searched in
    the rest of the tree only on demand."""

    def __init__(self, tree: Any) -> None:
        self._root = None if tree is None else tree.root
        self.media: list[Any] = []
        self._by_tag: dict[str, list[Any]] = {"meta": [], "script": []}
        for node in self._all(_ALWAYS):
            self._by_tag.get(node.tag, self.media).append(node)

    def _all(self, expression: str) -> list[Any]:
        return [] if self._root is None else css(self._root, expression)

    def json_ld(self) -> list[str]:
        """Texts of the first JSON-LD scripts."""
        return [node.text() for node in self._by_tag["script"][:MAX_TEXTS]]

    def headings(self) -> tuple[list[str], list[str]]:
        """Texts of h1 and h2, and those of h1; the first of each."""
        nodes = self._all(_HEADINGS)
        h1s, h2s = ([node.text() for node in nodes if node.tag == tag][:MAX_TEXTS] for tag in ("h1", "h2"))
        return h1s + h2s, h1s

    def metas(self) -> Iterator[tuple[str, str]]:
        """Names and contents of all <meta> elements, more than the page pass keeps."""
        nodes = [node.attributes for node in self._by_tag["meta"][:MAX_METAS]]
        for key in ("property", "name", "itemprop"):
            for attributes in nodes:
                if name := attributes.get(key):
                    yield name.lower(), attributes.get("content") or ""

    def published(self) -> str:
        """The date of publication by schema.org, in ISO 8601."""
        return first_date(map(_stated, filter(_is_text, self._some(_PUBLISHED))))

    def modified(self) -> str:
        """The date of the last change by schema.org, in ISO 8601."""
        return first_date(map(_stated, filter(_is_text, self._some(_MODIFIED))))

    def time(self) -> str:
        """The first <time> that is a date and not of a change, in ISO 8601."""
        return first_date(_stated(node) for node in self._some(_TIMES) if not _is_of_change(node))

    def dated(self, day_first: bool | None) -> str:
        """The date in the first element whose class names one and whose text holds little else."""
        nodes = (node for node in self._some(_DATED) if not _is_of_change(node))
        texts = (" ".join(node.text(separator=" ").split()) for node in nodes)
        return next(filter(None, (line_dates(text, day_first).published for text in texts)), "")

    def _some(self, expression: str) -> Iterator[Any]:
        return iter(()) if self._root is None else islice(one_by_one(self._root, expression), MAX_TEXTS)

    def author(self) -> str:
        """The author's name from the usual elements, for pages that state none."""
        if self._root is None:
            return ""
        authors = islice(filter(_is_author, self._all(_AUTHORS)), MAX_AUTHORS)
        for node in chain(authors, islice(one_by_one(self._root, _BYLINES), MAX_AUTHORS)):
            inner = css_first(node, '[itemprop="name"]') or node
            # Name, office and date are elements of their own.
            for line in inner.text(separator="\n").split("\n")[:MAX_AUTHORS]:
                text = " ".join(line.split())
                if 0 < len(text) < MAX_AUTHOR_CHARS and (name := name_of(text)):
                    return name
        return ""


def _is_text(node: Any) -> bool:
    return node.tag not in _MEDIA


def _is_of_change(node: Any) -> bool:
    of = node.attributes
    return _CHANGED.search(f"{of.get('class') or ''} {of.get('itemprop') or ''}") is not None


def _stated(node: Any) -> str:
    of = node.attributes
    stated = of.get("datetime") or of.get("content") or ""
    return stated if stated and as_date(stated) else " ".join(node.text().split())[:MAX_AUTHOR_CHARS]


def _is_author(node: Any) -> bool:
    tag = node.tag
    if tag in _MEDIA or tag == "time":
        return False
    of = node.attributes
    itemprop = of.get("itemprop") or ""
    return itemprop != "datePublished" and (
        of.get("rel") == "author" or (tag != "meta" and "author" in itemprop.split())
    )
