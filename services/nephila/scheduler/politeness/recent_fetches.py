"""The last fetches of one host: how long they took, and how they ended. For people; no decision depends on it.

Totals since the start of a job say little about a host that began to fail an hour ago. Invariant: `MOST` fetches in
some 350 bytes, so 7 MB for the 20,000 hosts that are objects; a restart or an eviction of the host forgets them.
"""

import math
from array import array
from typing import Final, NamedTuple

MOST: Final = 20
WIDTH: Final = 3
"""Numbers of a fetch: seconds from the first fetch to its end, its duration, its status."""


class RecentNumbers(NamedTuple):
    fetches: int = 0
    """Number of the fetches that the others are about."""
    latency_p50_s: float = 0.0
    latency_p95_s: float = 0.0
    last_status: int = 0
    """Status of HTTP; 0: the last fetch brought no answer, or there was none."""
    error_share: float = 0.0
    """Share without an answer, or with a status of 400 and more."""
    rate: float = 0.0
    """Fetches per second, from the first of them until now."""


class RecentFetches:
    """`note` is O(MOST), `numbers` O(MOST log MOST)."""

    __slots__ = ("_first", "_numbers")

    def __init__(self, now: float) -> None:
        self._first = now
        self._numbers = array("f")

    def note(self, now: float, took_s: float, status: int) -> None:
        """A fetch ended now; status 0: without an answer."""
        if len(self._numbers) == MOST * WIDTH:
            del self._numbers[:WIDTH]
        self._numbers.extend((now - self._first, took_s, status))

    def numbers(self, now: float) -> RecentNumbers:
        numbers = self._numbers
        ended, times, statuses = numbers[0::WIDTH], sorted(numbers[1::WIDTH]), numbers[2::WIDTH]
        if not ended:
            return RecentNumbers()
        return RecentNumbers(
            len(ended),
            round(_quantile(times, 0.5), 4),
            round(_quantile(times, 0.95), 4),
            int(statuses[-1]),
            sum(not 0 < status < 400 for status in statuses) / len(statuses),
            round(len(ended) / max(now - self._first - ended[0], 1.0), 4),
        )


def _quantile(ordered: list[float], part: float) -> float:
    """The smallest value that is not below this part of them."""
    return ordered[max(math.ceil(part * len(ordered)) - 1, 0)]
