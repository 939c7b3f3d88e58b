"""Texts and attribute values of a page's elements, by value: where a value stands, without a walk for each question.

Made once per page, O(nodes); a value is a dictionary look-up, but for numbers, dates and URLs, which are the same in
several spellings: there each distinct short value is compared. Texts of more than `MAX_CHARS` are not in it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from nephila.parser.rules.document import Document, lexbor_text
from nephila.rulekit.induction.wanted import folded, folded_quotes, has_spellings, is_same

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


class Place(NamedTuple):
    """Where a value stands."""

    order: int
    depth: int
    chars: int
    """Of the raw text or attribute."""
    node: Any
    attribute: str
    """Empty: the text."""


class PageTexts:
    """See the module."""

    def __init__(self, document: Document) -> None:
        self._url = document.url
        self._places: defaultdict[str, list[Place]] = defaultdict(list)
        order = 0
        for node, depth in elements_below(document.tree.body):
            attributes = node.attributes
            for name in ATTRIBUTES if attributes else ():
                value = attributes.get(name)
                if value and len(value) <= MAX_CHARS:
                    order += 1
                    self._places[folded(value)].append(Place(order, depth, len(value), node, name))
            chars = len(node.text(deep=True))
            if 0 < chars <= MAX_CHARS and (text := folded(lexbor_text(node))):
                order += 1
                self._places[text].append(Place(order, depth, chars, node, ""))
        self._spelled: defaultdict[str, list[str]] = defaultdict(list)
        """With plain quotes → as it stands."""
        for text in self._places:
            self._spelled[folded_quotes(text)].append(text)

    def of(self, wanted: str) -> list[Place]:
        """The places of a value, in document order."""
        texts: Sequence[str] = self._spelled.get(folded_quotes(wanted), ())
        if has_spellings(wanted):
            texts = [text for text in self._places if is_same(text, wanted, self._url)]
        return sorted(place for text in texts for place in self._places[text])


def elements_below(top: Any) -> Iterator[tuple[Any, int]]:
    """The element and those below it that show something, with their depth, in document order."""
    stack = [(top, 0)] if top is not None else []
    while stack:
        node, depth = stack.pop()
        if node.tag in _SKIPPED:
            continue
        yield node, depth
        below = []
        one = node.child
        while one is not None:
            if one.tag not in _SKIPPED:
                below.append((one, depth + 1))
            one = one.next
        stack.extend(reversed(below))
