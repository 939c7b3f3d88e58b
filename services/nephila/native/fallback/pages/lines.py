"""Visible text as lines: one line for each block element, white space collapsed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

SPACES: Final = " \t\n\r\f"
_RUN: Final = re.compile(r"[ \t\n\r\f]+")
_LINE_END: Final = re.compile(r"\r\n|\r|\n")

HEADING, ITEM, CELL, CHROME, PRE, MAIN, COMMENT = (1 << bit for bit in range(7))
"""Flags of a line; CHROME: inside nav, header, footer or aside."""


class Context(NamedTuple):
    """Where a text is: tag number of the innermost block element, flags, and whether it is inside a link."""

    tag: int = 0
    flags: int = 0
    linked: bool = False


@dataclass(slots=True)
class TextLine:
    """One line, how many of its bytes are inside links, and its context."""

    text: str
    link_bytes: int
    context: Context


class Lines:
    """Collects lines of at most `limit` bytes in all, line ends included."""

    def __init__(self, limit: int) -> None:
        self.done: list[TextLine] = []
        self._left = limit
        self._parts: list[str] = []
        self._link_bytes = 0
        self._context = Context()
        self._gap = ""
        self._was_linked = False

    def add(self, text: str, context: Context) -> None:
        """Add text with decoded references. O(n)."""
        if context.flags & PRE:
            for number, part in enumerate(_LINE_END.split(text)):
                if number:
                    self.end()
                core = part.strip(SPACES)
                if core:
                    lead, _, trail = part.partition(core)
                    self._put(self._gap + lead, core, context)
                    self._gap = trail
                else:
                    self._gap += part
            return
        text = _RUN.sub(" ", text)
        if text[:1] == " ":
            self.space()
        core = text.strip(" ")
        if core:
            self._put(self._gap, core, context)
            self._gap = " " if text[-1] == " " else ""

    def space(self) -> None:
        """White space outside preformatted text."""
        if self._parts:
            self._gap = " "

    def _put(self, gap: str, core: str, context: Context) -> None:
        size = len((gap + core).encode()) + (1 if self.done and not self._parts else 0)
        if size > self._left:
            over = self._left - (size - len(core.encode()))
            self._left = 0
            core = core.encode()[: max(over, 0)].decode("utf-8", "ignore").rstrip(SPACES)
            if not core:
                return
        else:
            self._left -= size
        if not self._parts:
            self._context = context
        self._parts += (gap, core)
        if context.linked:
            self._link_bytes += len(core.encode()) + (len(gap) if self._was_linked else 0)
        self._was_linked = context.linked

    def end(self) -> None:
        if self._parts:
            self.done.append(TextLine("".join(self._parts), self._link_bytes, self._context))
            self._parts, self._link_bytes, self._was_linked = [], 0, False
        self._gap = ""
