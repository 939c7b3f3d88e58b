"""Hours of the day in which a job fetches, in a time zone. Pure.

A window is open while the local time of day is within its hours. So a change of the clock needs no rule of its own:
hours that are skipped do not come on that day, and hours that are repeated come twice. Invariant: the states that
`state` returns follow each other without a gap, open and closed in turn.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from nephila.kernel.documents.cron import zone
from nephila.kernel.documents.field_types import instant_text

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

PATTERN = r"^([01]\d|2[0-3]):[0-5]\d-(([01]\d|2[0-3]):[0-5]\d|24:00)$"
_DAY_MINUTES = 24 * 60
_DAYS = 4
"""Days within which a window opens or closes. A zone may skip a whole day, and a change of the clock a window."""
_KEPT = 1024
"""Distinct sets of windows that are kept compiled: the directories of a site have the same ones."""


class Window(NamedTuple):
    """Minutes of the day; the end is not within. An end before the begin is on the next day."""

    text: str
    begin: int
    end: int

    def contains(self, minute: int) -> bool:
        """Whether the window is open in this minute of the day."""
        if self.begin < self.end:
            return self.begin <= minute < self.end
        return minute >= self.begin or minute < self.end


class WindowState(NamedTuple):
    """Whether windows are open, and the instant until which that holds."""

    is_open: bool
    until: float
    """UTC seconds; infinite where the windows are never closed."""


def window(text: str) -> Window:
    """Hours like 22:00-06:00. Raises `ValueError` with the reason, as the end of a sentence about the text."""
    text = "".join(text.split())
    if re.fullmatch(PATTERN, text, re.ASCII) is None:
        raise ValueError("is no window like 22:00-06:00")
    begin, end = (int(part[:2]) * 60 + int(part[3:]) for part in text.split("-"))
    if begin == end:
        raise ValueError("ends when it begins; for all hours leave windows out")
    return Window(text, begin, end)


class Windows:
    """The windows of a job. `state` is O(1) between two changes, and some 50 datetimes at a change."""

    def __init__(self, hours: Iterable[str], time_zone: str = "") -> None:
        """`time_zone`: IANA name; empty: UTC. Raises `ValueError`."""
        self._windows = [window(text) for text in hours]
        self._zone = zone(time_zone)
        self._from = math.inf
        self._state = WindowState(False, -math.inf)

    def state(self, utc: float) -> WindowState:
        if not self._from <= utc < self._state.until:
            self._from, self._state = utc, self._found(utc)
        return self._state

    def opens_at(self, utc: float) -> float:
        """The instant itself while a window is open, else that of the next opening."""
        state = self.state(utc)
        return utc if state.is_open else state.until

    def words(self, until: float) -> str:
        """The reason why a job fetches nothing until then."""
        hours = ", ".join(span.text for span in self._windows)
        return f"waits for its window, {hours} {self._zone.key}, until {instant_text(until)}"

    def _is_open(self, utc: float) -> bool:
        local = datetime.fromtimestamp(utc, self._zone)
        minute = local.hour * 60 + local.minute
        return any(span.contains(minute) for span in self._windows)

    def _found(self, utc: float) -> WindowState:
        is_open = self._is_open(utc)
        changes = sorted({at for at in self._changes(utc) if at > utc})
        return WindowState(is_open, next((at for at in changes if self._is_open(at) != is_open), math.inf))

    def _changes(self, utc: float) -> Iterator[float]:
        """Instants of the next days at which a window may open or close: its hours, and changes of the clock."""
        today = datetime.fromtimestamp(utc, self._zone).date()
        minutes = {minute % _DAY_MINUTES for span in self._windows for minute in (span.begin, span.end)}
        for day in (today + timedelta(days=n) for n in range(_DAYS)):
            for minute in minutes:
                for fold in (0, 1):
                    local = datetime.combine(day, time(minute // 60, minute % 60, fold=fold), self._zone)
                    yield local.timestamp()
            yield from _clock_change(day, self._zone)


@lru_cache(_KEPT)
def compiled(hours: tuple[str, ...], time_zone: str) -> Windows:
    """Windows, of which many jobs may have the same."""
    return Windows(hours, time_zone)


def _clock_change(day: date, zone: ZoneInfo) -> Iterator[float]:
    """The instant within the 24 hours from the begin of a day at which the offset of the zone changes, if it does."""

    def offset(at: int) -> timedelta | None:
        return datetime.fromtimestamp(at, zone).utcoffset()

    low = int(datetime.combine(day, time(), UTC).timestamp()) - _DAY_MINUTES * 60
    high = low + 3 * _DAY_MINUTES * 60
    if offset(low) == offset(high):
        return
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if offset(middle) == offset(low) else (low, middle)
    yield float(high)
