"""How fresh a job's copies are: counts, age, and the staleness that their rates of change lead one to expect. Pure.

Staleness of a copy at an instant is the time since the first change that it has missed, 0 while it is fresh. Nobody
sees a change before the next fetch, so it is estimated: with rate r and a copy e seconds old, the chance that it has
been stale for more than s is 1 - exp(-r (e - s)). The percentiles are those of all copies together. Where a site has
said when its page changed (lastmod after the fetch), that is taken instead of a guess.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec

from nephila.kernel.messages import Outcome, UrlState

_HALVINGS = 40


class Freshness(msgspec.Struct, frozen=True):
    """Figures of one job at one instant; percentiles in seconds, 0 without a copy."""

    watched: int
    """URLs that are fetched again, or were until they were gone."""
    copies: int
    """Those of which there is a copy and that are not gone."""
    gone: int
    due: int
    """Waiting to be fetched, since their time has come."""
    overdue: int
    """Those of them that have waited longer than a tenth of their interval."""
    fresh: float
    """Share of the copies that is expected to be as the page is now; 0 without a copy."""
    staleness_p50_s: float
    staleness_p95_s: float
    age_p50_s: float
    """Time since the copies were fetched, or answered 304."""
    age_p95_s: float


def measure(
    states: Sequence[UrlState], now: float, rate: Callable[[UrlState], float], *, total: int | None = None
) -> Freshness:
    """The figures. `states` may be an even sample out of `total`: counts are scaled up. O(n), 30 µs a state.

    `rate` gives changes per second of a page (`Policy.rate`). A sample of 2,000 tells a p95 to about 5 %.
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
        # A sitemap that is believed has put the next fetch off: until then the copy was good.
        good = max(good, min(state.next_at - state.interval_s, now))
    return max(now - good, 0.0), rate(state)


def _staler(pages: Sequence[tuple[float, float]], than_s: float) -> float:
    """Expected share of copies that have been stale for longer."""
    return math.fsum(-math.expm1(-rate * (age - than_s)) for age, rate in pages if age > than_s) / len(pages)


def _percentile(pages: Sequence[tuple[float, float]], share: float) -> float:
    """Seconds of staleness that this share of the copies is expected not to exceed."""
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
