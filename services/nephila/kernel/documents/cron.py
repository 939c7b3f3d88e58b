"""Five fields of cron in a time zone: when the next run of a schedule is. Pure.

One instant is one run. `after` returns the first instant after a moment, so a program that was stopped during ten runs
has one run due. A local time that a change of the clock skips runs at the change, one that it repeats runs once.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from cronsim import CronSim, CronSimError

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

MAX_CHARS = 200
UTC = "UTC"
_FIELDS = 5


class Schedule:
    """A compiled expression."""

    def __init__(self, expression: str, time_zone: str = "") -> None:
        """`time_zone`: IANA name; empty: UTC. Raises `ValueError` with the reason, as the end of a sentence about the
        expression."""
        self.expression = " ".join(expression.split())
        self._zone = zone(time_zone)
        self._from = self._next = 0.0
        if len(expression) > MAX_CHARS or len(expression.split()) != _FIELDS:
            raise ValueError("is not five fields of cron, as in '0 6 * * *'")
        try:
            self._following(0.0)
        except (CronSimError, StopIteration) as error:
            raise ValueError(f"is no schedule: {str(error).lower() or 'no day ever matches'}") from None

    def after(self, instant: float) -> float:
        """The first instant of the schedule later than this one, seconds since 1970. O(1) for most calls, since all
        pages of a job have the same next run."""
        if not self._from <= instant < self._next:
            self._from, self._next = instant, self._following(instant)
        return self._next

    def _following(self, instant: float) -> float:
        return next(CronSim(self.expression, datetime.fromtimestamp(instant, self._zone))).timestamp()


def zone(name: str) -> ZoneInfo:
    """The zone of an IANA name; empty: UTC. Raises `ValueError` with the reason."""
    from zoneinfo import ZoneInfo  # most crawls have no schedule and no window

    try:
        return ZoneInfo(name or UTC)
    except (OSError, ValueError, KeyError):
        raise ValueError("is no time zone like Europe/Paris, or this machine has no data of it (tzdata)") from None
