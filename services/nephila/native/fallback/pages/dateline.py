"""Visible lines that hold the date or the author of the page, as core/src/dateline.rs notes them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from nephila.native.fallback.pages.lines import TextLine
from nephila.native.fallback.pages.main_text import page_heading

_BEHIND: Final = 8
_BEFORE: Final = 3
_MOST: Final = 8
_LONGEST: Final = 200
_LONGEST_LABEL: Final = 32
_MOST_YEARS: Final = 256
_LEAST_TITLE: Final = 16
_BY: Final = ("By ", "by ", "BY ")
_YEAR: Final = re.compile(r"(?<![0-9])(?:19|20|25)[0-9]{2}(?![0-9])|年|년")
_CENTURY: Final = "20"
_RECENT: Final = re.compile(r"(?<![0-9])20[0-9]{2}(?![0-9])")
_LABELS: Final = tuple(
    line
    for line in Path(__file__).parents[1].with_name("labels.txt").read_text("utf-8").splitlines()
    if line and not line.startswith("#")
)


def dateline(lines: list[TextLine], title: str, h1: int) -> str:
    """The lines, a line each: those behind the headline, those before it from the nearest on, those behind a label."""
    numbers: list[int] = []
    at = _headline(lines, title, h1)
    if at is not None:
        beside = (*range(at + 1, len(lines))[:_BEHIND], *reversed(range(at)[-_BEFORE:]))
        numbers = [number for number in beside if _is_short(lines[number]) and _is_dateline(lines[number].text)]
    numbers += _labelled(lines)
    return "\n".join(lines[number].text for number in list(dict.fromkeys(numbers))[:_MOST])


def _headline(lines: list[TextLine], title: str, h1: int) -> int | None:
    """The <h1> with which the title begins, else a line with which it begins, else the <h1> of the page."""
    heading = page_heading(lines, title, h1)
    if heading is not None and title.startswith(lines[heading].text):
        return heading
    rows = (n for n, line in enumerate(lines) if _size(line) >= _LEAST_TITLE and title.startswith(line.text))
    return next(rows, heading)


def _labelled(lines: list[TextLine]) -> Iterator[int]:
    """Lines with a year of this century that begin with a label, or that follow one."""
    left = _MOST_YEARS
    for number, line in enumerate(lines):
        years = line.text.count(_CENTURY)
        if years and left > 0 and _is_short(line) and _RECENT.search(line.text):
            before = lines[number - 1] if number else None
            is_behind = before is not None and _size(before) <= _LONGEST_LABEL and _has_label(before)
            if is_behind or _has_label(line):
                yield number
        left -= years


def _size(line: TextLine) -> int:
    return len(line.text.encode())


def _is_short(line: TextLine) -> bool:
    return _size(line) <= _LONGEST


def _has_label(line: TextLine) -> bool:
    return line.text.lower().startswith(_LABELS)


def _is_dateline(text: str) -> bool:
    return text.startswith(_BY) or _YEAR.search(text) is not None
