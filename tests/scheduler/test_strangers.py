"""Messages of a job that nobody has told yet: each waits its time, whatever becomes of others, and none for ever."""

from __future__ import annotations

import pytest
from nephila.kernel.bus.contract import Delivery
from nephila.kernel.runtime.clock import ManualClock
from nephila.scheduler.cluster.unknown_jobs import STRANGER_S, Strangers


class Room:
    """Strangers, and what became of them."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.strangers = Strangers(self.clock)
        self.taken: list[str] = []
        self.dropped: list[str] = []

    def come(self, name: str, partition: int = 0, job: str = "j") -> None:
        """A message of a job."""
        delivery = Delivery(name, partition, lambda: self.dropped.append(name))
        self.strangers.wait(job, delivery, lambda delivery: self.taken.append(delivery.message))

    def pass_s(self, seconds: float) -> None:
        """Time goes by."""
        self.clock.advance(seconds)
        self.clock.run_due()


@pytest.fixture
def room():
    """Nobody waits."""
    return Room()


def test_they_are_handed_over_when_their_job_is_told(room):
    """In order, and not twice; others wait on."""
    for name in "ab":
        room.come(name)
    room.come("c", job="other")
    room.strangers.told("j")
    room.strangers.told("j")
    assert room.taken == ["a", "b"]
    room.pass_s(2 * STRANGER_S)
    assert (room.taken, room.dropped) == (["a", "b"], ["c"])


@pytest.mark.parametrize("before", ["lost", "told", "older"])
def test_each_waits_its_time(room, before):
    """Whoever was there before it: lost with its partition, taken, or there longer."""
    room.come("first", partition=1)
    if before == "lost":
        room.strangers.on_lost(frozenset({1}))
    elif before == "told":
        room.strangers.told("j")
    room.pass_s(STRANGER_S - 1)
    room.come("second")
    room.pass_s(2)
    assert room.dropped == (["first"] if before == "older" else [])
    room.pass_s(STRANGER_S - 3)
    assert "second" not in room.dropped
    room.pass_s(1)
    assert room.dropped[-1] == "second"
    room.pass_s(3 * STRANGER_S)
    assert len(room.dropped) == (2 if before == "older" else 1)
