"""The highest request rate of a host, over complete windows."""

from __future__ import annotations

from nephila.downloader.limits.host_rate import WINDOW_S, HostRates


def test_the_busiest_host_of_the_last_window_counts():
    rates = HostRates()
    for second in range(10):
        rates.note("a", 100.0 + second)
    for second in range(0, 10, 2):
        rates.note("b", 100.0 + second)
    assert rates.highest(105.0) == 0.0  # the window is not complete
    assert rates.highest(100.0 + WINDOW_S) == 1.0
    rates.note("b", 111.0)
    assert rates.highest(111.5) == 1.0
    assert rates.highest(100.0 + 2 * WINDOW_S) == 0.1


def test_a_pause_ends_the_rate():
    """A window without a request is 0, not the window before the pause."""
    rates = HostRates()
    for _ in range(50):
        rates.note("a", 100.0)
    assert rates.highest(100.0 + WINDOW_S) == 5.0
    assert rates.highest(100.0 + 10 * WINDOW_S) == 0.0
