"""Numbers over the last fetches of a host, in a bounded number of bytes."""

from __future__ import annotations

import pytest
from nephila.scheduler.politeness.recent_fetches import MOST, WIDTH, RecentFetches, RecentNumbers


def test_the_numbers_are_those_of_the_last_fetches():
    recent = RecentFetches(1000.0)
    for number in range(3 * MOST):
        recent.note(1000.0 + number, 9.0, 500)
    for number in range(MOST):
        recent.note(2000.0 + number, 0.1 * (number + 1), 200 if number else 0)
    numbers = recent.numbers(2000.0 + 2 * MOST)
    assert (numbers.fetches, numbers.last_status, numbers.error_share) == (MOST, 200, 1 / MOST)
    assert numbers.latency_p50_s == pytest.approx(1.0, abs=0.01)
    assert numbers.latency_p95_s == pytest.approx(1.9, abs=0.01)
    assert numbers.rate == pytest.approx(0.5)
    assert len(recent._numbers) == MOST * WIDTH


def test_one_fetch_without_an_answer():
    recent = RecentFetches(5.0)
    assert recent.numbers(5.0) == RecentNumbers()
    recent.note(5.0, 30.0, 0)
    numbers = recent.numbers(5.0)
    assert (numbers.latency_p50_s, numbers.latency_p95_s, numbers.error_share, numbers.rate) == (30.0, 30.0, 1.0, 1.0)
