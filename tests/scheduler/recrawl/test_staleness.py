"""A web whose pages change at random times, watched for a simulated month: how stale the copies are."""

from __future__ import annotations

import pytest
from nephila.kernel.messages import Recrawl

from tests.scheduler.recrawl.changing import DAY_S, HOUR_S, Copies, Page, adaptive, fixed, web

MONTH_S = 30 * DAY_S


def ratio(recrawl: Recrawl, pages: int, seed: int, **how: object) -> float:
    """p95 staleness over that of a fixed interval with the same number of fetches."""
    watched = web(pages, MONTH_S, seed)
    copies, policy, due_table = adaptive(watched, MONTH_S, recrawl, **how)
    due_table.check()
    assert len(due_table) == pages
    assert policy.active
    other = fixed(watched, MONTH_S, copies.fetches, seed)
    assert other.fetches == pytest.approx(copies.fetches, rel=0.01)
    return copies.percentile(0.95) / other.percentile(0.95)


def test_staleness_is_measured_as_it_is_defined():
    """Time since the first change that was missed, 0 while fresh, over (page, instant)."""
    copies = Copies(pages=1, length_s=100.0)
    page = Page(50.0, [10.0, 20.0, 70.0])
    for fetched, again in ((0.0, 50.0), (50.0, 60.0), (60.0, 100.0)):
        copies.between(page, fetched, again)
    assert copies.peaks == [40.0, 30.0]
    assert copies.fresh == pytest.approx(0.3)
    assert copies.percentile(0.95) == pytest.approx(35.0)
    assert copies.percentile(0.2) == 0.0


@pytest.mark.parametrize("seed", [1, 2])
def test_rates_that_are_learnt_beat_a_fixed_interval(seed):
    """Means from an hour to a month, learnt from nothing: p95 below 0.8 of that of a fixed interval."""
    assert ratio(Recrawl(min_s=HOUR_S, max_s=30 * DAY_S), 60, seed) < 0.8


def test_a_true_sitemap_helps_and_a_lying_one_does_little_harm():
    """Read every six hours: what it says is used as far as it has proved true."""
    adaptive_alone = Recrawl(min_s=2 * HOUR_S, max_s=30 * DAY_S)
    assert ratio(adaptive_alone, 40, 3, sitemap_s=6 * HOUR_S) < 0.6
    assert ratio(adaptive_alone, 40, 3, sitemap_s=6 * HOUR_S, lying=True) < 0.8
