"""HTML as a row of characters, each with what it stands in: a page and its rendered Markdown are compared by it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import unquote, urljoin

from lxml import html as lxml_html
from markdown_it import MarkdownIt

STYLES = {
    "strong": "strong", "b": "strong", "em": "em", "i": "em", "code": "code", "del": "del", "s": "del",
    "sup": "sup", "sub": "sub",
}  # fmt: skip
INVISIBLE = frozenset("\u00ad\u200b\ufeff")


def absolute(reference: str, url: str) -> str:
    """A reference in the one form in which it is compared."""
    return unquote(urljoin(url, reference))


class Place(NamedTuple):
    """What is around a character: styles, the link, and headings, lists, quotes, code and cells from outside in."""

    styles: frozenset[str]
    link: str
    blocks: tuple[str, ...]


class Reading:
    """The visible characters of a piece of HTML, and its pictures and rules."""

    def __init__(self, html: str, url: str) -> None:
        self.url = url
        self.characters: list[tuple[str, Place]] = []
        self.pictures: list[str] = []
        self.rules = 0
        self._lists = 0
        root = lxml_html.document_fromstring(f"<html><body>{html}</body></html>")
        self._walk(root.body, Place(frozenset(), "", ()))

    def _walk(self, node: Any, place: Place) -> None:
        self._text(node.text, place)
        items = cells = 0
        for child in node:
            tag = child.tag if isinstance(child.tag, str) else ""
            inner = place
            if tag in STYLES and not (place.blocks and place.blocks[-1] == "pre"):
                inner = place._replace(styles=place.styles | {STYLES[tag]})
            elif tag == "a":
                inner = place._replace(link=self._resolved(child.get("href")))
            elif tag == "img":
                self.pictures.append(self._resolved(child.get("src")))
            elif tag == "hr":
                self.rules += 1
            elif tag in ("ul", "ol"):
                self._lists += 1
                inner = place._replace(blocks=(*place.blocks, f"{tag}{self._lists}"))
            elif tag == "li":
                items += 1
                inner = place._replace(blocks=(*place.blocks, f"li{items}"))
            elif tag in ("td", "th"):
                cells += 1
                inner = place._replace(blocks=(*place.blocks, f"cell{cells}"))
            elif tag in ("blockquote", "pre", "h1", "h2", "h3", "h4", "h5", "h6"):
                inner = place._replace(blocks=(*place.blocks, tag))
            if tag:
                self._walk(child, inner)
            self._text(child.tail, place)

    def _resolved(self, reference: str | None) -> str:
        return absolute(reference or "", self.url)

    def links(self) -> list[str]:
        """The links that have text, each as often as it begins."""
        places = [place.link for _, place in self.characters]
        return [link for before, link in zip(["", *places], places, strict=False) if link and link != before]

    def _text(self, text: str | None, place: Place) -> None:
        self.characters += [(c, place) for c in text or "" if not c.isspace() and c not in INVISIBLE]

    def differences(self, other: Reading) -> Iterator[str]:
        """Where the two part."""
        if self.pictures != other.pictures:
            yield f"pictures {self.pictures} / {other.pictures}"
        if self.rules != other.rules:
            yield f"rules {self.rules} / {other.rules}"
        for number, pair in enumerate(zip(self.characters, other.characters, strict=False)):
            if pair[0] != pair[1]:
                around = "".join(c for c, _ in self.characters[max(0, number - 10) : number + 10])
                yield f"at {number} ({around!r}): {pair[0]} / {pair[1]}"
                return
        if len(self.characters) != len(other.characters):
            yield f"characters {len(self.characters)} / {len(other.characters)}"


def rendered(markdown: str) -> str:
    """HTML of Markdown: CommonMark with GFM's tables and struck text."""
    renderer = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    found: str = renderer.render(markdown)
    return found
