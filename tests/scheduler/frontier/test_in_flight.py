"""The life of a URL is a table: what the table does not allow raises."""

from __future__ import annotations

import itertools

import pytest
from nephila.scheduler.frontier import in_flight
from nephila.scheduler.frontier.host_state import Host
from nephila.scheduler.frontier.in_flight import MOVES, ForbiddenMoveError, LifeEvent, LifeState, Outstanding
from nephila.scheduler.jobs.queue_entry import Entry

ALL = [(state, event) for state, event in itertools.product(LifeState, LifeEvent)]


@pytest.mark.parametrize(("state", "event"), ALL)
def test_an_event_that_the_table_does_not_have_raises_and_changes_nothing(state: LifeState, event: LifeEvent) -> None:
    host = Host(0, "a.test", 0)
    waiting = Outstanding("t", host, Entry(b"k" * 16, 0, 1, 0, 0, 0, 0, "http://a.test/"), 1, state=state)
    if state in MOVES[event]:
        assert waiting.move(event) is state
        assert waiting.state is MOVES[event][state]
    else:
        with pytest.raises(ForbiddenMoveError, match=f"{event.name} cannot happen to a URL that is {state.name}"):
            waiting.move(event)
        assert waiting.state is state


def test_every_state_but_the_last_has_a_way_on_and_every_state_but_the_first_a_way_in() -> None:
    """No URL is stuck, and no state is dead."""
    into = {after for row in MOVES.values() for after in row.values()}
    out = {before for row in MOVES.values() for before in row}
    assert set(MOVES) == set(LifeEvent)
    assert (into, out) == (set(LifeState), set(LifeState) - {in_flight.DROPPED})
