"""Texts and attribute values of a page's elements, by value: where a value stands, without a walk for each question.

Made once per page, O(nodes); a value is a dictionary look-up, but for numbers, dates and URLs, which are the same in
several spellings: there each distinct short value is compared. Texts of more than `MAX_CHARS` are not in it.

The text of an element is a part of the text of the page. A reading of each element alone costs O(nodes x depth): a page
with 3000 nested elements took 19 s.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from nephila_rules.induction.wanted import folded, folded_quotes, has_spellings, is_same
from nephila_rules.runtime.document import BLOCK_NAMES, Document

MAX_CHARS: Final = 2000
"""Characters of a text, white space and scripts included."""
ATTRIBUTES: Final = (
    "href",
    "src",
    "content",
    "datetime",
    "value",
    "title",
    "alt",
    "data-price",
    "data-src",
    "data-value",
)
_SKIPPED: Final = frozenset(("script", "style", "template", "noscript", "html", "head", "-comment", "-text", None))
"""None: an instruction, as <?xml ?>."""
_NOT_TEXT: Final = frozenset(("-comment", None))


class Place(NamedTuple):
    """An element or attribute whose text is a value."""

    order: int
    depth: int
    chars: int
    """Of the raw text or attribute."""
    node: Any
    attribute: str
    """Empty: the text."""


class PageTexts:
    def __init__(self, document: Document) -> None:
        self._url = document.url
        self._places: defaultdict[str, list[Place]] = defaultdict(list)
        order = 0
        page_text, elements = _texts_below(document.tree.body)
        for node, depth, start, end, chars in elements:
            attributes = node.attributes
            for name in ATTRIBUTES if attributes else ():
                value = attributes.get(name)
                if value and len(value) <= MAX_CHARS:
                    order += 1
                    self._places[folded(value)].append(Place(order, depth, len(value), node, name))
            if 0 < chars <= MAX_CHARS and (text := folded(page_text[start:end])):
                order += 1
                self._places[text].append(Place(order, depth, chars, node, ""))
        self._spelled: defaultdict[str, list[str]] = defaultdict(list)
        """With plain quotes → as it stands."""
        for text in self._places:
            self._spelled[folded_quotes(text)].append(text)

    def of(self, value: str) -> list[Place]:
        """The places of a value, in document order."""
        texts: Sequence[str] = self._spelled.get(folded_quotes(value), ())
        if has_spellings(value):
            texts = [text for text in self._places if is_same(text, value, self._url)]
        return sorted(spot for text in texts for spot in self._places[text])


class _Element(NamedTuple):
    """An element and its text."""

    node: Any
    depth: int
    start: int
    end: int
    """Its part of the page's text."""
    chars: int
    """Of its raw text, white space and scripts included."""


def _texts_below(top: Any) -> tuple[str, list[_Element]]:
    """The text of the page with a space at each border of a block, and the elements in document order. O(nodes).

    Two spaces of borders never follow each other, so an element with few characters has a short part at any depth."""
    parts: list[str] = []
    elements: list[_Element] = []
    length = raw = depth = 0
    is_border = True
    open_elements: list[tuple[int, int]] = []
    """Index of the element, raw characters before it."""

    def border(node: Any) -> None:
        nonlocal length, is_border
        if not is_border and node.tag in BLOCK_NAMES:
            parts.append(" ")
            length += 1
            is_border = True

    node = top
    while node is not None:
        tag = node.tag
        if tag == "-text":
            text = node.text_content or ""
            parts.append(text)
            length += len(text)
            raw += len(text)
            is_border = is_border and not text
        elif tag in _SKIPPED:
            raw += len(node.text(deep=True)) if tag not in _NOT_TEXT else 0
        else:
            border(node)
            open_elements.append((len(elements), raw))
            elements.append(_Element(node, depth, length, 0, 0))
            if (child := node.child) is not None:
                node, depth = child, depth + 1
                continue
        while True:
            if open_elements and elements[open_elements[-1][0]].depth == depth:
                index, before = open_elements.pop()
                element = elements[index]
                elements[index] = element._replace(end=length, chars=raw - before)
                border(element.node)
            if not depth or node.next is not None:
                break
            node, depth = node.parent, depth - 1
        node = node.next if depth else None
    return "".join(parts), elements


def elements_below(top: Any) -> Iterator[tuple[Any, int]]:
    """The element and those below it that show something, with their depth, in document order."""
    stack = [(top, 0)] if top is not None else []
    while stack:
        node, depth = stack.pop()
        if node.tag in _SKIPPED:
            continue
        yield node, depth
        below = []
        child = node.child
        while child is not None:
            if child.tag not in _SKIPPED:
                below.append((child, depth + 1))
            child = child.next
        stack.extend(reversed(below))
