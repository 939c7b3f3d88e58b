"""Events are the differences between two looks at a system."""

from __future__ import annotations

import pytest
from nephila.kernel.runtime.clock import ManualClock
from nephila_control.event_log import FIRST_S, EventLog
from nephila_control.event_types import MAX_EVENTS, ListEvents
from nephila_control.system_types import Member, Store

from tests.cluster.operator.fake_control import job


def member(name="d-1", state="ready", **values):
    return Member(name=name, service="downloader", state=state, **values)


class Watched:
    """A log, and a look at each state of the system."""

    def __init__(self, *states, stores=()):
        self.clock = ManualClock()
        self.log = EventLog(self.clock)
        self.clock.advance(FIRST_S)
        for members in states:
            self.look(members, stores)

    def look(self, members, stores=()):
        self.clock.advance(10)
        self.log.look(members, stores)

    def events(self, kind=""):
        """(kind, subject) without the start of the program, the oldest first."""
        events = reversed(self.log.read(ListEvents(kind=kind, limit=MAX_EVENTS)).events)
        return [(event.kind, event.subject) for event in events if event.kind != "program_started"]


NAME = "downloader/d-1"


@pytest.mark.parametrize(
    ("before", "after", "event"),
    [
        ([], [member()], "member_joined"),
        ([member()], [], "member_left"),
        ([member()], [member(state="ended")], "member_left"),
        ([member()], [member(state="draining")], "member_draining"),
        ([member()], [member(state="silent", silent_since=5.0)], "member_silent"),
        ([member(state="silent")], [member()], "member_ready"),
        ([member()], [member(state="not_ready", problem="away")], "member_not_ready"),
        ([member(started_at=1.0)], [member(started_at=2.0)], "member_restarted"),
        ([member(state="silent", started_at=1.0)], [member(state="starting", started_at=2.0)], "member_restarted"),
    ],
)
def test_a_change_of_a_member_is_an_event(before, after, event):
    assert Watched(before, after, after).events() == [(event, NAME)]


def test_members_that_report_soon_after_the_start_have_not_joined():
    clock = ManualClock()
    log = EventLog(clock)
    log.look([member("a")], [])
    clock.advance(FIRST_S)
    log.look([member("a"), member("b")], [])
    assert log.read(ListEvents(kind="member")).events == []


@pytest.mark.parametrize(
    ("before", "after"),
    [([member()], [member()]), ([member(state="starting")], [member()]), ([member(state="ended")], [])],
    ids=["the same", "it has started", "it had ended"],
)
def test_what_is_no_change_is_no_event(before, after):
    assert Watched(before, after).events() == []


def test_a_silence_has_the_instant_of_the_last_report():
    watched = Watched([member()], [member(state="silent", silent_since=5.0)])
    (event,) = watched.log.read(ListEvents(kind="member")).events
    assert event.at == 5.0


def test_partitions_of_another_member_are_a_takeover():
    """Those of nobody, or its own again, are none."""
    before = [member("a", partitions=[1, 2]), member("b", partitions=[3])]
    after = [member("a", state="silent"), member("b", partitions=[1, 2, 3, 4])]
    watched = Watched(before, after, after)
    (event,) = watched.log.read(ListEvents(kind="takeover")).events
    assert (event.subject, event.text) == ("downloader/b", "2 partitions of downloader/a")


def store(state, **values):
    return Store(member="s", place="postgresql://db", state=state, **values)


def test_a_store_that_is_away_and_back_is_two_events():
    watched = Watched([])
    for state in ("opening", "working", "away", "away", "slow", "working"):
        watched.look([], [store(state, cause="refused")])
    place = "s postgresql://db"
    assert watched.events() == [("store_away", place), ("store_back", place)]


def test_a_job_that_fails_is_one_event_for_each_generation():
    watched = Watched()
    failed, again = job("news", "idle", failed=3), job("news", "idle", failed=3, generation=2)
    for jobs in ([job("news", "running", failed=3)], [failed], [failed], [again]):
        watched.log.note_jobs(jobs)
    assert watched.events() == [("job_failed", "news")] * 2


def test_a_job_that_failed_before_the_start_is_no_event():
    watched = Watched()
    watched.log.note_jobs([job("news", "idle", failed=3)], first=True)
    watched.log.note_jobs([job("news", "idle", failed=3)])
    assert watched.events() == []


def test_the_log_is_bounded_and_the_newest_comes_first():
    watched = Watched([])
    for number in range(2 * MAX_EVENTS):
        watched.look([member(str(number))])
    events = watched.log.read(ListEvents(limit=MAX_EVENTS)).events
    assert len(events) == MAX_EVENTS
    assert [event.at for event in events] == sorted((event.at for event in events), reverse=True)
    assert len(watched.log.read(ListEvents(limit=3)).events) == 3
