"""A sequential test for a drop of one share. The usual share is learned from pages; every further page is tested.

Each page gives a number x in [0, 1]: for a field, the share of the page's items that have a value. The test is Page's
CUSUM (E. S. Page, Biometrika 41, 1954) of x·ln(p1/p0) + (1-x)·ln((1-p1)/(1-p0)), where p0 is the usual share and p1 the
share of the alternative. If the mean of x is p0 or more, the mean of the exponential is at most 1, so that a false
alarm comes at most once in e^LIMIT pages (Lorden 1971). A field that was on nearly all pages and is on none crosses
LIMIT after some ten pages.

There are two alternatives. *fewer* (p1 = p0/2) tests high shares; *gone* (p1 = p0/20) tests all that are not low. p0 is
the lower end of Wilson's interval for the pages so far: few pages make the test slow, not wrong. For *fewer*, p0 never
falls, so that a slow decline is found. For *gone*, the odds of p0 are divided by three, because a share may vary with
the kinds of pages. Pure; a plain value that can be stored.
"""

from math import log, log1p, sqrt
from typing import Final

import msgspec

LEARN: Final = 10
"""Pages before the first test."""
LEARN_MORE: Final = 60
"""Pages before shares below _ALWAYS are tested: such fields vary with the kinds of pages."""
LIMIT: Final = 11.0
"""Alarm threshold of the sums: e^11 is 60,000 pages."""
RECOVERY_LIMIT: Final = 6.0
"""Threshold of the recovery sum, which ends an alarm."""
MEMORY: Final = 5_000.0
"""Pages in the baseline; the weight of older pages decays."""
LEARN_DELAY: Final = 15.0
"""Pages that must follow a page before it enters the baseline."""
RELIABLE: Final = 0.95
"""Shares from here on are tested for *fewer*."""
_HIGH: Final = 0.8
"""A share above this has recovered only when it is as high again; half of it is not enough."""
_ALWAYS: Final = 0.95
LOW: Final = 0.2
"""Lower shares are not tested: the loss of a rare field shows only after hundreds of pages."""
_HIGHEST: Final = 0.98
_RECENT: Final = 8.0
FEWER: Final = "fewer"
GONE: Final = "gone"
_PART: Final = {FEWER: 0.5, GONE: 0.05}


class DriftTest(msgspec.Struct, array_like=True):
    """State of the test of one share."""

    pages: float = 0.0
    good: float = 0.0
    """Sum of x over `pages`; their quotient is the usual share."""
    held_pages: float = 0.0
    held_good: float = 0.0
    new_pages: float = 0.0
    new_good: float = 0.0
    """The newest pages. Around a change old and new pages are mixed, so they enter the baseline with a delay."""
    fewer_sum: float = 0.0
    gone_sum: float = 0.0
    """CUSUM of each alternative."""
    run_pages: float = 0.0
    run_good: float = 0.0
    """Pages and sum of x since one of the sums rose from zero."""
    p0: float = 0.0
    """Lower bound of the usual share."""
    highest_p0: float = 0.0
    """The highest p0 so far."""
    recent: float = 0.0
    """Share over the last pages."""
    alarm: str = ""
    """FEWER or GONE after an alarm."""
    recovery_p0: float = 0.0
    """p0 of the recovery test."""
    before: float = 0.0
    recovery_sum: float = 0.0

    @property
    def usual(self) -> float:
        """The learned share."""
        return self.good / self.pages if self.pages else 0.0

    def add(
        self, pages: float, good: float, *, usual_before: float = 0.0, least: float = 0.0, gone_only: bool = False
    ) -> bool:
        """Add pages; True if they raise or end an alarm. O(1).

        `usual_before`: p0 of the previous version, used while this one learns; 0: none. `least`: lower shares are not
        tested.
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
            # The common case: no sum can rise.
            self._learn(LEARN_DELAY if learned else 0.0)
            return False
        low = self.p0 if learned else usual_before
        sure = self.pages >= LEARN_MORE or not learned or self.usual >= _ALWAYS
        if sure and low >= LOW and (self.highest_p0 or low) >= least:
            self.gone_sum = max(0.0, self.gone_sum + _llr(_third_of_odds(low), GONE, pages, good))
        if learned and not gone_only and self.highest_p0 >= max(RELIABLE, least):
            self.fewer_sum = max(0.0, self.fewer_sum + _llr(self.highest_p0, FEWER, pages, good))
        if self.gone_sum or self.fewer_sum:
            self.run_pages += pages
            self.run_good += good
        if self.gone_sum >= LIMIT or self.fewer_sum >= LIMIT:
            self._alarm(low, usual_before if not learned else self.usual)
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
    """Lower end of the confidence interval of a share (E. B. Wilson, 1927), at two standard deviations."""
    if pages <= 0:
        return 0.0
    p, square = good / pages, z * z
    middle = p + square / (2 * pages)
    return max(0.0, (middle - z * sqrt(max(p * (1 - p), 0.0) / pages + square / (4 * pages**2))) / (1 + square / pages))


def _third_of_odds(p: float) -> float:
    """The share with a third of the odds."""
    return p / (3 - 2 * p)


def _llr(p0: float, kind: str, pages: float, good: float) -> float:
    part = _PART[kind]
    return good * log(part) + (pages - good) * (log1p(-p0 * part) - log1p(-p0))
