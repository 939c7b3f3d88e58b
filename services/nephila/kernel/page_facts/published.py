"""The dates of publication and of the last change of a document: ISO 8601, or none.

A stated date counts if it can be parsed as in a rule (`iso_dates.py`); durations and ambiguous dates are ignored. If no
date is stated, the URL, marked elements and short lines of the text are used. Pure. Invariant: the result is "", a
date, or a date and time, in ISO 8601, of the years 1970 to 2100.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import date, datetime
from typing import Final, NamedTuple

from nephila.kernel.page_facts.iso_dates import iso_date

MAX_CHARS: Final = 100
"""Characters of a stated date, with weekday and zone."""
MAX_LINE_CHARS: Final = 100
_ISO: Final = re.compile(r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?")
_YEARS: Final = range(1970, 2101)
_QUOTES: Final = " \t\r\n\"'“”"
_LABEL: Final = re.compile(
    r"(?:(?:first\s+)?(?:published|posted|released|created|date|written|publié|veröffentlicht|publicado|pubblicato"
    r"|yayın\w*|publikováno|opublikowan\w*|опубликован\w*|نشرت?|تاريخ النشر|发布(?:时间|于)?|發布|发表于|公開日?"
    r"|投稿日?|掲載日?|입력|게시일?|등록)(?:\s+(?:on|le|am|el|il))?|on|le|am)\b[\s:]*",
    re.IGNORECASE,
)
_CHANGED: Final = re.compile(
    r"\b(?:updated?|modified|revised|reviewed|edited|aktualisiert|à jour|actualizado|aggiornato"
    r"|güncelle\w*|aktualiz\w*|zaktualiz\w*|обновлен\w*|оновлен\w*|cập nhật)\b|更新|修改|编辑|編輯|수정|업데이트|تحديث",
    re.IGNORECASE,
)
_OF_MEMBER: Final = re.compile(r"(?:joined|registered|member since)\b", re.IGNORECASE)
"""Labels of the date since which the author of a post is a member."""
_MONTH_WORD: Final = r"(?:[^\W\d_]|[\u0900-\u0903\u093a-\u094f\u0e31\u0e34-\u0e4e]){2,12}(?:\s(?:الثاني|الأول))?"
_DAY: Final = re.compile(
    r"(?:\d{4}|(?:令和|平成|昭和|民國|民国)\s?(?:\d{1,3}|元))\s?[年년]\s?\d{1,2}\s?[月월]\s?\d{1,2}\s?[日일]?"
    r"|\d{4}\s?[./-]\s?\d{1,2}\s?[./-]\s?\d{1,2}|\d{1,2}\s?[./]\s?\d{1,2}\s?[./]\s?\d{4}"
    r"|\d{1,2}\s+tháng\s+\d{1,2}(?:\s?,|\s+năm)?\s+\d{4}|\d{4}\.?\s+[^\W\d_]{3,12}\.?\s+\d{1,2}\.?"
    rf"|{_MONTH_WORD}\.?\s+\d{{1,2}}(?:st|nd|rd|th)?,?\s+\d{{4}}"
    rf"|\d{{1,2}}(?:st|nd|rd|th|\.)?\s+(?:de\s+)?{_MONTH_WORD}\.?,?\s+(?:de\s+)?\d{{4}}"
)
_IN_URL: Final = re.compile(r"(?<!\d)((?:19|20)\d\d)(?:/(\d{1,2}|[a-z]{3,9})/(\d{1,2})(?=/)|-(\d\d)-(\d\d)(?!\d))")
_BEFORE: Final = re.compile(
    r"(?:^|[|•·⋅●∙›»–—,:]|\b(?:on|published|posted|updated|modified|revised|reviewed))[\s:]*$", re.IGNORECASE
)
_AFTER: Final = re.compile(r"\s*(?:$|[|•·⋅●∙›»–—,.(]|at\b|by\b|updated\b|\d{1,2}:)", re.IGNORECASE)
"""Beside a date that is no part of a sentence."""
_BESIDE_CHARS: Final = 28
"""Characters in addition to the date in its line: a weekday, a time, a label, the reading time, a name."""
_MONTH_FIRST: Final = frozenset(("en-us", "en_us", "en-ph"))


def as_date(text: str) -> str:
    """A stated date in ISO 8601, unchanged if it is that already; "" if it is no date."""
    stated = text.strip(_QUOTES)
    if not stated or len(stated) > MAX_CHARS:
        return ""
    return stated if _ISO.fullmatch(stated) and _in_calendar(stated) else _read(stated)


def _read(stated: str, day_first: bool | None = None) -> str:
    try:
        day = iso_date(stated, day_first=day_first)
    except (ValueError, OverflowError, OSError):
        return ""
    return day if _in_calendar(day) else ""


def _in_calendar(stated: str) -> bool:
    try:
        return datetime.fromisoformat(stated).year in _YEARS
    except ValueError:
        return False


def first_date(texts: Iterable[str]) -> str:
    """The first text that is a date."""
    return next(filter(None, map(as_date, texts)), "")


def url_date(url: str) -> str:
    """The day in the path of a URL, as /2026/11/23/ or /2026-11-23-; "" if there is none."""
    path = url.partition("//")[2].partition("/")[2].partition("?")[0]
    for year, month, day, month_2, day_2 in _IN_URL.findall(path.lower()):
        month, day = month or month_2, day or day_2
        if day_text := _read(f"{year}-{month}-{day}" if month.isdecimal() else f"{day} {month} {year}"):
            return day_text
    return ""


def day_order(lang: str) -> bool | None:
    """Whether the day precedes the month in 03/04/2026 by the language of the page; None if both are usual."""
    if lang.lower() in _MONTH_FIRST:
        return False
    return None if lang.lower() in ("", "en") else True


class Dates(NamedTuple):
    """The dates of publication and of the last change; "" if there is none."""

    published: str = ""
    modified: str = ""


def visible_dates(lines: Iterable[str], day_first: bool | None = None) -> Dates:
    """The first date of publication and the first of a change in lines that hold little else."""
    pairs = [line_dates(line, day_first) for line in lines]
    first = next((pair.published for pair in pairs if pair.published), "")
    return Dates(first, next((pair.modified for pair in pairs if pair.modified), ""))


def line_dates(line: str, day_first: bool | None = None) -> Dates:
    """The dates of a line that holds dates and little else, or dates between separators; none of any other. Of two
    dates one has to be of a change."""
    if not 8 <= len(line) <= MAX_LINE_CHARS or _OF_MEMBER.match(line):
        return Dates()
    if not (matches := list(_DAY.finditer(line))) or len(matches) > 2:
        return Dates()
    ends = [0, *(match.end() for match in matches)]
    changed = [
        _CHANGED.search(line[end : match.start()]) is not None for end, match in zip(ends, matches, strict=False)
    ]
    beside = len(_LABEL.sub("", line, count=1)) - sum(len(match[0]) for match in matches)
    if (len(matches) == 2 and sum(changed) != 1) or (beside > _BESIDE_CHARS and not all(map(_stands_alone, matches))):
        return Dates()
    read = [(_read(match[0], day_first), late) for match, late in zip(matches, changed, strict=True)]
    first = next((day for day, late in read if not late), "")
    return Dates(first, next((day for day, late in read if late), ""))


def _stands_alone(match: re.Match[str]) -> bool:
    before, after = match.string[: match.start()], match.string[match.end() :]
    return _BEFORE.search(before) is not None and _AFTER.match(after) is not None


def is_of_build(stated: Dates, visible: str) -> bool:
    """Whether the stated publication is the time when the site was built: not before the last change, and later than
    the date that readers see."""
    built = stated.published[:10]
    return bool(visible and built and stated.modified) and stated.modified[:10] <= built and visible < built


def published(stated: str, url_day: str, *sources: Callable[[], str]) -> str:
    """The stated date, or the day in the URL if they differ by a time zone; else the first date of the sources, of
    which one on the day in the URL has precedence. A source is read only if it is needed."""
    if stated:
        return url_day if url_day and not stated.startswith(url_day) and _is_neighbour(url_day, stated) else stated
    days = filter(None, (source() for source in sources))
    if url_day:
        return next((day for day in days if day.startswith(url_day)), url_day)
    return next(days, "")


def _is_neighbour(day: str, other: str) -> bool:
    """Whether two days differ by one at most: by the time zone."""
    return abs((date.fromisoformat(day) - date.fromisoformat(other[:10])).days) <= 1
