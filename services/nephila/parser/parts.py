"""The few elements of a tree that `nephila extract` asks for, found in one walk: each query of its own is one more.

Invariant: document order; at most so many of each as the constants say, media excepted (media.py has its own bound).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

MAX_METAS: Final = 300
MAX_TEXTS: Final = 100
MAX_AUTHORS: Final = 20
MAX_AUTHOR_CHARS: Final = 100
"""A longer byline is the article's first sentence, or a list of all that happened."""

_ALL: Final = (
    'meta[content], script[type="application/ld+json"], h1, h2, time[datetime], [itemprop="datePublished"], '
    '[rel="author"], [itemprop~="author"], img, source, video, iframe, embed'
)
_MEDIA: Final = frozenset(("img", "source", "video", "iframe", "embed"))
_BYLINES: Final = '[class*="byline"], [class*="author"]'
_BY: Final = re.compile(r"^(?:(?:written |posted |published )?by|von|par|por|di|af|av)\b:?\s+", re.IGNORECASE)


class Parts:
    """What one walk over `tree` (selectolax; None has nothing) found."""

    def __init__(self, tree: Any) -> None:
        self._tree = tree
        self.media: list[Any] = []
        self._by_tag: dict[str, list[Any]] = {}
        self._dates: list[Any] = []
        self._authors: list[Any] = []
        for node in () if tree is None else tree.css(_ALL):
            tag = node.tag
            if tag in _MEDIA:
                self.media.append(node)
                continue
            attributes = node.attributes
            said = attributes.get("itemprop")
            if tag == "time" or said == "datePublished":
                self._dates.append(attributes)
            elif attributes.get("rel") == "author" or (tag != "meta" and "author" in (said or "").split()):
                self._authors.append(node)
            self._by_tag.setdefault(tag, []).append(node)

    def texts(self, tag: str) -> list[str]:
        """Texts of the first elements of a tag."""
        return [node.text() for node in self._by_tag.get(tag, ())[:MAX_TEXTS]]

    def headings(self) -> tuple[list[str], list[str]]:
        """Texts of h1 and h2, and those of h1."""
        h1s = self.texts("h1")
        return h1s + self.texts("h2"), h1s

    def metas(self) -> Iterator[tuple[str, str]]:
        """Names and contents of all <meta>: more of them than the page pass keeps."""
        nodes = [node.attributes for node in self._by_tag.get("meta", ())[:MAX_METAS]]
        for key in ("property", "name", "itemprop"):
            for attributes in nodes:
                if name := attributes.get(key):
                    yield name.lower(), attributes.get("content") or ""

    def published(self) -> str:
        """The first <time datetime> or schema.org date of publication."""
        for attributes in self._dates[:1]:
            return (attributes.get("datetime") or attributes.get("content") or "").strip()
        return ""

    def author(self) -> str:
        """What stands where pages put the author's name, when they state none."""
        if self._tree is None:
            return ""
        for node in [*self._authors[:MAX_AUTHORS], *self._tree.css(_BYLINES)[:MAX_AUTHORS]]:
            inner = node.css_first('[itemprop="name"]') or node
            name = " ".join(inner.text().split())
            if 0 < len(name) < MAX_AUTHOR_CHARS:
                return _BY.sub("", name)
        return ""
