"""Freshness of a job's copies: counts, ages, and the staleness expected from their rates of change. Pure.

Staleness of a copy is the time since the first change that it has missed, 0 while it is fresh. A change is only seen by
the next fetch, so staleness is estimated. With rate r and a copy e seconds old, the probability of being stale for more
than s is 1 - exp(-r (e - s)). The percentiles are over all copies. Where the site has announced a change (lastmod after
the fetch), that instant replaces the estimate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec

from nephila.kernel.messages import Outcome, UrlState

_HALVINGS = 40


class Freshness(msgspec.Struct, frozen=True):
    """Freshness of one job at one instant; percentiles in seconds, 0 without a copy."""

    watched: int
    """URLs that are fetched again, and those that are gone."""
    copies: int
    """Watched URLs with a copy that are not gone."""
    gone: int
    due: int
    """URLs that are due and wait for their fetch."""
    overdue: int
    """Due URLs that have waited longer than a tenth of their interval."""
    fresh: float
    """Expected share of copies that equal the page now; 0 without a copy."""
    staleness_p50_s: float
    staleness_p95_s: float
    age_p50_s: float
    """Time since the copies were fetched or confirmed by a 304."""
    age_p95_s: float


def measure(
    states: Sequence[UrlState], now: float, rate: Callable[[UrlState], float], *, total: int | None = None
) -> Freshness:
    """The freshness. `states` may be an even sample of `total` states: counts are scaled up. O(n), 30 µs a state.

    `rate` gives a page's changes per second (`RecrawlPolicy.rate`). A sample of 2,000 gives a p95 within about 5 %.
    """
    scale = (total or len(states)) / len(states) if states else 0.0
    gone = [state for state in states if state.missing and not state.next_at]
    copies = [state for state in states if state.fetched_at and (state.next_at or not state.missing)]
    due = [state for state in states if 0 < state.next_at <= now]
    overdue = sum(now - state.next_at > state.interval_s / 10 for state in due)
    ages = sorted(max(now - state.fetched_at, 0.0) for state in copies)
    pages = [_page(state, now, rate) for state in copies]
    return Freshness(
        watched=round(len(states) * scale),
        copies=round(len(copies) * scale),
        gone=round(len(gone) * scale),
        due=round(len(due) * scale),
        overdue=round(overdue * scale),
        fresh=1 - _staler(pages, 0.0) if pages else 0.0,
        staleness_p50_s=_percentile(pages, 0.5),
        staleness_p95_s=_percentile(pages, 0.95),
        age_p50_s=_rank(ages, 0.5),
        age_p95_s=_rank(ages, 0.95),
    )


def _page(state: UrlState, now: float, rate: Callable[[UrlState], float]) -> tuple[float, float]:
    """(seconds the copy may have been stale, changes per second); an announced change is certain."""
    if state.fetched_at < state.lastmod <= now:
        return now - state.lastmod, math.inf
    good = state.fetched_at
    if state.outcome is Outcome.STORED:
        # A reliable sitemap has delayed the next fetch: until then the copy was current.
        good = max(good, min(state.next_at - state.interval_s, now))
    return max(now - good, 0.0), rate(state)


def _staler(pages: Sequence[tuple[float, float]], than_s: float) -> float:
    """Expected share of copies that have been stale for longer."""
    return math.fsum(-math.expm1(-rate * (age - than_s)) for age, rate in pages if age > than_s) / len(pages)


def _percentile(pages: Sequence[tuple[float, float]], share: float) -> float:
    """The staleness in seconds that this share of the copies is expected not to exceed."""
    low, high = 0.0, max((age for age, _ in pages), default=0.0)
    if not pages or _staler(pages, 0.0) <= 1 - share:
        return 0.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _staler(pages, middle) > 1 - share:
            low = middle
        else:
            high = middle
    return high


def _rank(ordered: Sequence[float], share: float) -> float:
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else 0.0
