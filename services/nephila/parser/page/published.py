"""The date of publication of a document: ISO 8601, or none.

A date that is stated counts when it is one: what is written otherwise is read as a rule would read it
(page/iso_dates.py), and what is none - a duration, a date that may be two days - is passed over. Where none is stated,
a short line beside the headline that holds a date and little else is taken. Invariant: pure; the answer is "" or a day,
or a day and time, of ISO 8601, of a year from 1970 to 2100.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from nephila.parser.page.iso_dates import iso_date

MAX_CHARS: Final = 100
"""A stated date is shorter, with its weekday and zone."""
MAX_LINE_CHARS: Final = 60
LINES_BEHIND: Final = 6
LINES_BEFORE: Final = 3
"""Lines around the headline that are looked at."""
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
"""What may stand beside the date in its line: a weekday, a time, a label, some minutes to read, a name."""


def as_date(text: str) -> str:
    """A stated date in ISO 8601, as it is written where it is that already; "" for what is none."""
    said = text.strip(_QUOTES)
    if not said or len(said) > MAX_CHARS:
        return ""
    try:
        if not _ISO.fullmatch(said):
            said = iso_date(said)
        return said if datetime.fromisoformat(said).year in _YEARS else ""
    except (ValueError, OverflowError, OSError):
        return ""


def first_date(texts: Iterable[str]) -> str:
    """The first that is a date."""
    return next(filter(None, map(as_date, texts)), "")


def visible_date(text: str, headlines: Sequence[str]) -> str:
    """The date in a short line beside the first of the headlines that is a line of the text; "" without one."""
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
    said = _LABEL.sub("", line, count=1)
    found = _DAY.search(said)
    if found is None or len(said) - len(found[0]) > _BESIDE_CHARS or len(_DAY.findall(said)) > 1:
        return ""
    return as_date(found[0])
