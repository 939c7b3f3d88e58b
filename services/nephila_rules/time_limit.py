"""One time limit for all steps of a command. The error line names the limit, the step, and the option."""

from __future__ import annotations

import time
from collections.abc import Callable

from nephila.kernel.runtime.errors import UserError

TRY_S = 30.0
"""Of `nephila rules try`: a fetch of an ordinary page, and twice the time that a page may take in a service."""


class TimeLimit:
    """A limit of time that counts from its creation."""

    def __init__(self, limit_s: float = TRY_S, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._limit_s = limit_s
        self._monotonic = monotonic
        self._until = monotonic() + limit_s

    def left_s(self, step: str) -> float:
        """Seconds that a step may take. Raises `UserError` when none are left."""
        left_s = self._until - self._monotonic()
        if left_s <= 0:
            raise self.exceeded(step)
        return left_s

    def exceeded(self, step: str) -> UserError:
        """The error of a step that did not end in time."""
        return UserError(f"{step} did not end within {self._limit_s:g} s, the limit of all steps; see --time-limit")
