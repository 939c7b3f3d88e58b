"""The date of publication of a document: ISO 8601, or none.

A stated date counts if it can be parsed as in a rule (`iso_dates.py`); durations and ambiguous dates are ignored. If no
date is stated, a short line near the headline that holds a date and little else is used. Pure. Invariant: the result is
"", a date, or a date and time, in ISO 8601, of the years 1970 to 2100.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from nephila.parser.page.iso_dates import iso_date

MAX_CHARS: Final = 100
"""Characters of a stated date, with weekday and zone."""
MAX_LINE_CHARS: Final = 60
LINES_BEHIND: Final = 6
LINES_BEFORE: Final = 3
"""Lines around the headline that are searched."""
_ISO: Final = re.compile(r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?")
_YEARS: Final = range(1970, 2101)
_QUOTES: Final = " \t\r\n\"'“”"
_LABEL: Final = re.compile(
    r"(?:(?:first\s+)?(?:published|posted|released|created|date|written|publié|veröffentlicht|publicado|pubblicato)"
    r"(?:\s+(?:on|le|am|el|il))?|on|le|am)\b[\s:]*",
    re.IGNORECASE,
)
_CHANGED: Final = re.compile(r"\b(?:updated?|modified|revised|reviewed|edited|aktualisiert|à jour)\b", re.IGNORECASE)
_DAY: Final = re.compile(
    r"\d{4}\s?[./-]\s?\d{1,2}\s?[./-]\s?\d{1,2}|\d{1,2}\s?[./]\s?\d{1,2}\s?[./]\s?\d{4}"
    r"|[^\W\d_]{3,10}\.?\s+\d{1,2}(?:st|nd|rd|th)?,?\s+\d{4}"
    r"|\d{1,2}(?:st|nd|rd|th|\.)?\s+(?:de\s+)?[^\W\d_]{3,10}\.?,?\s+(?:de\s+)?\d{4}"
)
_BESIDE_CHARS: Final = 28
"""Characters in addition to the date in its line: a weekday, a time, a label, the reading time, a name."""


def as_date(text: str) -> str:
    """A stated date in ISO 8601, unchanged if it is that already; "" if it is no date."""
    stated = text.strip(_QUOTES)
    if not stated or len(stated) > MAX_CHARS:
        return ""
    try:
        if not _ISO.fullmatch(stated):
            stated = iso_date(stated)
        return stated if datetime.fromisoformat(stated).year in _YEARS else ""
    except (ValueError, OverflowError, OSError):
        return ""


def first_date(texts: Iterable[str]) -> str:
    """The first text that is a date."""
    return next(filter(None, map(as_date, texts)), "")


def visible_date(text: str, headlines: Sequence[str]) -> str:
    """The date in a short line near the first headline that is a line of the text; "" if there is none."""
    lines = text.split("\n")
    known = {" ".join(one.split()).lower() for one in headlines} - {""}
    at = next((n for n, line in enumerate(lines) if line.lower() in known), -1)
    if at < 0:
        return ""
    behind = lines[at + 1 : at + 1 + LINES_BEHIND]
    before = lines[max(0, at - LINES_BEFORE) : at][::-1]
    found = [(line, day) for line in (*behind, *before) if (day := _date_line(line))]
    plain = [day for line, day in found if not _CHANGED.search(line)]
    return next(iter(plain or [day for _, day in found]), "")


def _date_line(line: str) -> str:
    if not 8 <= len(line) <= MAX_LINE_CHARS:
        return ""
    stated = _LABEL.sub("", line, count=1)
    found = _DAY.search(stated)
    if found is None or len(stated) - len(found[0]) > _BESIDE_CHARS or len(_DAY.findall(stated)) > 1:
        return ""
    return as_date(found[0])
