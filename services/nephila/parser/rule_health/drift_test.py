"""One share that should stay as it is: learned from pages, tested with each further one, by a sum of log-likelihoods.

Each page brings a number x within 0 and 1 (of a field: the share of the page's items that have it). The test is Page's
CUSUM (E. S. Page, Biometrika 41, 1954) of x·ln(p1/p0) + (1-x)·ln((1-p1)/(1-p0)): p0 is what is usual, p1 the first sign
of trouble. For any x within 0 and 1 of mean p0 or more the mean of its exponential is at most 1, so that a false alarm
comes once in e^LIMIT pages or more rarely (Lorden 1971); a field that was on nearly all pages and is on none crosses
LIMIT after some ten. Two alternatives: *fewer*, p1 is half of p0, for high shares, and *gone*, a twentieth, for all
that are not low. p0 is the lower end of what the pages so far allow (Wilson's interval), so that few pages make the
test slow and not wrong. Of *fewer* it never falls, so that a slow decline is no excuse; of *gone* its odds are a third
of that, so that a share may swing with the kinds of pages that come. Pure; a plain value that can be stored.
"""

from __future__ import annotations

from math import log, log1p, sqrt
from typing import Final

import msgspec

LEARN: Final = 10
"""Pages before anything is tested."""
LEARN_MORE: Final = 60
"""Pages before shares are tested that are not nearly all: such fields come and go with the kinds of pages."""
LIMIT: Final = 11.0
"""Of a sum: e^11 is 60,000 pages."""
RECOVERY_LIMIT: Final = 6.0
"""Of the sum that speaks for the usual share, after an alarm."""
MEMORY: Final = 5_000.0
"""Pages that count for what is usual; of older ones ever less."""
LEARN_DELAY: Final = 15.0
"""Pages that come after one before it is learned from."""
RELIABLE: Final = 0.95
"""From here on a share is tested for *fewer*."""
_HIGH: Final = 0.8
"""A share that was so high is well again when it is: half of it is not."""
_ALWAYS: Final = 0.95
LOW: Final = 0.2
"""Below this nothing is tested: that a rare field is gone shows in hundreds of pages only."""
_HIGHEST: Final = 0.98
_RECENT: Final = 8.0
FEWER: Final = "fewer"
GONE: Final = "gone"
_PART: Final = {FEWER: 0.5, GONE: 0.05}


class DriftTest(msgspec.Struct, array_like=True):
    """See the module."""

    pages: float = 0.0
    good: float = 0.0
    """Of these pages; together what is usual."""
    held_pages: float = 0.0
    held_good: float = 0.0
    new_pages: float = 0.0
    new_good: float = 0.0
    """Newer ones still: those around a change come mixed, and what is usual must not be learned from them."""
    fewer_sum: float = 0.0
    gone_sum: float = 0.0
    """The sums."""
    run_pages: float = 0.0
    run_good: float = 0.0
    """Since one of them rose from zero."""
    p0: float = 0.0
    """p0: what the usual share is at least."""
    highest_p0: float = 0.0
    """The highest p0 so far."""
    recent: float = 0.0
    """Share over the last pages."""
    alarm: str = ""
    """FEWER or GONE after an alarm."""
    recovery_p0: float = 0.0
    """p0 for the way back."""
    before: float = 0.0
    recovery_sum: float = 0.0

    @property
    def usual(self) -> float:
        """The share that was learned."""
        return self.good / self.pages if self.pages else 0.0

    def add(
        self, pages: float, good: float, *, known: float = 0.0, least: float = 0.0, gone_only: bool = False
    ) -> bool:
        """Take in so many further pages; True when it went wrong or came back with them. O(1).

        `known`: p0 of the version before, for while this one learns; 0: none. `least`: nothing is tested below it.
        """
        if pages <= 0:
            return False
        self.recent += (min(good / pages, 1.0) - self.recent) * pages / (pages + min(_RECENT, self.pages))
        if self.alarm:
            return self._recover(pages, good)
        self.new_pages += pages
        self.new_good += good
        learned = self.pages >= LEARN
        if good >= pages and not (self.gone_sum or self.fewer_sum):
            # Nothing that could rise: the common case.
            self._learn(LEARN_DELAY if learned else 0.0)
            return False
        low = self.p0 if learned else known
        sure = self.pages >= LEARN_MORE or not learned or self.usual >= _ALWAYS
        if sure and low >= LOW and (self.highest_p0 or low) >= least:
            self.gone_sum = max(0.0, self.gone_sum + _llr(_third_of_odds(low), GONE, pages, good))
        if learned and not gone_only and self.highest_p0 >= max(RELIABLE, least):
            self.fewer_sum = max(0.0, self.fewer_sum + _llr(self.highest_p0, FEWER, pages, good))
        if self.gone_sum or self.fewer_sum:
            self.run_pages += pages
            self.run_good += good
        if self.gone_sum >= LIMIT or self.fewer_sum >= LIMIT:
            self._alarm(low, known if not learned else self.usual)
            return True
        if not (self.gone_sum or self.fewer_sum):
            self.run_pages = self.run_good = 0.0
            self._learn(LEARN_DELAY if learned else 0.0)
        return False

    def _alarm(self, low: float, before: float) -> None:
        self.alarm = GONE if self.gone_sum >= LIMIT else FEWER
        self.recovery_p0 = max(low, self.highest_p0) if max(low, self.highest_p0) >= _HIGH else _third_of_odds(low)
        self.before, self.recent = before, self.run_good / self.run_pages
        self.held_pages = self.held_good = self.new_pages = self.new_good = 0.0
        self.gone_sum = self.fewer_sum = self.recovery_sum = self.run_pages = self.run_good = 0.0

    def _recover(self, pages: float, good: float) -> bool:
        self.recovery_sum = max(
            0.0, self.recovery_sum - _llr(self.recovery_p0, FEWER if self.recovery_p0 >= _HIGH else GONE, pages, good)
        )
        if self.recovery_sum < RECOVERY_LIMIT:
            return False
        self.alarm, self.recovery_sum = "", 0.0
        return True

    def _learn(self, age: float) -> None:
        if self.new_pages < age:
            return
        for _ in range(1 if age else 2):
            self.pages += self.held_pages
            self.good += self.held_good
            self.held_pages, self.held_good = self.new_pages, self.new_good
            self.new_pages = self.new_good = 0.0
        if self.pages > MEMORY:
            self.good *= MEMORY / self.pages
            self.pages = MEMORY
        self.p0 = min(wilson(self.good, self.pages), _HIGHEST)
        if self.pages >= LEARN:
            self.highest_p0 = max(self.highest_p0, self.p0)


def wilson(good: float, pages: float, z: float = 2.0) -> float:
    """Lower end of the interval of a share (E. B. Wilson, 1927), at two standard deviations."""
    if pages <= 0:
        return 0.0
    p, square = good / pages, z * z
    middle = p + square / (2 * pages)
    return max(0.0, (middle - z * sqrt(max(p * (1 - p), 0.0) / pages + square / (4 * pages**2))) / (1 + square / pages))


def _third_of_odds(p: float) -> float:
    """The share of a third of the odds."""
    return p / (3 - 2 * p)


def _llr(p0: float, kind: str, pages: float, good: float) -> float:
    part = _PART[kind]
    return good * log(part) + (pages - good) * (log1p(-p0 * part) - log1p(-p0))
