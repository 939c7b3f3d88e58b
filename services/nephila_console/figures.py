"""Numbers as people read them in reports and screens. Pure."""

from __future__ import annotations

from typing import Final

from nephila_console.messages import translate as _

_UNITS: Final = ("KB", "MB", "GB", "TB")


def count(number: float) -> str:
    """The number with commas: 1,234."""
    return f"{number:,.0f}"


def size(number: float, bytes_word: str = "bytes") -> str:
    """Bytes as 3.4 MB, of 1024 each; `bytes_word` is the unit below 1024."""
    units = (bytes_word, *_UNITS)
    unit = 0
    while number >= 1024 and unit < len(units) - 1:
        number, unit = number / 1024, unit + 1
    return f"{number:,.0f} {units[unit]}" if unit == 0 or number >= 100 else f"{number:,.1f} {units[unit]}"


def span(seconds: float) -> str:
    """A length of time in its two largest units."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} {_('ms')}"
    if seconds < 60:
        number = f"{seconds:.1f}".removesuffix(".0") if seconds < 10 else f"{seconds:.0f}"
        return f"{number} {_('s')}"
    for unit, below, name, under in ((86400, 3600, "d", "h"), (3600, 60, "h", "min"), (60, 1, "min", "s")):
        if seconds >= unit:
            rest = int(seconds % unit // below)
            return f"{int(seconds // unit)} {_(name)}" + (f" {rest} {_(under)}" if rest else "")
    raise AssertionError("unreachable")


def share(part: float, whole: float) -> str:
    """A percentage; a part above zero is never shown as 0 %."""
    if not whole or not part:
        return "0 %"
    percent = 100 * part / whole
    return "< 0.1 %" if percent < 0.1 else f"{percent:.1f} %" if percent < 10 else f"{percent:.0f} %"
