"""Messages of a job that nobody has told yet: each waits its time, whatever becomes of others, and none for ever."""

from __future__ import annotations

import math

import pytest
from nephila.kernel.bus.contract import Delivery
from nephila.kernel.runtime.clock import ManualClock
from nephila_cluster.scheduler.unknown_jobs import UNKNOWN_JOB_WAIT_S, UnknownJobBuffer


class Room:
    """A buffer for messages of unknown jobs, and the messages that it released."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.answering_since = -math.inf
        self.away = False
        self.unknown_jobs = UnknownJobBuffer(self.clock, self._answering_since)
        self.taken: list[str] = []
        self.dropped: list[str] = []

    def _answering_since(self) -> float:
        return self.clock.monotonic() if self.away else self.answering_since

    def receive(self, name: str, partition: int = 0, job: str = "j") -> None:
        """A message of a job."""
        delivery = Delivery(name, partition, lambda: self.dropped.append(name))
        self.unknown_jobs.wait(job, delivery, lambda delivery: self.taken.append(delivery.message))

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
        room.receive(name)
    room.receive("c", job="other")
    room.unknown_jobs.on_job_known("j")
    room.unknown_jobs.on_job_known("j")
    assert room.taken == ["a", "b"]
    room.pass_s(2 * UNKNOWN_JOB_WAIT_S)
    assert (room.taken, room.dropped) == (["a", "b"], ["c"])


def test_a_message_is_not_dropped_while_its_job_cannot_be_read(room):
    """The broker that has the topic of jobs is away longer than a message waits; the job comes when it is back."""
    room.receive("a")
    room.away = True
    for _ in range(6):
        room.pass_s(UNKNOWN_JOB_WAIT_S)
    room.away, room.answering_since = False, room.clock.monotonic()
    room.pass_s(UNKNOWN_JOB_WAIT_S - 1)
    assert room.dropped == []
    room.unknown_jobs.on_job_known("j")
    assert room.taken == ["a"]


def test_a_message_of_no_job_is_dropped_when_the_jobs_were_readable_for_long_enough(room):
    """The time counts from the return of the broker, once for all that wait."""
    room.receive("a")
    room.pass_s(5.0)
    room.receive("b")
    room.answering_since = room.clock.monotonic() + 20.0
    room.pass_s(20.0)
    room.pass_s(UNKNOWN_JOB_WAIT_S - 0.1)
    assert room.dropped == []
    room.pass_s(0.2)
    assert sorted(room.dropped) == ["a", "b"]


@pytest.mark.parametrize("before", ["lost", "told", "older"])
def test_each_waits_its_time(room, before):
    """Whoever was there before it: lost with its partition, taken, or there longer."""
    room.receive("first", partition=1)
    if before == "lost":
        room.unknown_jobs.drop(frozenset({1}))
    elif before == "told":
        room.unknown_jobs.on_job_known("j")
    room.pass_s(UNKNOWN_JOB_WAIT_S - 1)
    room.receive("second")
    room.pass_s(2)
    assert room.dropped == (["first"] if before == "older" else [])
    room.pass_s(UNKNOWN_JOB_WAIT_S - 3)
    assert "second" not in room.dropped
    room.pass_s(1)
    assert room.dropped[-1] == "second"
    room.pass_s(3 * UNKNOWN_JOB_WAIT_S)
    assert len(room.dropped) == (2 if before == "older" else 1)
