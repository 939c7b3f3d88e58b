"""Pieces of text of a PDF page, from pdfium's characters. Run in the sandbox.

A piece ends at pdfium's line ends, where the next character is far away, and where the height of the text changes by a
quarter. Cost: one call per character and three per piece.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

import pypdfium2.raw as raw
from nephila.parser.documents.content import without_controls

from nephila_documents.pdf_grids import MAX_LINES, Rule
from nephila_documents.pdf_layout import HYPHEN, Piece

MAX_CHARS: Final = 200_000
"""Of one page."""
MAX_OBJECTS: Final = 20_000
THIN: Final = 2.5
"""Points; a path of less is a line."""
GAP: Final = 1.1
"""Gap between two pieces of a line, in heights of the text: words are a quarter apart, justified ones up to a half."""
# What pdfium writes for the hyphen of a word that was broken at the end of a line.
_HYPHENS: Final = dict.fromkeys((0x02, 0xFFFE), HYPHEN)
_ENDS: Final = frozenset("\r\n")
_FLAGS_BOLD: Final = 1 << 18


def pieces_of(text_page: Any) -> list[Piece]:
    """The pieces of a page, in the order of its content."""
    count = min(raw.FPDFText_CountChars(text_page), MAX_CHARS)
    box = raw.FS_RECTF()
    reference = ctypes.byref(box)
    get_box, get_unicode = raw.FPDFText_GetLooseCharBox, raw.FPDFText_GetUnicode
    pieces: list[Piece] = []
    letters: list[str] = []
    first = 0
    left = bottom = right = top = 0.0

    def close() -> None:
        text = without_controls("".join(letters).translate(_HYPHENS))
        if text.strip():
            pieces.append(_piece(text_page, first, text, (left, bottom, right, top)))
        letters.clear()

    for at in range(count):
        code = get_unicode(text_page, at)
        letter = chr(code) if code < 0xD800 or 0xE000 <= code < 0x110000 else ""
        if letter in _ENDS or not letter:
            if letter:
                close()
            continue
        get_box(text_page, at, reference)
        if letters and letter != " " and _is_apart(box, left, bottom, right, top):
            close()
        if not letters:
            if letter == " ":
                continue
            first, left, bottom, right, top = at, box.left, box.bottom, box.right, box.top
        elif letter != " ":
            left, bottom = min(left, box.left), min(bottom, box.bottom)
            right, top = max(right, box.right), max(top, box.top)
        letters.append(letter)
    close()
    return pieces


def rules_of(page: Any) -> list[Rule]:
    """The lines and rectangles that a page draws, as far as they are horizontal or vertical."""
    rules: list[Rule] = []
    bounds = [ctypes.c_float() for _ in range(4)]
    references = [ctypes.byref(bound) for bound in bounds]
    for at in range(min(raw.FPDFPage_CountObjects(page), MAX_OBJECTS)):
        drawn = raw.FPDFPage_GetObject(page, at)
        if raw.FPDFPageObj_GetType(drawn) != raw.FPDF_PAGEOBJ_PATH or not raw.FPDFPageObj_GetBounds(drawn, *references):
            continue
        left, bottom, right, top = (bound.value for bound in bounds)
        if min(right - left, top - bottom) < THIN:
            if max(right - left, top - bottom) > 2 * THIN:
                rules.append(Rule(left, bottom, right, top))
        elif raw.FPDFPath_CountSegments(drawn) <= 5:
            rules += [Rule(left, bottom, right, bottom), Rule(left, top, right, top)]
            rules += [Rule(left, bottom, left, top), Rule(right, bottom, right, top)]
        if len(rules) > MAX_LINES:
            return []
    return rules


def _is_apart(box: Any, left: float, bottom: float, right: float, top: float) -> bool:
    height = max(top - bottom, 1.0)
    if abs((box.top + box.bottom) / 2 - (top + bottom) / 2) > 0.6 * height:
        return True
    own = box.top - box.bottom
    if own > 1.5 * height or 1.5 * own < height:
        # Superscripts are smaller and belong to their word; a heading beside text does not.
        return bool(own > 1.5 * height or box.left - right > 0.5 * height)
    return bool(box.left - right > GAP * height or box.right < left - height)


def _piece(text_page: Any, at: int, text: str, box: tuple[float, float, float, float]) -> Piece:
    flags = ctypes.c_int(0)
    name = ctypes.create_string_buffer(128)
    size = raw.FPDFText_GetFontInfo(text_page, at, name, 128, ctypes.byref(flags))
    bold = 0 < size <= 128 and b"bold" in name.value.lower()
    return Piece(text, *box, size=box[3] - box[1], bold=bold or bool(flags.value & _FLAGS_BOLD))
