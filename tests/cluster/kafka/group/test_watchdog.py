"""A consumer is stuck when it is behind and looked at; time without looks proves nothing."""

from __future__ import annotations

import pytest
from nephila_cluster.kafka.group.watchdog import Watchdog

SILENT_S, LOOK_S = 30.0, 5.0


def look(watchdog: Watchdog[str], begin: float, end: float, position: int = 7) -> list[str]:
    """The last answer of regular looks; the log ends at 9."""
    stuck: list[str] = []
    while begin <= end:
        stuck = watchdog.stuck(begin, {"a": position}, {"a": 9})
        begin += LOOK_S
    return stuck


def test_a_partition_that_stays_behind_is_stuck_after_the_time():
    """One that gains a record begins anew."""
    watchdog: Watchdog[str] = Watchdog(SILENT_S)
    assert look(watchdog, 0.0, 25.0) == []
    assert look(watchdog, 30.0, 30.0) == ["a"]
    assert look(watchdog, 35.0, 60.0, position=8) == []
    assert look(watchdog, 65.0, 65.0, position=8) == ["a"]


def test_a_pause_or_an_end_of_the_log_begins_the_time_anew():
    """A paused partition is not among the positions."""
    for interruption in ({}, {"a": 9}):
        watchdog: Watchdog[str] = Watchdog(SILENT_S)
        look(watchdog, 0.0, 20.0)
        assert watchdog.stuck(25.0, interruption, {"a": 9}) == []
        assert look(watchdog, 30.0, 55.0) == []
        assert look(watchdog, 60.0, 60.0) == ["a"]


@pytest.mark.parametrize("away_s", [20.0, 600.0])
def test_a_broker_that_was_away_makes_no_consumer_stuck(away_s):
    """The looks failed meanwhile. After its return the consumer has the whole time again."""
    watchdog: Watchdog[str] = Watchdog(SILENT_S)
    look(watchdog, 0.0, 20.0)
    back = 20.0 + away_s
    assert look(watchdog, back, back + 25.0) == []
    assert look(watchdog, back + 30.0, back + 30.0) == ["a"]


def test_one_look_that_fails_does_not_count_as_absence():
    """An answer may be late."""
    watchdog: Watchdog[str] = Watchdog(SILENT_S)
    look(watchdog, 0.0, 10.0)
    assert look(watchdog, 20.0, 30.0) == ["a"]
