"""Title, authors, dates, section and image that a document states about itself: an article in JSON-LD, <meta> elements.

Invariants: only stated facts, nothing is inferred from the text. A date is ISO 8601; a string that is no author name is
dropped. The tables are in order of trust.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from html import unescape
from typing import Any, Final, NamedTuple

import msgspec

from nephila.kernel.page_facts.author_names import name_of
from nephila.kernel.page_facts.headline import closer_to_title
from nephila.kernel.page_facts.published import first_date

MAX_JSON_BYTES: Final = 512 * 1024
"""A larger JSON-LD block is a catalogue, not a byline."""
MAX_NODES: Final = 2_000
"""Objects examined in all blocks together."""

_TITLES: Final = (
    "dc:title",
    "dcterm:title",
    "dcterms:title",
    "og:title",
    "weibo:article:title",
    "weibo:webpage:title",
    "title",
    "twitter:title",
    "parsely-title",
    "citation_title",
)
_AUTHORS: Final = (
    "jsonld:article:author",
    "dc:creator",
    "dcterm:creator",
    "dcterms:creator",
    "author",
    "parsely-author",
    "article:author",
    "sailthru:author",
    "citation_author",
    "book:author",
    "jsonld:author",
)
_DATES: Final = (
    "jsonld:article:published",
    "article:published_time",
    "og:article:published_time",
    "og:published_time",
    "parsely-pub-date",
    "sailthru:date",
    "citation_publication_date",
    "citation_date",
    "dcterms:created",
    "dcterms:issued",
    "dc:date:issued",
    "dcterms:date",
    "dc:date",
    "pubdate",
    "publishdate",
    "date",
    "jsonld:published",
)
_PUBLISHED: Final = re.compile(
    r"(?:.*[-_:. ])?(?:publi(?:sh(?:ed)?|cation)|posted|release)[-_:. ]?(?:date|time|on|at)?"
)
"""Other names of a date of publication."""
_MODIFIED: Final = (
    "jsonld:article:modified",
    "article:modified_time",
    "og:article:modified_time",
    "og:modified_time",
    "og:updated_time",
    "article:updated_time",
    "datemodified",
    "dcterms:modified",
    "dc:date:modified",
    "last-modified",
    "lastmod",
    "modified",
    "updated",
    "revised",
    "jsonld:modified",
)
_SECTIONS: Final = ("article:section", "og:article:section", "parsely-section", "articlesection", "section")
_IMAGES: Final = (
    "og:image",
    "og:image:url",
    "og:image:secure_url",
    "twitter:image",
    "twitter:image:src",
    "parsely-image-url",
    "sailthru:image:full",
    "thumbnail",
    "jsonld:article:image",
)
_ARTICLE: Final = re.compile(
    r"(?:Advertiser|Analysis|AskPublic|Background|Opinion|Reportage|Review|Satirical|News|Medical|Scholarly|Tech|Blog"
    r"|Live|Discussion|Social|Media|Forum|Content)*(?:Article|Posting)|Report|APIReference"
)
"""Types of schema.org that are an article: https://schema.org/Article and its subtypes."""


_ENTITY: Final = re.compile(r"&#?\w{1,10};")
_NESTED: Final = (dict, list)
_WRAPPED: Final = re.compile(r"\A\s*(?://\s*)?<!\[CDATA\[|(?://\s*)?\]\]>\s*\Z")
"""CDATA markers around a script in XHTML."""


class Byline(NamedTuple):
    """Statements of a document about itself; empty if it states nothing."""

    title: str
    author: str
    published: str
    modified: str
    section: str
    image: str
    """As it is written: a relative URL may need the base of the document."""


