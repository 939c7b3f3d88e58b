"""A fetched document for rules: its source, its trees and its JSON, each made on first use.

Two trees: lexbor's (HTML as browsers parse it) for CSS, libxml2's for XPath; XML has one, libxml2's, for both.
Invariant: hostile bytes never raise; what cannot be parsed is empty. Time and memory are not bounded here: a tree of a
page outside of `tree_fits`, and a tree of XML, is built in a child process.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache, cached_property
from html import escape, unescape
from typing import Any, Final

import msgspec
from nephila.kernel.page_facts.facts import FACTS, RowFacts
from nephila.kernel.runtime.late_pattern import late_pattern
from nephila.native import query_in
from nephila.parser.page.charset import text_of
from nephila.parser.page.html_tree import css, html_tree

from nephila_rules.runtime.json_values import JsonError, objects, parse_json
from nephila_rules.runtime.xml_tree import HEAD_BYTES, is_xml, namespaces_of, xml_tree

_JSON_TYPE: Final = late_pattern(r"(application|text)/([\w.-]+\+)?json$")
_BLOCK_WORDS: Final = """
br p div li tr td th h1 h2 h3 h4 h5 h6 section article header footer ul ol dl dd dt table blockquote pre figure
figcaption main aside nav form hr script style template noscript
"""
_BLOCKS: Final = tuple(_BLOCK_WORDS.split())
_RAW: Final = frozenset(("script", "style", "template", "noscript"))
"""Elements whose content is not text of the page; selected directly, their content is returned as written."""
BLOCK_NAMES: Final = frozenset(_BLOCKS) - _RAW
_BREAKS: Final = frozenset(_BLOCKS)
# Serialised HTML: "<" is markup except in raw elements, which are closed.
_MARKUP: Final = late_pattern(
    r"<!--.*?-->|<(script|style|template|noscript)\b[^>\"]*(?:\"[^\"]*\"[^>\"]*)*>.*?</\1>|"
    r"</?([a-zA-Z][^\s/>]*)[^>\"]*(?:\"[^\"]*\"[^>\"]*)*>",
    re.DOTALL,
)


class Document:
    """A document and its parsed forms."""

    def __init__(
        self,
        body: bytes,
        url: str = "",
        encoding: str = "utf-8",
        content_type: str = "",
        facts: dict[str, str] | None = None,
        *,
        routes: bool = False,
    ) -> None:
        """`encoding` is a WHATWG name; `facts` is what is known of the page: title, lang, text, fetched_at, meta
        (JSON); `routes`: those of its links are part of their URLs (`kernel.routes`)."""
        self.body = body
        self.url = url
        self.encoding = encoding
        self.content_type = content_type
        self.routes = routes
        self.facts = {"url": url, "content_type": content_type, "encoding": encoding, **(facts or {})}
        self._metas: dict[str, list[str]] = {}

    def reference(self, text: str) -> str:
        """A reference of the document, trimmed, with its query in the document's encoding. Raises `UrlError`."""
        return text.strip() if self.is_json else query_in(text.strip(), self.encoding)

    def fact(self, name: str) -> Sequence[str]:
        """A fact about the page: what is known of it, or what it states about itself (`FACTS`)."""
        value = getattr(self._stated, name) if name in FACTS else self.facts.get(name, "")
        return value if isinstance(value, tuple) else [value] if value else []

    @cached_property
    def _stated(self) -> RowFacts:
        from nephila.kernel.page_facts.row_facts import row_facts

        facts = self.facts
        return row_facts(
            url=self.url,
            title=facts.get("title", ""),
            lang=facts.get("lang", ""),
            meta=msgspec.json.decode(facts.get("meta") or "{}"),
        )

    @cached_property
    def source(self) -> str:
        """The body as text; undecodable bytes are U+FFFD."""
        return text_of(self.body, self.encoding)

    @cached_property
    def tree(self) -> Any:
        """lexbor's tree of the document."""
        if self.encoding == "utf-8" and "source" not in self.__dict__ and _is_utf8(self.body):
            return html_tree(self.body)
        return html_tree(self.source)

    @cached_property
    def etree(self) -> Any:
        """libxml2's tree of the document; None if it is empty."""
        from lxml import etree

        if self.is_xml:
            return xml_tree(self.source)
        parser = etree.HTMLParser(encoding="utf-8", no_network=True, remove_pis=True)
        try:
            return etree.fromstring(self.source.replace("\0", "\ufffd").encode(), parser)
        except (etree.ParserError, etree.XMLSyntaxError, ValueError):
            return None

    @cached_property
    def is_xml(self) -> bool:
        """Whether rules read it as XML."""
        head = self.body[:HEAD_BYTES].lstrip(b"\xef\xbb\xbf \t\r\n")
        return is_xml(self.content_type, self.source[:HEAD_BYTES] if head[:1] != b"<" else head.decode("latin-1"))

    @cached_property
    def namespaces(self) -> tuple[tuple[str, str], ...]:
        """Prefixes of an XML document and their namespaces."""
        return () if self.etree is None else namespaces_of(self.etree)

    @cached_property
    def json(self) -> Any:
        """The document's value when it is JSON, else None."""
        try:
            return parse_json(self.source)
        except JsonError:
            return None

    @cached_property
    def ld(self) -> list[dict[str, Any]]:
        """Every object in the page's JSON-LD, outermost first."""
        entities: list[dict[str, Any]] = []
        for node in css(self.tree.root, 'script[type="application/ld+json"]'):
            try:
                entities += objects(parse_json(node.text()))
            except JsonError:
                continue
        return entities

    def metas(self, name: str) -> list[str]:
        """Contents of the <meta> elements of a name or property, in any case. Not to be changed."""
        if name in self._metas:
            return self._metas[name]
        quoted = name.replace("\\", "\\\\").replace('"', '\\"')
        selector = f'meta[property="{quoted}" i], meta[name="{quoted}" i]'
        head = self.tree.head
        # Usually they are in the head, a small part of the tree.
        nodes = (css(head, selector) if head is not None else []) or css(self.tree.root, selector)
        contents = self._metas[name] = [node.attributes.get("content") or "" for node in nodes]
        return contents

    @property
    def meta_names(self) -> list[str]:
        """Names and properties of all <meta> elements."""
        nodes = self.tree.css("meta[content]")
        return [node.attributes.get("property") or node.attributes.get("name") or "" for node in nodes]

    @property
    def is_json(self) -> bool:
        """Whether its content type is JSON."""
        return _JSON_TYPE.match(self.content_type) is not None


