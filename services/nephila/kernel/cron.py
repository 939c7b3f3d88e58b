"""Whether a text is a schedule in five fields of cron; when it is due is the scheduler's to say.

minute hour day-of-month month day-of-week, each `*`, a value, `a-b`, a list of those, with `/step` behind `*` or a
range. Months and days of the week may be named (jan, mon); Sunday is 0 or 7.
"""

from __future__ import annotations

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
FIELDS: tuple[tuple[str, int, int, tuple[str, ...]], ...] = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of the month", 1, 31, ()),
    ("month", 1, 12, MONTHS),
    ("day of the week", 0, 7, DAYS),
)
"""Name, least, most, and names of values from the least on."""


def mistake(text: str) -> str:
    """What is wrong with a schedule, or the empty string. O(length)."""
    words = text.split()
    if len(words) != len(FIELDS):
        return f"it has {len(words)} fields, not five (minute, hour, day of the month, month, day of the week)"
    for word, (name, least, most, names) in zip(words, FIELDS, strict=True):
        for part in word.split(","):
            if not _is_part(part, least, most, names):
                return f"{part[:20]!r} is no {name} from {least} to {most}"
    return ""


def _is_part(part: str, least: int, most: int, names: tuple[str, ...]) -> bool:
    span, slash, step = part.partition("/")
    if slash and not (_number(step) and 1 <= int(step) <= most and (span == "*" or "-" in span)):
        return False
    if span == "*":
        return True
    values = [_value(word, least, names) for word in span.split("-")]
    if len(values) > 2 or any(value is None or not least <= value <= most for value in values):
        return False
    return values == sorted(values, key=lambda value: value or 0)


def _value(word: str, least: int, names: tuple[str, ...]) -> int | None:
    if word.lower() in names:
        return names.index(word.lower()) + least
    return int(word) if _number(word) else None


def _number(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) <= 4
