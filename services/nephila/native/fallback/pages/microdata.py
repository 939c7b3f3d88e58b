"""Dates and the author of the page in microdata: `<time itemprop=datePublished>`, `<span itemprop=author>`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final

from nephila.native.fallback.spelling import spelled_text

_NAMES: Final = ("datepublished", "datecreated", "datemodified", "author")
_MAX_TEXT: Final = 100
"""Bytes of a text that is a date or a name."""
_MAX_NODES: Final = 150
"""Nodes of an element whose text is read: some 1024 bytes of markup."""
_MAX_TAGS: Final = 256
"""Elements that are looked at."""
# fmt: off
_INLINE: Final = frozenset((
    "a", "abbr", "b", "bdi", "bdo", "cite", "code", "data", "em", "font", "i", "mark", "q", "s", "small", "span",
    "strong", "sub", "sup", "time", "u",
))
# fmt: on


class Microdata:
    """The first value of each name."""

    def __init__(self, value: Callable[[str | None], str]) -> None:
        self._value = value
        self._values: dict[str, str | None] = {}
        self._tags = 0

    def note(self, node: Any, attributes: dict[str, Any]) -> None:
        """Read the element; the date of a <meta> is noted with the others of its kind."""
        self._tags += 1
        if self._tags > _MAX_TAGS:
            return
        words = (attributes.get("itemprop") or "").lower().split()
        for name in _NAMES:
            if name in words and self._values.get(name) is None:
                self._values[name] = self._author(node) if name == "author" else self._date(node)

    def entries(self) -> Iterator[tuple[str, str]]:
        """(name, value) as of a <meta>."""
        return ((name, value) for name in _NAMES if (value := self._values.get(name)) is not None)

    def _date(self, node: Any) -> str | None:
        return self._stated(node, "datetime") or self._stated(node, "content") or self._text(node)

    def _author(self, node: Any) -> str | None:
        """The name of the person, if the author is an item of its own, else the text."""
        if stated := self._stated(node, "content"):
            return stated
        for inner in _below(node):
            if "name" in (inner.attributes.get("itemprop") or "").lower().split():
                return self._stated(inner, "content") or self._text(inner)
        return self._text(node)

    def _stated(self, node: Any, name: str) -> str:
        return spelled_text(self._value(node.attributes.get(name)))

    @staticmethod
    def _text(node: Any) -> str | None:
        parts = []
        count = 0
        todo = [node.child]
        while todo:
            below = todo.pop()
            if below is None or isinstance(below, str):
                parts.append(below or "")
                continue
            if (count := count + 1) > _MAX_NODES:
                return None
            todo.append(below.next)
            if below.is_text_node:
                parts.append(below.text_content or "")
            elif below.is_element_node:
                space = "" if below.tag in _INLINE else " "
                parts.append(space)
                todo += [space, below.child]
        text = " ".join("".join(parts).split())
        return spelled_text(text) if 0 < len(text.encode()) <= _MAX_TEXT else None


def _below(node: Any) -> Iterator[Any]:
    """The first elements within an element, in document order."""
    nodes = islice(node.traverse(), 1, _MAX_NODES)
    return (below for below in nodes if below.is_element_node)