def lexbor_text(node: Any) -> str:
    """Visible text of an element: one line per block, without scripts and comments."""
    return lexbor_texts((node,))[0]


def lexbor_texts(nodes: Iterable[Any]) -> list[str]:
    """The visible texts of some elements."""
    breaks, own = _tag_ids()
    texts: list[str] = []
    for node in nodes:
        if node.tag_id not in own:
            below = node.traverse()
            next(below)  # itself
            for part in below:
                if part.tag_id in breaks:
                    break
            else:
                text = node.text_lexbor()
                texts.append(text.replace("\n", " ") if "\n" in text else text)
                continue
        texts.append(node.text() if node.tag in _RAW else text_of_html(node.html or ""))
    return texts


@cache
def _tag_ids() -> tuple[frozenset[int], frozenset[int]]:
    """Tag ids of the elements that end a line, and of the raw elements and pre. Ids take half the time of names."""
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser("")
    number = {tag: tree.create_node(tag).tag_id for tag in _BREAKS}
    return frozenset(number.values()), frozenset(number[tag] for tag in (*_RAW, "pre"))


def _one_line(text: str) -> str:
    return text.replace("\n", " ") if "\n" in text else text


def lxml_text(node: Any) -> str:
    """Visible text of an element of libxml2's tree, as `lexbor_text` gives it."""
    if node.tag in _RAW:
        return _string(node)
    if node.tag == "pre" or any(below.tag in _BREAKS for below in node.iterdescendants()):
        return text_of_html(outer_html(node))
    return _one_line(_string(node))


def _string(node: Any) -> str:
    """All text of an element, in half the time of XPath's string()."""
    from lxml import etree

    text: str = etree.tostring(node, encoding="unicode", method="text", with_tail=False)
    return text


def inner_html(node: Any) -> str:
    """The markup inside an element of libxml2's tree."""
    from lxml import etree

    parts = [escape(node.text or "", quote=False)]
    parts += [etree.tostring(child, encoding="unicode", method="html") for child in node]
    return "".join(parts)


def outer_html(node: Any) -> str:
    """The markup of an element of libxml2's tree."""
    from lxml import etree

    text: str = etree.tostring(node, encoding="unicode", method="html", with_tail=False)
    return text


def text_of_html(html: str) -> str:
    """Serialised HTML as text: a line end at each border of a block; others are kept only in <pre>. O(n)."""
    parts: list[str] = []
    at = verbatim = 0
    for mark in _MARKUP.finditer(html):
        text = html[at : mark.start()]
        parts.append(text if verbatim else _one_line(text))
        at = mark.end()
        name = (mark[2] or "").lower()
        if name in BLOCK_NAMES:
            parts.append("\n")
        if name == "pre":
            verbatim = max(0, verbatim + (-1 if html[mark.start() + 1] == "/" else 1))
    text = html[at:]
    parts.append(text if verbatim else _one_line(text))
    return unescape("".join(parts))


def _is_utf8(body: bytes) -> bool:
    if body.isascii():
        return True
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return not body.startswith(b"\xef\xbb\xbf")
