"""The block elements that lines stand in, each with its parent and what its attributes say: all of the tree that the
main-text model asks for.

Invariant: a parent's number is smaller than its children's; box 0 is the document. At most MAX_BOXES; elements beyond
that count as part of their parent.
"""

from __future__ import annotations

from typing import Final

from nephila.native._twin import words
from nephila.native._twin.tags import TAGS, ids

MAX_BOXES: Final = 1 << 17
KEY_BYTES: Final = 24
"""Of a class these bytes tell one template from another."""
COMMENT: Final = 1 << words.GROUP["comment"]
HIDDEN: Final = 1 << words.GROUP["hidden"]

_CONTEXTS: Final = (
    "nav", "header", "footer", "aside", "form", "article", "main", "table", "ul", "figure", "blockquote", "noscript",
    "dialog", "details", "body",
)  # fmt: skip
CONTEXTS: Final = {name: number for number, name in enumerate(_CONTEXTS)}
_CONTEXT_OF: Final = [0] * len(TAGS)
for _name, _bit in CONTEXTS.items():
    _CONTEXT_OF[ids(_name)[0]] = 0 if _name == "body" else 1 << _bit
for _tag in ids("ol dl menu dir"):
    _CONTEXT_OF[_tag] = 1 << CONTEXTS["ul"]

# The body of an article is hardly ever called anything but article-body, entry-content, post-text or articleBody.
_ENTRY: Final = 1 << words.GROUP["article"] | 1 << words.GROUP["post"]
_CONTENT: Final = 1 << words.GROUP["content"]
_BODY: Final = 1 << CONTEXTS["body"]

_K: Final = 0x9E37_79B9_7F4A_7C15
_MASK: Final = (1 << 64) - 1


class Box:
    """One block element; `every` and `context` include those of its ancestors, `near` those of the two classed
    boxes above."""

    __slots__ = ("context", "depth", "every", "key", "one", "own", "parent", "tag", "two")

    def __init__(self, parent: int, tag: int) -> None:
        self.parent = parent
        self.tag = tag
        self.depth = self.context = self.every = self.own = self.one = self.two = self.key = 0

    def near(self) -> int:
        """Groups of this box and of the nearest two above that say something."""
        return self.own | self.one | self.two


class Boxes:
    """Grows by one with every block element."""

    def __init__(self) -> None:
        self.items = [Box(0, 0)]

    def open(self, parent: int, tag: int, attrs: list[tuple[bytes, bytes]]) -> int:
        """The number of a new box (the parent's if there are too many). `attrs` as they stand in the page."""
        if len(self.items) >= MAX_BOXES:
            return parent
        above = self.items[parent]
        box = Box(parent, tag)
        own, name = _says(attrs) if attrs else (0, b"")
        if above.own:
            box.one, box.two = above.own, above.one
        else:
            box.one, box.two = above.one, above.two
        box.own = own
        box.every = above.every | own
        box.context = above.context | _CONTEXT_OF[tag]
        if own & _ENTRY and own & _CONTENT:
            box.context |= _BODY
        box.depth = above.depth + 1
        box.key = _mix(above.key, tag, name)
        self.items.append(box)
        return len(self.items) - 1


def _says(attrs: list[tuple[bytes, bytes]]) -> tuple[int, bytes]:
    """Groups of class, id, role and itemprop, `HIDDEN` where it is not shown, and its class in short."""
    own, key = 0, b""
    for name, value in attrs:
        if name == b"class":
            own |= words.of_attribute(value)
            key = value[:KEY_BYTES]
        elif name in (b"id", b"role", b"itemprop"):
            own |= words.of_attribute(value)
        elif name == b"hidden" or (name, value) == (b"aria-hidden", b"true") or (name == b"style" and _unseen(value)):
            own |= HIDDEN
    return own, key


def _unseen(style: bytes) -> bool:
    return b"display:none" in style or b"display: none" in style


def _mix(above: int, tag: int, name: bytes) -> int:
    """Equal for boxes of one template: the same tags and classes from the root on."""
    value = (above ^ tag) * _K & _MASK
    for at in range(0, len(name), 8):
        value = (value << 5 | value >> 59) & _MASK
        value = (value ^ int.from_bytes(name[at : at + 8], "little")) * _K & _MASK
    return value
