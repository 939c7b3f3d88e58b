"""XML documents for rules: which bodies are XML, libxml2's tree of them, CSS and XPath on it.

Names keep their case and prefix. An element in the default namespace has its plain name, so `//entry` and `entry` match
Atom; `//g:price`, `g\\:price` and `g|price` match elements by the prefixes of the document. Invariant: broken XML costs
itself only; entities are those of the document, bounded by libxml2; nothing is fetched.
"""

from __future__ import annotations

import re
from functools import lru_cache
from html.entities import html5
from typing import Any, Final

from nephila.kernel.runtime.late_pattern import late_pattern

HEAD_BYTES: Final = 2048
_TYPE: Final = late_pattern(r"(?:application|text)/xml$|[\w.-]+/[\w.+-]+\+xml$")
_ROOT: Final = late_pattern(
    r"(<\?xml\b.*?\?>)?\s*(?:<!--.*?-->\s*|<!DOCTYPE[^>\[]*(?:\[.*?\]\s*)?>\s*|<\?.*?\?>\s*)*<(?:[\w.-]+:)?([\w.-]+)",
    re.DOTALL,
)
_LISTS: Final = frozenset(("rss", "feed", "rdf", "urlset", "sitemapindex"))
_ENTITY: Final = late_pattern(r"<!\[CDATA\[.*?\]\]>|&(?!(?:amp|lt|gt|quot|apos);)([A-Za-z][A-Za-z0-9]*;)", re.DOTALL)
_PREFIX: Final = late_pattern(r"\"[^\"]*\"|'[^']*'|(?<![\w.:-])([A-Za-z_][\w.-]*):(?=[A-Za-z_*])")
_BREAKS: Final = frozenset(("br", "p", "div", "li", "tr", "h1", "h2", "h3", "h4", "h5", "h6"))


def is_xml(content_type: str, head: str) -> bool:
    """Whether a body is XML; `head`: its start. XHTML is HTML, and so is what a server calls HTML, but for lists."""
    media_type = content_type.partition(";")[0].strip().lower()
    if "xhtml" in media_type:
        return False
    if _TYPE.match(media_type):
        return True
    match = _ROOT.match(head.lstrip("\ufeff \t\r\n"))
    if match is None:
        return False
    root = match[2].lower()
    return root in _LISTS or (match[1] is not None and root != "html" and "html" not in media_type)


def xml_tree(source: str) -> Any:
    """The root of a document; None where there is none. O(n)."""
    from lxml import etree

    if "<!ENTITY" not in source:
        source = _ENTITY.sub(lambda match: html5.get(match[1], match[0]) if match[1] else match[0], source)
    parser = etree.XMLParser(
        encoding="utf-8", recover=True, resolve_entities="internal", no_network=True, load_dtd=False, remove_pis=True
    )
    try:
        root = etree.fromstring(source.replace("\0", "\ufffd").strip().encode("utf-8", "replace"), parser)
    except (etree.XMLSyntaxError, ValueError):
        return None
    if root is None:
        return None
    for node in root.iter(etree.Element):
        if node.prefix is None and node.tag[0] == "{":
            node.tag = node.tag.rpartition("}")[2]
    return root


def namespaces_of(root: Any) -> tuple[tuple[str, str], ...]:
    """Prefixes of a document and their namespaces; of a prefix with several the first. O(n)."""
    by_prefix: dict[str, str] = {}
    for node in root.iter("*"):
        for prefix, uri in node.nsmap.items():
            if prefix:
                by_prefix.setdefault(prefix, uri)
    return tuple(by_prefix.items())


def prefixes(expression: str) -> set[str]:
    """Prefixes of names in an XPath expression."""
    return {match[1] for match in _PREFIX.finditer(expression) if match[1]}


@lru_cache(maxsize=1000)
def xpath(expression: str, namespaces: tuple[tuple[str, str], ...]) -> Any:
    """A compiled expression. Raises ValueError for a prefix that the document does not declare."""
    from lxml import etree

    names = dict(namespaces)
    for prefix in sorted(prefixes(expression) - names.keys()):
        raise ValueError(f"the document declares no prefix {prefix}:")
    try:
        return etree.XPath(expression, regexp=False, smart_strings=False, namespaces=names or None)
    except etree.XPathError as error:
        raise ValueError(f"not XPath 1.0: {' '.join(str(error).split())}") from None


@lru_cache(maxsize=1000)
def css_as_xpath(selector: str, prefix: str) -> str:
    """XPath of a CSS selector. Raises ValueError for a selector that is not understood on XML."""
    from cssselect import GenericTranslator, SelectorError

    try:
        return GenericTranslator().css_to_xpath(selector, prefix)
    except SelectorError as error:
        raise ValueError(f"not a CSS selector for XML: {' '.join(str(error).split())[:200]}") from None


class XmlElement:
    """An element of an XML document."""

    __slots__ = ("node",)

    def __init__(self, node: Any) -> None:
        self.node = node

    def attr(self, name: str) -> str | None:
        """An attribute, with its prefix where it has one; None when it is not there."""
        prefix, colon, local = name.partition(":")
        uri = "http://www.w3.org/XML/1998/namespace" if prefix == "xml" else self.node.nsmap.get(prefix)
        value: str | None = self.node.get(f"{{{uri}}}{local}" if colon and uri else name)
        return value

    def text(self) -> str:
        """All text in it; elements named as blocks of HTML end a line."""
        from lxml import etree

        if not any(below.tag in _BREAKS for below in self.node.iterdescendants("*")):
            text: str = etree.tostring(self.node, encoding="unicode", method="text", with_tail=False)
            return text
        parts: list[str] = []
        for event, node in etree.iterwalk(self.node, events=("start", "end")):
            if node.tag in _BREAKS and node is not self.node:
                parts.append("\n")
            if event == "start":
                parts.append(" ".join((node.text or "").splitlines()))
            elif node is not self.node:
                parts.append(" ".join((node.tail or "").splitlines()))
        return "".join(parts)

    def html(self, which: str) -> str:
        """The markup of the element, inner or outer."""
        from html import escape

        from lxml import etree

        if which != "inner":
            outer: str = etree.tostring(self.node, encoding="unicode", with_tail=False)
            return outer
        return escape(self.node.text or "", quote=False) + "".join(
            etree.tostring(child, encoding="unicode") for child in self.node
        )
