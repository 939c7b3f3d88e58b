"""A page of the Python API: the columns of its row, and values computed from its body on demand.

Invariant: attributes are columns of the row. Markdown, links and selectors are computed from the body at the first use,
in the calling thread, and cached. The limits of the command line apply: the tree of a page that would cost too much is
not built (`parser.single.extract`), and libxml2's limits hold for selectors.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import IO, TYPE_CHECKING, Any

from nephila.kernel.page_facts.facts import RowFacts
from nephila.kernel.runtime.errors import UsageError

if TYPE_CHECKING:
    from parsel import Selector, SelectorList


@dataclass(frozen=True, slots=True)
class Link:
    """One link of a page."""

    url: str
    text: str
    nofollow: bool = False
    kind: str = "a"
    """a, area, iframe, frame, link, refresh, sitemap or guess."""
    place: str = ""
    """The part of the page: main, nav or other."""


@dataclass(eq=False)
class Page:
    """A fetched URL."""

    url: str
    status: int = 0
    """HTTP status; 0 where nothing was fetched."""
    title: str = ""
    text: str = ""
    """The main text."""
    lang: str = ""
    content_type: str = ""
    """Media type without parameters; empty when the server sent none."""
    charset: str = ""
    """As the server sent it."""
    depth: int = 0
    """Links from a seed."""
    outcome: str = "stored"
    reason: str = ""
    """Reason of the outcome: robots, http_404, redirect, … (README.md, the table "how a fetch ended")."""
    final_url: str = ""
    """Target of a redirect."""
    fetched_at: datetime | None = None
    items: list[dict[str, Any]] = field(default_factory=list)
    """The items that the rule extracted."""
    rule: str = ""
    meta: dict[str, Any] = field(default_factory=dict)
    """Description, canonical URL, encoding, OpenGraph and other metadata."""
    source: bytes | IO[bytes] = field(default=b"", repr=False)
    """The body, or the file in which it waits."""
    add_links: Callable[[list[str]], None] | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        return f"<Page {self.status} {self.url!r} {self.title[:60]!r}>"

    @cached_property
    def body(self) -> bytes:
        """The document as sent, without its content coding; empty where nothing was fetched."""
        if isinstance(self.source, bytes):
            return self.source
        with self.source as file:
            file.seek(0)
            return file.read()

    @cached_property
    def encoding(self) -> str:
        """WHATWG name of the body's encoding."""
        from nephila.native import sniff_encoding
        from nephila.parser.page.body_kind import HEAD_BYTES, BodyKind, kind_of
        from nephila.parser.page.charset import encoding_of, encoding_of_text

        kind, sniffed = kind_of(self.content_type or "text/html", self.body[:HEAD_BYTES])
        if kind is BodyKind.HTML:
            return encoding_of(self.body, self.charset, sniff_encoding)
        return encoding_of_text(self.body, self.charset, self.content_type or sniffed)

    @cached_property
    def html(self) -> str:
        """The document's source as text; what cannot be decoded is U+FFFD."""
        from nephila.parser.page.charset import text_of

        return text_of(self.body, self.encoding)

    @cached_property
    def extracted(self) -> dict[str, Any]:
        """The result of `nephila extract` for the document."""
        from nephila.parser.single.extract import extract

        return extract(self.body, self.url, self.content_type, self.charset, markdown=True)

    @property
    def markdown(self) -> str:
        """The main text as Markdown; the text itself where the document is no HTML."""
        if not self.body:
            return self.text
        text: str = self.extracted.get("markdown") or self.extracted["text"]
        return text

    @cached_property
    def links(self) -> list[Link]:
        """Links in document order, absolute, each URL once."""
        if not self.body:
            return []
        return [
            Link(link["url"], link["text"], link.get("nofollow", False), link.get("kind", "a"), link.get("place", ""))
            for link in self.extracted["links"]
        ]

    @property
    def images(self) -> list[str]:
        """URLs of the images in the content."""
        return list(self.extracted["images"]) if self.body else []

    @cached_property
    def facts(self) -> RowFacts:
        """What the page states about itself, by its text and metadata alone."""
        from nephila.kernel.page_facts.row_facts import row_facts

        return row_facts(
            url=self.url,
            title=self.title,
            lang=self.lang,
            meta=self.meta,
        )

    @property
    def comments(self) -> str:
        """The comments of readers below an article, which the text leaves out."""
        return str(self.extracted["comments"]) if self.body else self.facts.comments

    @property
    def author(self) -> str:
        """The author that the page names; several with "; " between them."""
        return str(self.extracted["author"]) if self.body else "; ".join(self.facts.authors)

    @property
    def authors(self) -> list[str]:
        """The authors that the page names."""
        return list(self.extracted["authors"] if self.body else self.facts.authors)

    @property
    def published(self) -> str:
        """The date of publication, in ISO 8601; "" if the page has none."""
        return str(self.extracted["published"]) if self.body else self.facts.published

    @property
    def modified(self) -> str:
        """The date of the last change, in ISO 8601; "" if the page has none."""
        return str(self.extracted["modified"]) if self.body else self.facts.modified

    @property
    def section(self) -> str:
        """The section of its site that the page names."""
        return str(self.extracted["section"]) if self.body else self.facts.section

    @property
    def image(self) -> str:
        """URL of the picture that the page names as its own."""
        return str(self.extracted["image"]) if self.body else self.facts.image

    @property
    def description(self) -> str:
        """The page's own description (meta description)."""
        return self.facts.description

    @cached_property
    def selector(self) -> Selector:
        """parsel's selector of the document."""
        from parsel import Selector

        xml = self.content_type.endswith(("/xml", "+xml")) and "html" not in self.content_type
        with warnings.catch_warnings():
            # Of a page that is too deep for libxml2, the elements up to its limit are kept; parsel warns about it.
            warnings.simplefilter("ignore")
            return Selector(text=self.html, type="xml" if xml else "html", base_url=self.url, huge_tree=False)

    def css(self, query: str) -> SelectorList[Selector]:
        """Elements by a CSS selector, with parsel's ::text and ::attr(name)."""
        return self.selector.css(query)

    def xpath(self, query: str, **variables: Any) -> SelectorList[Selector]:
        """Elements by an XPath expression."""
        return self.selector.xpath(query, **variables)

    def json(self) -> Any:
        """The document's value, of one that is JSON. Raises `ValueError`."""
        return json.loads(self.html)

    def follow(self, links: str | Iterable[str]) -> None:
        """Have the crawl follow these links of the page as well, relative or absolute; its scope, depth and limits
        decide. Call it before the next page is requested. Raises `UsageError` where there is no crawl."""
        if self.add_links is None:
            raise UsageError(f"{self.url} is not of a crawl; its links cannot be followed")
        self.add_links([links] if isinstance(links, str) else list(links))


def instant(seconds: float) -> datetime | None:
    """A time of a message; None for 0 and for what no calendar holds."""
    try:
        return datetime.fromtimestamp(seconds, UTC) if seconds else None
    except (ValueError, OverflowError, OSError):
        return None


def page_of(document: dict[str, Any], body: bytes, content_type: str, charset: str) -> Page:
    """The page of a body that was extracted already (`document`)."""
    page = Page(
        url=document["url"],
        title=document["title"],
        text=document["text"],
        lang=document["lang"],
        content_type=content_type,
        charset=charset,
        meta={key: document[key] for key in ("description", "canonical", "encoding") if document.get(key)},
        source=body,
    )
    page.__dict__["extracted"] = document
    return page
