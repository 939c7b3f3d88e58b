"""The stack of open elements: what the standard's tree construction does to it, without a tree.

It exists because the tree decides which tags count (template, frameset, select, svg/math), how the text after a tag is
read, and in which context a line stands. Not modelled: clones of formatting elements (they have the same href), foster
parenting (moves, does not remove), quirks mode. Elements below `DEPTH` are not pushed. The list of active formatting
elements and the length of text nodes are kept only as far as they bound the cost of a tree (`depth`).
"""

from __future__ import annotations

from typing import Final

from nephila.native._twin.tags import (
    C_BLOCK,
    C_BUTTON,
    C_FORMAT,
    C_HEADING,
    C_IMPLIED,
    C_MARKER,
    C_SCOPE,
    C_SPECIAL,
    C_TABLE,
    CATS,
    F_HIDDEN,
    F_TMPL,
    FLAGS,
    ids,
)

DEPTH: Final = 512
HARD_DEPTH: Final = 1024
REOPENED: Final = 8
"""Active formatting elements since the last marker; real pages have up to five."""
ROUNDS: Final = 8
"""Nested blocks from which on the adoption agency leaves an element in the list: it gives up after eight rounds."""
PILED: Final = 64 << 20
"""Bytes that a tree builder copies because text is appended to a text node."""
NO_BOUND: Final = 2**32 - 1
HTML_NS, SVG_NS, MATH_NS = range(3)
MATH_TEXT: Final = 1
HTML_POINT: Final = 2

A, P, LI, TR, TBODY, COLGROUP, COL, TABLE, FORM, TEMPLATE, OPTION, ANNOTATION_XML = ids(
    "a p li tr tbody colgroup col table form template option annotation-xml"
)
_FOSTERS: Final = frozenset(ids("table tbody thead tfoot tr"))
_CELLS: Final = frozenset(ids("td th"))
_CELL_OR_CAPTION: Final = frozenset(ids("td th caption"))
_SECTIONS: Final = frozenset(ids("tbody thead tfoot"))
_HEADINGS: Final = frozenset(ids("h1 h2 h3 h4 h5 h6"))
_PLAIN_SPECIAL: Final = frozenset(ids("address div p"))
_MATH_TEXT: Final = frozenset(ids("mi mo mn ms mtext"))
_SVG_POINTS: Final = frozenset(ids("foreignobject desc title"))
_HIDDEN_FOREIGN: Final = frozenset(ids("svg annotation annotation-xml"))


class Element:
    """An open element; `flags` include those of its ancestors."""

    __slots__ = ("box", "cat", "flags", "name", "ns", "point", "tag")

    def __init__(self, tag: int, name: bytes, ns: int, point: int, cat: int, flags: int, box: int) -> None:
        self.tag = tag
        self.name = name
        self.ns = ns
        self.point = point
        self.cat = cat
        self.flags = flags
        self.box = box


