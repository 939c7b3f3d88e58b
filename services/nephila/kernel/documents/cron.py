"""Five fields of cron, UTC: when the next run of a schedule is. Pure.

One instant is one run. What is asked for is always the first instant after a moment, so a schedule that slept through
ten of them is due once.
"""

from __future__ import annotations

from datetime import UTC, datetime

from cronsim import CronSim, CronSimError

from nephila.kernel.runtime.errors import UsageError

MAX_CHARS = 200
_FIELDS = 5


class Schedule:
    """A compiled expression."""

    def __init__(self, expression: str, field: str) -> None:
        """Raises `UsageError` that names `field` and what is wrong."""
        self.expression = " ".join(expression.split())
        self._from = self._next = 0.0
        if len(expression) > MAX_CHARS or len(expression.split()) != _FIELDS:
            raise UsageError(f"{field}: {expression[:50]!r} is not five fields of cron, as in '0 6 * * *'")
        try:
            self._following(0.0)
        except (CronSimError, StopIteration) as error:
            what = str(error).lower() or "no day ever matches"
            raise UsageError(f"{field}: {expression!r} is no schedule: {what}") from None

    def after(self, instant: float) -> float:
        """The first instant of the schedule later than this one, seconds since 1970. O(1) for most calls: all pages of
        a job ask for the same one."""
        if not self._from <= instant < self._next:
            self._from, self._next = instant, self._following(instant)
        return self._next

    def _following(self, instant: float) -> float:
        return next(CronSim(self.expression, datetime.fromtimestamp(instant, UTC))).timestamp()