def byline(pairs: Iterable[tuple[str, str]], json_ld: Iterable[str], title: str = "") -> Byline:
    """`pairs` are the <meta> names (lower case) and contents, `json_ld` the texts of the JSON-LD scripts, `title` the
    document's. Order of trust: an article in JSON-LD, <meta>, any JSON-LD object with a headline."""
    first: dict[str, str] = {}
    for names, value in pairs:
        if value.strip():
            for name in names.split():
                first.setdefault(name.replace(".", ":"), value.strip())
    nodes = list(_nodes(json_ld))
    article = next((node for node in nodes if _is_article(node.get("@type"))), {})
    others = [node for node in nodes if "datePublished" in node or "headline" in node]
    # article:author is more often a profile URL than a name.
    authors = [
        _person(article.get("author")),
        *_all(first, _AUTHORS),
        *(_person(other.get("author")) for other in others),
    ]
    titles = [_named(article, title), *_all(first, _TITLES), *(_text(node.get("headline")) for node in nodes)]
    dates = [_text(article.get("datePublished")), *_all(first, _DATES)]
    dates += (_text(node.get("datePublished")) for node in nodes)
    dates += (value for name, value in first.items() if _PUBLISHED.fullmatch(name))
    changed = [_text(article.get("dateModified")), *_all(first, _MODIFIED)]
    changed += (_text(node.get("dateModified")) for node in nodes)
    return Byline(
        title=_unescaped(_some(titles), title),
        author=_some(name_of(author) for author in authors if not _is_url(author)),
        published=first_date(dates),
        modified=first_date(changed),
        section=_unescaped(_some((_first(article.get("articleSection")), *_all(first, _SECTIONS))), title),
        image=_some((*_all(first, _IMAGES), _first(article.get("image")), _first(article.get("thumbnailUrl")))),
    )


def _is_article(kind: Any) -> bool:
    kinds = kind[:20] if isinstance(kind, list) else [kind]
    return any(isinstance(name, str) and _ARTICLE.fullmatch(name.rpartition("/")[2]) is not None for name in kinds)


def _named(article: dict[str, Any], title: str) -> str:
    """The article's name, or its headline if only that is similar to the document's title (sites put their own name
    into `name`)."""
    name, headline = _text(article.get("name")), _text(article.get("headline"))
    return closer_to_title(name, headline, title) if name and headline and name != headline else name or headline


def _unescaped(text: str, title: str) -> str:
    """Text without HTML entities, which some sites write into JSON. A title that has entities itself is about them and
    keeps them."""
    return text if "&" not in text or _ENTITY.search(title) else unescape(text)


def _some(texts: Iterable[str]) -> str:
    return next(filter(None, texts), "")


def _all(first: dict[str, str], names: Iterable[str]) -> Iterator[str]:
    return (first[name] for name in names if name in first)


def _is_url(text: str) -> bool:
    return text.startswith(("http://", "https://", "//"))


def _nodes(texts: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Every object in the blocks, breadth first; a block that is no JSON is skipped."""
    left = MAX_NODES
    for text in texts:
        if len(text) > MAX_JSON_BYTES:
            continue
        try:
            queue: deque[Any] = deque((msgspec.json.decode(_WRAPPED.sub("", text).strip()),))
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            continue
        while queue and left:
            value = queue.popleft()
            if isinstance(value, list):
                queue.extend(value)
            elif isinstance(value, dict):
                left -= 1
                yield value
                queue.extend([inner for inner in value.values() if type(inner) in _NESTED])


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _first(value: Any) -> str:
    """A text, the URL or name of an object, or those of the first of a list."""
    for entry in value[:1] if isinstance(value, list) else [value]:
        return _text(entry.get("url") or entry.get("name") if isinstance(entry, dict) else entry)
    return ""


def _person(value: Any) -> str:
    """Name of a person or names of several."""
    if isinstance(value, list):
        return ", ".join(
            name for name in (_person(entry) for entry in value[:20] if not isinstance(entry, list)) if name
        )
    name = _text(value.get("name") if isinstance(value, dict) else value)
    return "" if _is_url(name) else name