class Stack:
    """The open elements, innermost last, with counts by tag so that most questions need no search."""

    __slots__ = (
        "active", "active_most", "broke", "counts", "deepest", "foreign", "formatting", "fostered", "items", "markers",
        "piled", "refused", "reopens", "run",
    )  # fmt: skip

    def __init__(self) -> None:
        self.items: list[Element] = []
        self.counts = [0] * 256
        self.markers = 0
        self.broke = False
        self.foreign = 0
        self.refused = 0
        self.deepest = 0
        self.formatting: list[int] = []
        """The list of active formatting elements, which a tree builder opens anew in every block; 0 is a marker."""
        self.active = 0
        self.active_most = 0
        self.reopens = False
        self.run = 0
        """Bytes of text since an element was opened or closed: they may be one text node."""
        self.fostered = 0
        """The same of text that a table moves in front of itself."""
        self.piled = 0

    def depth(self) -> int:
        """How deep a tree of this document is nested at most: what was open at once, and formatting elements anew.
        `NO_BOUND`: building a tree may take a time that grows with the square of the input."""
        return NO_BOUND if self.refused or self.reopens or self.piled > PILED else self.deepest + self.active_most

    def _activate(self, tag: int) -> None:
        """Put a formatting element on the list."""
        if len(self.formatting) >= REOPENED and 0 not in self.formatting[-REOPENED:]:
            self.reopens = True
            return
        self.formatting.append(tag)
        self.active += 1
        self.active_most = max(self.active_most, self.active)

    def _deactivate(self, tag: int) -> None:
        """Take the last such element off the list, not beyond a marker."""
        for at in range(len(self.formatting) - 1, -1, -1):
            if self.formatting[at] == tag:
                del self.formatting[at]
                self.active -= 1
                return
            if not self.formatting[at]:
                return

    def insert(self) -> None:
        """An element goes in without being opened: text after it is another node's."""
        self.run = 0

    def text(self, length: int) -> None:
        """Text of so many bytes stands here: what a tree builder copies when it is appended to the text before."""
        self.piled += self.run
        self.run += length

    def foster(self, length: int) -> None:
        """The same of text that is not blank and may stand directly in a table."""
        if self.items and self.items[-1].tag in _FOSTERS and self.items[-1].ns == HTML_NS:
            self.piled += self.fostered
            self.fostered += length

    def flags(self) -> int:
        """Context flags of the innermost element."""
        return self.items[-1].flags if self.items else 0

    def box(self) -> int:
        """The box that the innermost element stands in."""
        return self.items[-1].box if self.items else 0

    def inner(self) -> int:
        """Tag of the innermost element, 0 without one."""
        return self.items[-1].tag if self.items else 0

    def block(self) -> int:
        """The innermost block element, 0 outside any. O(depth), usually a step or two."""
        for element in reversed(self.items):
            if element.cat & C_BLOCK:
                return element.tag
        return 0

    def push(self, tag: int, name: bytes, extra: int) -> None:
        """Open an HTML element."""
        self.run = 0
        if CATS[tag] & C_FORMAT:
            self._activate(tag)
        depth = len(self.items)
        if depth >= DEPTH and (depth >= HARD_DEPTH or tag != TEMPLATE):
            self.refused += 1
            return
        cat = CATS[tag]
        self.counts[tag] += 1
        if cat & C_MARKER:
            self.markers += 1
            self.formatting.append(0)
        self.items.append(Element(tag, name, HTML_NS, 0, cat, self.flags() | FLAGS[tag] | extra, self.box()))
        self.deepest = max(self.deepest, len(self.items))

    def push_foreign(self, tag: int, name: bytes, ns: int, encoded_html: bool) -> None:
        """Open an svg or math element."""
        if len(self.items) >= HARD_DEPTH:
            self.refused += 1
            return
        point = cat = 0
        if ns == MATH_NS and tag in _MATH_TEXT:
            point = MATH_TEXT
        elif ns == MATH_NS and tag == ANNOTATION_XML:
            point = HTML_POINT if encoded_html else 0
            cat = C_SPECIAL | C_SCOPE
        elif ns == SVG_NS and tag in _SVG_POINTS:
            point = HTML_POINT
        if point:
            cat = C_SPECIAL | C_SCOPE
        self.foreign += 1
        self.run = 0
        own = F_HIDDEN if tag in _HIDDEN_FOREIGN else 0
        self.items.append(Element(tag, name, ns, point, cat, self.flags() | own, self.box()))
        self.deepest = max(self.deepest, len(self.items))

    def pop(self) -> None:
        """Close the innermost element."""
        if self.items:
            self._forget(self.items.pop())

    def _forget(self, element: Element) -> None:
        self.run = 0
        if element.ns != HTML_NS:
            self.foreign -= 1
            return
        self.counts[element.tag] -= 1
        if element.cat & C_MARKER:
            self.markers -= 1
            while self.formatting and self.formatting.pop():
                self.active -= 1
        if element.cat & C_BLOCK and not element.flags & F_HIDDEN:
            self.broke = True

    def pop_to(self, at: int) -> None:
        """Pop down to and with index `at`."""
        while len(self.items) > at:
            self.pop()

    def in_scope(self, tag: int, bound: int) -> int:
        """Index of the innermost `tag` in the scope bounded by the categories `bound`, or -1. O(depth) at worst."""
        if not self.counts[tag]:
            return -1
        items = self.items
        for at in range(len(items) - 1, -1, -1):
            element = items[at]
            if element.tag == tag and element.ns == HTML_NS:
                return at
            if element.cat & bound:
                return -1
        return -1

    def close_scoped(self, tag: int, bound: int) -> bool:
        """Pop to the innermost `tag` if it is in scope."""
        at = self.in_scope(tag, bound)
        if at >= 0:
            self.pop_to(at)
        return at >= 0

    def close_p(self) -> None:
        """Close an open paragraph in button scope."""
        if self.counts[P]:
            self.close_scoped(P, C_SCOPE | C_BUTTON)

    def top_is(self, tag: int) -> bool:
        """Is the innermost element an HTML one of this tag?"""
        return bool(self.items) and self.items[-1].tag == tag and self.items[-1].ns == HTML_NS

    def implied_end_tags(self, keep: int) -> None:
        """Close what may be closed without an end tag, except `keep`."""
        while self.items:
            top = self.items[-1]
            if top.ns != HTML_NS or not top.cat & C_IMPLIED or top.tag == keep:
                return
            self.pop()

    def close_item(self, tags: tuple[int, ...]) -> None:
        """`<li>`, `<dd>`, `<dt>`: close the open one up to a special element other than address, div and p."""
        if not any(self.counts[tag] for tag in tags):
            return
        for at in range(len(self.items) - 1, -1, -1):
            element = self.items[at]
            if element.ns == HTML_NS and element.tag in tags:
                self.pop_to(at)
                return
            if element.cat & C_SPECIAL and element.tag not in _PLAIN_SPECIAL:
                return

    def close_heading(self) -> None:
        """Close the innermost heading in scope, whatever its level."""
        if not any(self.counts[tag] for tag in _HEADINGS):
            return
        for at in range(len(self.items) - 1, -1, -1):
            element = self.items[at]
            if element.ns == HTML_NS and element.cat & C_HEADING:
                self.pop_to(at)
                return
            if element.cat & C_SCOPE:
                return

    def close_anchor(self) -> None:
        """`<a>` ends the one before it, wherever that is."""
        self.close_formatting(A)
        self._deactivate(A)

    def close_formatting(self, tag: int) -> None:
        """What the adoption agency leaves of the stack: the element goes, blocks inside it stay."""
        if not self.counts[tag]:
            # In quirks mode <table> leaves <p> open: the element may be there, out of scope, and then it stays.
            if self.table_mode() < 0:
                self._deactivate(tag)
            return
        furthest = -1
        blocks = 0
        for at in range(len(self.items) - 1, -1, -1):
            element = self.items[at]
            if element.tag == tag and element.ns == HTML_NS:
                if blocks < ROUNDS:
                    self._deactivate(tag)
                if furthest < 0:
                    self.pop_to(at)
                else:
                    self._adopt(at, furthest)
                return
            if element.cat & C_SCOPE:
                return
            if element.cat & C_SPECIAL:
                furthest = at
                blocks += 1

    def _adopt(self, at: int, block: int) -> None:
        """Remove the formatting element at `at` and the plain ones between it and the block."""
        kept = self.items[:at]
        for index in range(at, len(self.items)):
            element = self.items[index]
            if index == at or (index < block and not element.cat & C_FORMAT):
                self._forget(element)
            else:
                kept.append(element)
        self.items = kept

    def close_other(self, tag: int, name: bytes) -> None:
        """ "Any other end tag": the innermost such element, unless a special one lies above it."""
        if not self.counts[tag]:
            return
        for at in range(len(self.items) - 1, -1, -1):
            element = self.items[at]
            if element.name == name and element.ns == HTML_NS:
                self.pop_to(at)
                return
            if element.cat & C_SPECIAL:
                return

    def close_form(self) -> None:
        """`</form>` takes its element out of the middle."""
        at = self.in_scope(FORM, C_SCOPE)
        if at < 0:
            return
        if self.counts[TEMPLATE]:
            self.pop_to(at)
            return
        self.implied_end_tags(0)
        self._forget(self.items.pop(at))

    def table(self) -> int:
        """Index of the innermost table in table scope, or -1."""
        return self.in_scope(TABLE, C_TABLE)

    def table_mode(self) -> int:
        """Index of the table if the insertion mode is one of a table (not of a cell or caption in it), else -1."""
        at = self.table()
        inside = any(e.ns == HTML_NS and e.tag in _CELL_OR_CAPTION for e in self.items[at:]) if at >= 0 else True
        return -1 if inside else at

    def open_table_part(self, tag: int) -> bool:
        """Pop to where a table part belongs and push what the standard implies. False = ignored tag."""
        table = self.table()
        if table < 0:
            # In a template's own table modes everything is excluded anyway: keep the nesting only.
            return self.counts[TEMPLATE] > 0 and self.flags() & F_TMPL != 0
        section = row = -1
        for at in range(table + 1, len(self.items)):
            element = self.items[at]
            if element.ns == HTML_NS:
                if section < 0 and element.tag in _SECTIONS:
                    section = at
                elif row < 0 and element.tag == TR:
                    row = at
        if tag == COL and self.top_is(COLGROUP):
            return True
        if tag in _CELLS and row >= 0:
            self.pop_to(row + 1)
        elif tag == TR or tag in _CELLS:
            self.pop_to((section if section >= 0 else table) + 1)
            if section < 0:
                self.push(TBODY, b"tbody", 0)
            if tag != TR:
                self.push(TR, b"tr", 0)
        else:
            self.pop_to(table + 1)
            if tag == COL:
                self.push(COLGROUP, b"colgroup", 0)
        return True
