"""The main text of a page by a simple filter over its text lines: what is link-heavy, short or in a page's frame goes.

A line is kept by its own length, link share and place (main, navigation, comments), a heading by what follows it. When
that leaves less than a quarter of the visible text, the filter has misunderstood the page and everything is kept.
Linear in the number of lines; no tree, no model of text density over neighbouring lines.
"""

from __future__ import annotations

import struct
from typing import Final

LINE: Final = struct.Struct("<IIIHH")
"""One text line: start, length and bytes inside links (bytes of the text), tag id, flags."""

HEADING: Final = 1
ITEM: Final = 2
CELL: Final = 4
CHROME: Final = 8
"""Inside nav, header, footer, aside, form and the like."""
PRE: Final = 16
MAIN: Final = 32
"""Inside main or article."""
COMMENT: Final = 64

MAX_LINK_SHARE: Final = 0.4
"""Bytes inside links by bytes of the line; menus are near 1, prose under 0.2."""
MIN_LINE_BYTES: Final = 60
"""A line this long reads as prose wherever it stands."""
MIN_MAIN_LINE_BYTES: Final = 20
"""Enough inside main or article."""
MIN_SHARE: Final = 0.25
"""Least part of the visible text that a filtered text may be."""

_ENDS: Final = tuple(mark.encode() for mark in '.!?:;"…”。！？')


def main_text(text: bytes, lines: bytes) -> bytes:
    """The lines of `text` that belong to the page's subject; `lines` is the page pass's packed table of them."""
    rows = list(LINE.iter_unpack(lines))
    total = sum(row[1] for row in rows)
    in_main = sum(row[1] for row in rows if row[4] & MAIN and not row[4] & (CHROME | COMMENT))
    only_main = in_main >= MIN_SHARE * total
    kept: list[bytes] = []
    headings: list[bytes] = []
    size = 0
    for start, length, link, _tag, flags in rows:
        line = text[start : start + length].strip()
        if not line or flags & (CHROME | COMMENT) or (only_main and not flags & MAIN):
            continue
        if flags & HEADING:
            headings.append(line)
        elif _is_prose(line, link, flags):
            # A heading counts once something stands below it; the titles of link lists never do.
            kept += headings[-2:]
            kept.append(line)
            size += len(line)
            headings.clear()
        elif link > MAX_LINK_SHARE * length:
            headings.clear()
    return b"\n".join(kept) if kept and size >= MIN_SHARE * total else text


def _is_prose(line: bytes, link: int, flags: int) -> bool:
    if link > MAX_LINK_SHARE * len(line):
        return False
    if flags & (PRE | CELL):
        return True
    if len(line) >= (MIN_MAIN_LINE_BYTES if flags & MAIN else MIN_LINE_BYTES):
        return True
    return line.endswith(_ENDS) and len(line) >= MIN_MAIN_LINE_BYTES
