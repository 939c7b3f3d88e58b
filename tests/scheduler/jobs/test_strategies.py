"""Strategies turn depth and priority into orders that a host's queue can sort by."""

from __future__ import annotations

import itertools
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st
from nephila.kernel.documents.job_schema import Order
from nephila.kernel.pages.link_position import IN_MAIN, IN_NAV
from nephila.scheduler.jobs.strategies import HEAD, MAX_ORDER, SEED_PRIORITY, STRATEGIES, inherited

URLS = [(0, 255), (1, 10), (1, 200), (2, 255), (3, 0)]
"""(depth, priority) in the order of arrival."""


def popped(name: str) -> list[tuple[int, int]]:
    """The URLs as a queue would give them out."""
    row = STRATEGIES[name]
    arrivals = [(row.order(*url), -n if row.newest_first else n, url) for n, url in enumerate(URLS)]
    return [url for _, _, url in sorted(arrivals)]


def test_every_strategy_of_a_job_has_a_row():
    assert set(STRATEGIES) == set(get_args(Order))


def test_each_strategy_has_its_order():
    """Depth then arrival; deepest then latest; highest priority then arrival."""
    assert popped("bfs") == URLS
    assert popped("dfs") == [(3, 0), (2, 255), (1, 200), (1, 10), (0, 255)]
    assert popped("best-first") == [(0, 255), (2, 255), (1, 200), (1, 10), (3, 0)]


@given(st.sampled_from(list(STRATEGIES)), st.integers(0, 2**32 - 1), st.integers(0, 255))
def test_orders_fit_their_field_and_leave_the_head_alone(name, depth, priority):
    """1 .. 2^24 - 1 for any depth a message can hold: nothing of a strategy's goes before the head."""
    assert HEAD < STRATEGIES[name].order(depth, priority) <= MAX_ORDER


def test_relevance_fades_over_pages_that_say_nothing():
    """A link inherits half of its parent's priority unless it has more itself: after eight steps nothing is left."""
    chain = list(itertools.accumulate([0] * 8, lambda parent, own: inherited(own, parent), initial=SEED_PRIORITY))
    assert chain == [255, 127, 63, 31, 15, 7, 3, 1, 0]
    assert inherited(200, 100) == 200


def test_menus_pass_on_less():
    """A link that stands in navigation alone inherits half of what one in the text does, or one nobody placed."""
    assert [inherited(0, 200, flag) for flag in (0, IN_MAIN, IN_MAIN | IN_NAV, IN_NAV | 1)] == [100, 100, 100, 50]
    assert inherited(120, 200, IN_NAV) == 120
