"""Raw values from a document: what a `Selection` selects within its scope, before conversion to a type.

Invariants: at most `MAX_VALUES` values per selection; an element stays an element until its text, attribute or markup
is taken; JSON data stays data.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Final

from nephila.parser.page.html_tree import css, one_by_one

from nephila_rules.runtime.document import Document, inner_html, lexbor_text, lxml_text, outer_html
from nephila_rules.runtime.function_directory import NO_DIRECTORY
from nephila_rules.runtime.json_values import JsonError, parse_json
from nephila_rules.runtime.selectors import compiled
from nephila_rules.runtime.spec import Selection
from nephila_rules.runtime.xml_tree import XmlElement, css_as_xpath
from nephila_rules.runtime.xml_tree import xpath as xml_xpath

MAX_VALUES: Final = 10_000

Script = Callable[[str, str, Any], Any]
"""Calls a function of a rule, of the language js or py, with a value; raises ValueError with the reason."""


OFF: Final = {
    "js": "scripts are switched off (--rule-scripts of crawl, --scripts of nephila rules)",
    "py": NO_DIRECTORY,
}
"""Language → why its functions are not called, with the remedy."""


class LexborElement:
    """An element of lexbor's tree."""

    __slots__ = ("node",)

    def __init__(self, node: Any) -> None:
        self.node = node

    def attr(self, name: str) -> str | None:
        """An attribute; "" when it has no value, None when it is not there."""
        attributes = self.node.attributes
        return (attributes[name] or "") if name in attributes else None

    def text(self) -> str:
        return lexbor_text(self.node)

    def html(self, which: str) -> str:
        """The markup of the element, inner or outer."""
        return (self.node.inner_html if which == "inner" else self.node.html) or ""


class LxmlElement:
    """An element of libxml2's tree."""

    __slots__ = ("node",)

    def __init__(self, node: Any) -> None:
        self.node = node

    def attr(self, name: str) -> str | None:
        """An attribute, None when it is not there."""
        value: str | None = self.node.get(name)
        return value

    def text(self) -> str:
        return lxml_text(self.node)

    def html(self, which: str) -> str:
        """The markup of the element, inner or outer."""
        return inner_html(self.node) if which == "inner" else outer_html(self.node)


Element = (LexborElement, LxmlElement, XmlElement)


def select(
    selection: Selection, document: Document, scope: Any, script: Script | None = None, *, first: bool = False
) -> Iterator[Any]:
    """The values of a selection within `scope` (None: the whole document), in order, `MAX_VALUES` at most; each is made
    when it is read. Elements where nothing of them is taken. `first`: most likely no more than one is read.
    Raises ValueError, when it is called or when a value is read."""
    values: Iterable[Any] = _begin(selection, document, scope, first)
    if selection.attr:
        values = _attributes(values, selection.attr)
    elif selection.html:
        values = (element.html(selection.html) for element in values if isinstance(element, Element))
    if selection.regex:
        values = _matches(compiled("regex", selection.regex), values, first)
    if selection.path:
        values = _paths(selection, values)
    if selection.js:
        values = _scripted("js", selection.js, values, script)
    elif selection.py:
        values = _scripted("py", selection.py, values, script)
    return islice(values, MAX_VALUES)


def _attributes(values: Iterable[Any], name: str) -> Iterator[str]:
    for element in values:
        value = element.attr(name) if isinstance(element, Element) else None
        if value is not None:
            yield value


def _scripted(language: str, source: str, values: Iterable[Any], script: Script | None) -> Iterator[Any]:
    """Results of a function, which is called for each value; without values once, since it may read the page."""
    if script is None:
        raise ValueError(OFF[language])
    selected = False
    for value in values:
        selected = True
        result = script(language, source, value_or_text(value))
        if result is not None:
            yield result
    if not selected:
        result = script(language, source, None)
        if result is not None:
            yield result


def css_nodes(expression: str, document: Document, scope: Any, *, first: bool) -> Iterable[Any]:
    """Nodes that a CSS selector matches below `scope`, an element of that tree, else in the document; see `select`."""
    if isinstance(scope, LexborElement):
        nodes = css(scope.node, expression)
        if nodes and nodes[0].mem_id == scope.node.mem_id:
            del nodes[0]
        return nodes[:MAX_VALUES]
    root = document.tree.root
    return islice(one_by_one(root, expression) if first else css(root, expression), MAX_VALUES)


def attributes(selection: Selection, document: Document, scope: Any, *, first: bool) -> Iterator[str]:
    """What `select` gives for an attribute of elements by CSS and nothing else."""
    name = selection.attr
    for node in css_nodes(selection.expression, document, scope, first=first):
        of = node.attributes
        if name in of:
            yield of[name] or ""


