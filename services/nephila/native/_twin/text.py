"""Visible text as lines: one line per block, whitespace collapsed, with what a main-text model asks of a line.

Invariant: the text is its lines joined by a newline; no line is empty or ends in whitespace.
"""

from __future__ import annotations

import re
from typing import Final

SPACES: Final = b" \t\n\r\f"
_RUN: Final = re.compile(rb"[ \t\n\r\f]+")
_PIECE: Final = re.compile(rb"\r\n|[\r\n]|[ \t\f]+|[^ \t\n\r\f]+")

Context = tuple[int, int, bool, bool, int, int]
"""Tag id of the innermost block, context flags, preformatted, inside a link, box, tag id of the innermost element."""


class TextSink:
    """Collects lines up to a number of bytes; a line is [start, length, bytes inside links, tag id, flags, box,
    tag id of the innermost element where it begins, empty lines of preformatted text before it]."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.parts: list[bytes] = []
        self.length = 0
        self.lines: list[list[int]] = []
        self._open = False
        self._space = False
        self._pending = b""
        self._blank = 0
        self._full = False
        self._linked = False

    def break_line(self) -> None:
        """End the current line; nothing happens between lines."""
        if self._open:
            self.lines[-1][1] = self.length - self.lines[-1][0]
            self._open = False
        self._space = False
        self._blank = 0
        self._pending = b""

    def add_space(self) -> None:
        """Whitespace outside preformatted text."""
        self._space = self._open

    def add(self, part: bytes, context: Context) -> None:
        """Add text whose references are decoded already. O(n)."""
        if self._full:
            return
        if context[2]:
            self._add_preformatted(part, context)
            return
        collapsed = _RUN.sub(b" ", part)
        core = collapsed.strip(b" ")
        if collapsed[:1] == b" " and self._open:
            self._space = True
        if core:
            self._put(core, context)
            if collapsed[-1:] == b" ":
                self._space = self._open

    def _add_preformatted(self, part: bytes, context: Context) -> None:
        for piece in _PIECE.findall(part):
            if piece in (b"\n", b"\r", b"\r\n"):
                blank = 0 if self._open else min(self._blank + 1, 255)
                self.break_line()
                self._blank = blank
            elif piece[0] in SPACES:
                self._pending += piece
            else:
                self._put(piece, context)

    def _put(self, run: bytes, context: Context) -> None:
        """Append a run that neither starts nor ends with whitespace, after what separates it from the text before."""
        if self._full:
            return
        gap = self._pending or (b" " if self._space else b"")
        newline = not self._open and self.length > 0
        used = self.length + newline + len(gap)
        if used + len(run) > self.limit:
            self._full = True
            run = cut(run, max(self.limit - used, 0))
            if not run:
                return
        if not self._open:
            if newline:
                self.parts.append(b"\n")
                self.length += 1
            self.lines.append([self.length, 0, 0, context[0], context[1] & 0xFF, *context[4:6], self._blank])
            self._open = True
            self._linked = False
        self.parts.append(gap)
        self.parts.append(run)
        self.length += len(gap) + len(run)
        if context[3]:
            # The gap belongs to the link if there is link on both sides of it.
            self.lines[-1][2] += len(run) + (len(gap) if self._linked else 0)
        self._linked = context[3]
        self._space = False
        self._pending = b""


def cut(data: bytes, limit: int) -> bytes:
    """The longest prefix of at most `limit` bytes that ends at a character, without trailing whitespace."""
    if len(data) <= limit:
        return data
    while limit > 0 and data[limit] & 0xC0 == 0x80:
        limit -= 1
    return data[:limit].rstrip(SPACES)


def collapse(data: bytes, limit: int) -> bytes:
    """Whitespace collapsed and trimmed, cut to `limit` bytes at a character. O(n)."""
    return cut(_RUN.sub(b" ", data).strip(b" "), limit)
