"""The beat: members agree on instants of UTC, and there is none where a host may be asked more often."""

import pytest
from nephila.kernel.runtime.clock import ManualClock
from nephila.scheduler.politeness.lead import Lead
from nephila_cluster.kafka.beat import DIAL, LEAD, PLAN, READ, Beat


@pytest.mark.parametrize(
    ("delay_s", "period_s"), [(0.0, 0.0), (0.49, 0.0), (0.5, 0.25), (0.8, 0.4), (1.0, 0.5), (60, 0.5)]
)
def test_the_period_is_at_most_half_the_least_delay(delay_s, period_s):
    beat = Beat(ManualClock(), 0.5)
    beat.set_least_delay(delay_s)
    assert (beat.period_s, beat.lead_s) == (period_s, period_s * LEAD)


def test_a_period_of_0_is_no_beat():
    beat = Beat(ManualClock(), 0.0)
    beat.set_least_delay(5.0)
    assert (beat.lead_s, beat.wait_s(READ), beat.next(7.0)) == (0.0, 0.0, 7.0)
    assert Lead().seconds == 0.0


@pytest.mark.parametrize("part", [0.0, READ, PLAN, DIAL])
def test_members_with_other_monotonic_clocks_wait_for_the_same_instants(part):
    clock, other = ManualClock(), ManualClock()
    other.advance(0.17)
    ends = []
    for each in (clock, other):
        beat = Beat(each, 0.5)
        beat.set_least_delay(1.0)
        wait_s = beat.wait_s(part)
        assert 0.0 < wait_s <= 0.5
        ends.append((each.now() + wait_s) / 0.5 - part)
    assert all(end == pytest.approx(round(end), abs=1e-4) for end in ends)


def test_a_turn_is_put_off_to_the_instant_at_which_hosts_are_leased_and_no_further():
    clock = ManualClock()
    beat = Beat(clock, 0.5)
    beat.set_least_delay(1.0)
    for ahead_s in (0.0, 0.1, 0.49, 3.3):
        at = beat.next(clock.monotonic() + ahead_s)
        assert 0.0 < at - clock.monotonic() - ahead_s <= 0.5