def value_or_text(value: Any) -> Any:
    """The text of an element; anything else as it is."""
    return value.text() if isinstance(value, Element) else value


def _begin(selection: Selection, document: Document, scope: Any, first: bool) -> Iterable[Any]:
    match selection.source:
        case "css" | "xpath" if document.is_xml:
            return xml_values(selection.source, selection.expression, document, scope)
        case "css":
            return map(LexborElement, css_nodes(selection.expression, document, scope, first=first))
        case "xpath":
            return _xpath(selection.expression, scope.node if isinstance(scope, LxmlElement) else document.etree)
        case "jsonld":
            type_name = selection.expression
            return [entity for entity in document.ld if type_name == "*" or _is_type(entity.get("@type"), type_name)]
        case "meta":
            return list(document.metas(selection.expression)[:MAX_VALUES])
        case "itemprop":
            return _itemprop(selection.expression, document, scope)
        case "page":
            return document.fact(selection.expression)
        case "constant":
            return [selection.expression]
    if scope is not None:
        return [scope]
    if selection.path and not selection.regex:
        return [] if document.json is None else [document.json]
    if selection.regex:
        return [document.source]
    return [document.json] if document.is_json and document.json is not None else [LexborElement(document.tree.root)]


def xml_values(language: str, expression: str, document: Document, scope: Any) -> list[Any]:
    """Values that CSS or XPath selects in an XML document. Raises ValueError."""
    from lxml import etree

    root = scope.node if isinstance(scope, XmlElement) else document.etree
    if root is None:
        return []
    if language == "css":
        expression = css_as_xpath(expression, "descendant::" if root is not document.etree else "descendant-or-self::")
    try:
        result = xml_xpath(expression, document.namespaces)(root)
    except etree.XPathError as error:
        raise ValueError(f"not XPath 1.0: {' '.join(str(error).split())}") from None
    if not isinstance(result, list):
        return [result]
    values = (_of_xpath(node) for node in result[:MAX_VALUES])
    return [XmlElement(value.node) if isinstance(value, LxmlElement) else value for value in values]


def _xpath(expression: str, root: Any) -> list[Any]:
    if root is None:
        return []
    result = compiled("xpath", expression)(root)
    if not isinstance(result, list):
        return [result]
    return [_of_xpath(node) for node in result[:MAX_VALUES]]


def _of_xpath(node: Any) -> Any:
    if isinstance(node, str):
        return node
    if isinstance(node, tuple):  # a namespace
        return ""
    return LxmlElement(node) if isinstance(node.tag, str) else (node.text or "")


def _is_type(types: Any, name: str) -> bool:
    return any(
        isinstance(type_name, str) and re.split("[/:#]", type_name)[-1] == name
        for type_name in (types if isinstance(types, list) else [types])
    )


def _itemprop(name: str, document: Document, scope: Any) -> Iterable[Any]:
    """Values of a microdata property as the standard takes them (HTML, 5.2.4)."""
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    expression = f'[itemprop~="{quoted}"]'
    return (_property(LexborElement(node)) for node in css_nodes(expression, document, scope, first=False))


_PROPERTY: Final = {
    **dict.fromkeys(("a", "area", "link"), "href"),
    **dict.fromkeys(("img", "audio", "embed", "iframe", "source", "track", "video"), "src"),
    "meta": "content",
    "object": "data",
    "data": "value",
    "meter": "value",
    "time": "datetime",
}


def _property(element: LexborElement) -> Any:
    content = element.attr("content")
    if content is not None:
        return content
    attribute = _PROPERTY.get(element.node.tag)
    value = element.attr(attribute) if attribute else None
    return element if value is None else value


def _matches(pattern: Any, values: Iterable[Any], first: bool) -> Iterator[str]:
    for value in values:
        text = value_or_text(value)
        if not isinstance(text, str):
            text = str(text)
        for match in pattern.finditer(text):
            groups = match.groups()
            value = next((group for group in groups if group is not None), None) if groups else match.group(0)
            if value is not None:
                yield value
            if first:
                break


def _paths(selection: Selection, values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        data = value_or_text(value)
        if isinstance(data, str):
            try:
                data = parse_json(data)
            except JsonError:
                continue
        if selection.path == "jsonpath":
            from nephila_rules.runtime.jsonpath import query

            yield from query(compiled("jsonpath", selection.query), data)
        else:
            yield from _jmespath(selection.query, data)


def _jmespath(expression: str, data: Any) -> Iterator[Any]:
    import jmespath.exceptions

    try:
        result = compiled("jmespath", expression).search(data)
    except (jmespath.exceptions.JMESPathError, RecursionError, ValueError, TypeError):
        return
    if isinstance(result, list):
        yield from result
    elif result is not None:
        yield result
