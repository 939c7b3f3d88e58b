"""Pauses of hosts around a step."""

from tests.cluster.pauses import longest_pause, pauses


def test_only_pauses_that_overlap_the_step_count() -> None:
    """Also one that begins before it and ends behind it."""
    starts = [0.0, 5.0, 6.0, 9.0, 20.0]
    assert longest_pause(starts, 6.5, 8.0) == 3.0
    assert longest_pause(starts, 10.0, 11.0) == 11.0
    assert longest_pause(starts, 30.0, 40.0) == 0.0
    assert longest_pause([], 0.0, 1.0) == 0.0


def test_another_host_does_not_hide_the_pause_of_a_host() -> None:
    """The second number is that of all hosts together."""
    assert pauses([[0.0, 4.0], [1.0, 2.0, 3.0]], 0.0, 4.0) == (4.0, 1.0)
