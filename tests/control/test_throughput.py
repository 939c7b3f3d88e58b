"""URLs per second over the last minute, from marks that cost nothing while nothing happens."""

from __future__ import annotations

import pytest
from nephila_control.throughput import WINDOW_S, Rates


def test_a_steady_rise_is_its_rate():
    """Whatever the number of calls between."""
    rates = Rates()
    for tenth in range(3000):
        rates.note(tenth / 10, lambda n=tenth: {"a": n * 2})
    assert rates.of("a", 300.0, 6000) == pytest.approx(20.0, rel=0.02)
    assert len(rates._marks) <= WINDOW_S + 2


def test_before_the_first_mark_and_after_a_long_sleep():
    """Nothing is known, then nothing has happened; what comes after counts in full."""
    rates = Rates()
    assert rates.of("a", 5.0, 10) == 0.0
    rates.note(5.0, lambda: {"a": 10})
    assert rates.of("a", 5000.0, 10) == 0.0
    rates.note(5000.0, lambda: {"a": 70})
    assert rates.of("a", 5000.0, 70) == pytest.approx(1.0)


def test_a_counter_that_starts_again():
    """A job deleted and made anew does not run backwards."""
    rates = Rates()
    rates.note(0.0, lambda: {"a": 100})
    assert rates.of("a", 10.0, 3) == 0.0
    assert rates.of("b", 10.0, 5) == pytest.approx(0.5)
