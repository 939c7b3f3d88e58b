"""The lead: a delay counts from the end of a fetch, and no clock of another member can shorten it."""

from dataclasses import dataclass

import pytest
from nephila.kernel.messages import FetchOutcome, FetchRequest
from nephila.scheduler.politeness.host_pace import MARGIN_S, HostPace
from nephila.scheduler.politeness.lead import PARTS, SERVER_S, WAY_S, Lead

NOW, UTC = 1000.0, 1.8e9


WAIT_S = 0.3
"""How long an outcome waits on average."""


@dataclass
class BeatOf:
    """A beat with this lead."""

    lead_s: float

    def set_least_delay(self, delay_s: float) -> None:
        """It has its lead."""

    def way_s(self, wait_s: float) -> float:
        """A request waits for a quarter of the lead at least."""
        return max(wait_s, self.lead_s / 4) + WAIT_S if self.lead_s else 0.0

    def next(self, when: float) -> float:
        """At once."""
        return when


def lead_of(seconds: float) -> Lead:
    return Lead(BeatOf(seconds))


def after_outcome(lead: Lead, ended_at: float, delay_s: float = 1.0) -> HostPace:
    """The pace once the outcome of a fetch has come at NOW."""
    pace = HostPace()
    pace.after_fetch(NOW, delay_s, *lead.since_end(FetchOutcome(ended_at=ended_at), UTC))
    return pace


def test_without_a_lead_a_delay_counts_from_the_arrival_and_nothing_is_planned():
    lead = lead_of(0.0)
    pace = after_outcome(lead, UTC - 0.3)
    assert (pace.not_before, pace.certain_at, pace.ended_at) == (NOW + 1.0 + MARGIN_S, NOW + 1.0 + MARGIN_S, 0.0)
    request = FetchRequest()
    lead.plan(request, pace, pace.not_before)
    assert (request.wait_s, request.after, request.gap_s) == (0.0, 0.0, 0.0)


def test_a_request_says_the_gap_after_the_fetch_before_and_the_wait_of_another_downloader():
    lead = lead_of(1.0)
    pace = after_outcome(lead, UTC - 0.3)
    assert lead.due_at(pace.not_before) == pytest.approx(NOW - 0.3 + MARGIN_S + SERVER_S)
    request = FetchRequest()
    lead.plan(request, pace, NOW + 0.1)
    assert (request.after, request.gap_s) == (UTC - 0.3, 1.0 + MARGIN_S + SERVER_S)
    assert request.wait_s == pytest.approx(0.9 + MARGIN_S), "from the arrival of the outcome"


@pytest.mark.parametrize("ahead_s", [-0.9, 0.9])
def test_another_downloader_waits_as_long_whatever_its_clock_says(ahead_s):
    lead = lead_of(1.0)
    pace = after_outcome(lead, UTC - 0.3 + ahead_s)
    request = FetchRequest()
    lead.plan(request, pace, NOW)
    assert request.wait_s == pytest.approx(1.0 + MARGIN_S)


def test_a_second_fetch_that_ended_early_by_a_wrong_clock_still_counts():
    lead = lead_of(1.0)
    pace = after_outcome(lead, UTC)
    later = NOW + 1.2
    pace.after_fetch(later, 1.0, UTC - 0.9, 2.1)
    assert pace.certain_at == pytest.approx(later + 1.0 + MARGIN_S)


def test_a_stored_pace_is_that_which_depends_on_no_other_clock():
    pace = after_outcome(lead_of(1.0), UTC - 0.3)
    assert pace.to_state("a.test", "", UTC - NOW).not_before == pytest.approx(UTC + 1.0 + MARGIN_S)


def test_a_pause_of_a_refusal_replaces_the_plan():
    pace = after_outcome(lead_of(1.0), UTC - 0.3)
    pace.hold(NOW, 60.0, 1.0)
    request = FetchRequest()
    Lead.plan(request, pace, NOW + 59.0)
    assert (request.after, request.wait_s) == (0.0, pytest.approx(1.0 + MARGIN_S))


def test_a_lease_counts_for_the_share_of_its_time_that_it_would_last_without_a_beat():
    lead, pace = lead_of(1.0), HostPace(not_before=NOW + 0.9)
    assert lead.slot(pace, NOW) == 1.0, "no fetch is known"
    lead.on_fetch(0.4)
    planned = lead.slot(pace, NOW)
    assert planned == pytest.approx((0.4 + WAY_S) / (0.4 + 0.9 + WAIT_S), abs=1 / PARTS), "the mean of all hosts"
    assert lead.slot(HostPace(took_s=20.0, not_before=NOW + 0.9), NOW) > 0.9, "that of the host"
    assert planned < lead.slot(HostPace(), NOW) < 1.0, "its request and its outcome wait all the same"
    assert lead_of(0.0).slot(pace, NOW) == 1.0
