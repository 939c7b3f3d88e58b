"""Title, author and date of a document from what it says about itself: <meta> elements, then JSON-LD.

Invariant: only stated facts, as stated; nothing is guessed from the text. The tables are in order of trust.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

MAX_JSON_BYTES: Final = 512 * 1024
"""A larger JSON-LD block is a catalogue, not a byline."""
MAX_NODES: Final = 2_000
"""Objects looked at in all blocks together."""

_TITLES: Final = ("og:title", "twitter:title", "citation_title", "dc.title", "parsely-title")
_AUTHORS: Final = (
    "author",
    "article:author",
    "parsely-author",
    "sailthru.author",
    "citation_author",
    "dc.creator",
    "dcterms.creator",
    "book:author",
)
_DATES: Final = (
    "article:published_time",
    "og:article:published_time",
    "og:published_time",
    "parsely-pub-date",
    "sailthru.date",
    "citation_publication_date",
    "citation_date",
    "dcterms.created",
    "dcterms.issued",
    "dc.date.issued",
    "dcterms.date",
    "dc.date",
    "pubdate",
    "publishdate",
    "date",
)


class Byline(NamedTuple):
    """What a document says of itself; "" where it says nothing."""

    title: str
    author: str
    published: str


def byline(pairs: Iterable[tuple[str, str]], json_ld: Iterable[str]) -> Byline:
    """`pairs` are the <meta> names (lower case) and contents, `json_ld` the texts of the JSON-LD scripts."""
    first: dict[str, str] = {}
    for name, value in pairs:
        if value.strip():
            first.setdefault(name, value.strip())
    title, author, published = (_of(first, names) for names in (_TITLES, _AUTHORS, _DATES))
    if _is_url(author):
        # article:author is a profile page more often than a name.
        author = ""
    if title and author and published:
        return Byline(title, author, published)
    for node in _nodes(json_ld):
        title = title or _text(node.get("headline"))
        if "datePublished" in node or "headline" in node:
            author = author or _person(node.get("author"))
        published = published or _text(node.get("datePublished"))
    return Byline(title, author, published)


def _of(first: dict[str, str], names: Iterable[str]) -> str:
    return next((first[name] for name in names if name in first), "")


def _is_url(text: str) -> bool:
    return text.startswith(("http://", "https://", "//"))


def _nodes(texts: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Every object in the blocks, breadth first; a block that is no JSON is left out."""
    left = MAX_NODES
    for text in texts:
        if len(text) > MAX_JSON_BYTES:
            continue
        try:
            queue: deque[Any] = deque((msgspec.json.decode(text.strip()),))
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            continue
        while queue and left:
            value = queue.popleft()
            if isinstance(value, list):
                queue.extend(value)
            elif isinstance(value, dict):
                left -= 1
                yield value
                queue.extend(inner for inner in value.values() if isinstance(inner, dict | list))


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _person(value: Any) -> str:
    """Name of a person or names of several."""
    if isinstance(value, list):
        return ", ".join(name for name in (_person(one) for one in value[:20] if not isinstance(one, list)) if name)
    name = _text(value.get("name") if isinstance(value, dict) else value)
    return "" if _is_url(name) else name
