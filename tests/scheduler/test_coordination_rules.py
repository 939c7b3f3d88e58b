"""The rules by which schedulers agree, one by one: whose word counts, who may use a place, when a job has ended."""

from __future__ import annotations

import pytest
from nephila.kernel.messages import CrawlJob, JobProgress, JobStatus, PartitionStatus, PlacesGiven, Scope
from nephila.scheduler.cluster.jobs.coordinator import Coordinator
from nephila.scheduler.cluster.jobs.job_protocol import REPEAT_S, Desk, home
from nephila.scheduler.cluster.jobs.job_view import Told
from nephila.scheduler.cluster.jobs.page_quota import Allowance

JOB = "j"


def given(places: int, version: int = 1, **fields: object) -> JobStatus:
    """A status that gives partition 0 so many places."""
    return JobStatus(JOB, version=version, born=1, given=[PlacesGiven(0, places)], **fields)  # type: ignore[arg-type]


def part(partition: int = 0, epoch: int = 1, **fields: object) -> PartitionStatus:
    """A word of an owner about a job of generation 1."""
    return PartitionStatus(partition, epoch, 1, born=1, **fields)  # type: ignore[arg-type]


@pytest.fixture
def told():
    """A job of which partition 0 has ten places."""
    found = Told(JOB)
    found.take_status(given(10))
    return found


def test_of_two_coordinators_the_first_is_heard(told):
    """Both had read version 1; whatever the second says in version 2 was never said."""
    assert told.take_status(given(20, version=2))
    assert not told.take_status(given(99, version=2))
    assert told.given(0) == 20
    assert told.take_status(given(30, version=3))


def test_an_owner_of_old_is_not_heard(told):
    """What it gave back after its successor has spoken was given back by nobody."""
    told.take_part(part(epoch=5, returned=1))
    assert not told.take_part(part(epoch=4, returned=7))
    assert told.parts[0].returned == 1


def test_what_was_given_back_before_an_owners_first_word_stays_given_back(told):
    """The owner had not read it when it spoke."""
    told.take_part(part(epoch=4, returned=7))
    told.take_part(part(epoch=5, returned=1))
    assert told.parts[0].returned == 7


def test_what_an_overtaken_owner_said_does_not_come_back_when_messages_in_between_are_gone(told):
    """Of a table old messages go, but for the last under each name: the owner's later word has all that counts."""
    told.take_part(part(epoch=4, returned=9))
    told.take_part(part(epoch=5, returned=7, sure=True))
    assert told.parts[0].returned == 7


def test_a_new_owner_uses_nothing_before_it_has_read_its_own_word(told):
    """Until then the one before may still have given something back."""
    told.take_part(part(epoch=4))
    allowance = Allowance(0, 5)
    assert allowance.read(told) == 0
    word = part(epoch=5)
    allowance.write(word, told, ready=0, safe=True)
    told.take_part(part(epoch=4, returned=6))
    assert allowance.read(told) == 0
    assert not word.sure
    told.take_part(word)
    assert allowance.read(told) == 4
    allowance.write(word, told, ready=0, safe=True)
    assert (word.returned, word.sure) == (6, True)


def test_places_are_given_back_when_they_are_scarce_and_nothing_can_turn_out_used(told):
    """Half of what is spare each time; none that a host waits for, none while something is not in the log."""
    allowance = Allowance(0, 1)
    first = part(used=2)
    allowance.write(first, told, ready=0, safe=True)
    told.take_part(first)
    assert allowance.read(told) == 10
    for scarce, safe, ready, left in (
        (False, True, 0, 10),
        (True, False, 0, 10),
        (True, True, 8, 10),
        (True, True, 4, 8),
        (True, True, 0, 5),
        (True, True, 0, 3),
        (True, True, 0, 2),
        (True, True, 0, 2),
    ):
        told.take_status(given(10, told.status.version + 1, scarce=scarce))
        word = part(used=2, queued=20)
        allowance.write(word, told, ready=ready, safe=safe)
        assert allowance.read(told) == left, (scarce, safe, ready)
        assert word.returned == 10 - left


def test_places_of_another_time_of_the_job_count_for_nothing(told):
    """It was deleted, and another of its name has begun."""
    allowance = Allowance(0, 1)
    told.take_part(part(returned=4))
    assert allowance.read(told) == 6
    told.take_status(JobStatus(JOB, version=2, born=9, given=[PlacesGiven(0, 3)]))
    assert allowance.read(told) == 0
    word = PartitionStatus(0, 1, 9)
    allowance.write(word, told, ready=0, safe=True)
    assert (word.born, word.returned) == (9, 0)
    told.take_part(word)
    assert allowance.read(told) == 3


def spec(**fields: object) -> CrawlJob:
    """The job, without a budget unless it says so."""
    return CrawlJob(JOB, JOB, 1, scope=Scope(**fields))  # type: ignore[arg-type]


def spoken(coordinator: Coordinator, job: CrawlJob) -> JobStatus:
    """What it says, and all have read."""
    status = coordinator.next(job)
    coordinator.told.take_status(status)
    return status


@pytest.fixture
def coordinator():
    """Of a job over two partitions that nobody has told of."""
    return Coordinator(Told(JOB), 2)


def test_a_job_ends_after_all_rest_the_logs_are_read_and_all_say_so_once_more(coordinator):
    """Each of the three is waited for."""
    tell = coordinator.told.take_part
    tell(part(0, resting=True))
    assert not spoken(coordinator, spec()).done
    assert coordinator.wants_ends is None
    tell(part(1, resting=True))
    assert spoken(coordinator, spec()).look == 0
    rest = coordinator.wants_ends
    assert spoken(coordinator, spec()).look == 0
    coordinator.ends_reached(rest)
    assert (spoken(coordinator, spec()).look, coordinator.wants_ends) == (1, None)
    tell(part(0, resting=True, look=1))
    assert not spoken(coordinator, spec()).done
    tell(part(1, resting=True, look=1))
    assert spoken(coordinator, spec()).done


@pytest.mark.parametrize("change", [{"activity": 1}, {"epoch": 2}, {"resting": False}])
def test_whatever_happens_in_between_begins_it_anew(coordinator, change):
    """A URL was handed out, another owner speaks, somebody is at work."""
    tell = coordinator.told.take_part
    for number in (0, 1):
        tell(part(number, resting=True))
    spoken(coordinator, spec())
    coordinator.ends_reached(coordinator.wants_ends)
    spoken(coordinator, spec())
    tell(part(0, resting=True, look=1))
    tell(part(**{"partition": 1, "resting": True, "look": 1, **change}))
    assert not spoken(coordinator, spec()).done
    tell(part(**{"partition": 1, "look": 1, **change, "resting": True}))
    assert not spoken(coordinator, spec()).done
    assert coordinator.wants_ends is not None


def test_ends_that_were_asked_for_too_early_are_no_answer(coordinator):
    """Something has happened since."""
    for number in (0, 1):
        coordinator.told.take_part(part(number, resting=True))
    spoken(coordinator, spec())
    early = coordinator.wants_ends
    coordinator.told.take_part(part(0, resting=True, activity=5))
    spoken(coordinator, spec())
    coordinator.ends_reached(early)
    assert spoken(coordinator, spec()).look == 0


def test_half_of_what_is_free_is_shared_by_who_asks(coordinator):
    """A host that comes late finds some; whoever asks for less gets that."""
    coordinator.told.take_part(part(0, wanted=90, queued=90))
    first = spoken(coordinator, spec(max_pages=100))
    assert {one.partition: one.places for one in first.given} == {0: 50}
    coordinator.told.take_part(part(1, wanted=4, queued=4))
    second = spoken(coordinator, spec(max_pages=100))
    assert {one.partition: one.places for one in second.given} == {0: 62, 1: 4}


def test_places_are_scarce_when_somebody_could_fetch_and_none_is_free(coordinator):
    """Not when somebody would only like to have more ahead."""
    coordinator.told.take_part(part(0, wanted=3))
    coordinator.told.take_part(part(1, wanted=1))
    for _ in range(4):
        status = spoken(coordinator, spec(max_pages=3))
    assert sum(one.places for one in status.given) == 3
    assert not status.scarce
    coordinator.told.take_part(part(1, wanted=3, lacking=3))
    assert spoken(coordinator, spec(max_pages=3)).scarce
    coordinator.told.take_part(part(0, wanted=3, returned=1))
    back = spoken(coordinator, spec(max_pages=3))
    assert sum(one.places for one in back.given) == 4


def test_pages_that_were_stored_before_there_was_a_budget_take_up_places(coordinator):
    """A budget of ten for a job that has stored eight leaves two."""
    coordinator.told.take_part(part(0, used=8, stored=8, wanted=40, lacking=40))
    for _ in range(5):
        status = spoken(coordinator, spec(max_pages=10))
    assert [one.places for one in status.given] == [10]


class Idle:
    """A partition in which nothing happens."""

    safe = True
    epoch = 1

    def __init__(self, number: int) -> None:
        self.number = number

    def stamp(self, uid: str) -> tuple[int, int]:
        """See `Owned`."""
        return 1, 0

    def status(self, uid: str) -> PartitionStatus | None:
        """See `Owned`."""
        return PartitionStatus(generation=1, resting=True)

    def ready(self, uid: str) -> int:
        """See `Owned`."""
        return 0

    def allow(self, uid: str, places: int, spent: bool) -> None:
        """See `Owned`."""


def test_nothing_is_said_twice_but_for_a_sign_of_life():
    """Each word is on its way once; an hour of nothing costs a status now and then."""
    desk = Desk("m", 2, {JOB: spec()})
    owned = [Idle(0), Idle(1)]
    first = desk.say(owned, 1000.0)
    assert [type(one) for one in first] == [JobProgress, JobStatus]
    assert desk.say(owned, 1001.0) == []
    while (said := desk.say(owned, 1002.0)) or first:
        for message in [*first, *said]:
            (desk.on_status if isinstance(message, JobStatus) else desk.on_progress)(message)
        first = []
        if wanted := desk.wants_ends():
            desk.ends_reached(JOB, wanted[JOB])
    assert desk.told[JOB].status.done
    assert desk.say(owned, 1003.0) == []
    (again,) = desk.say(owned, 1003.0 + REPEAT_S)
    assert again.done


def test_who_has_another_partition_coordinates_nothing():
    """The job's home is one of them; its owner alone says how the job stands."""
    other = 1 - home(JOB, 2)
    desk = Desk("m", 2, {JOB: spec()})
    assert [type(one) for one in desk.say([Idle(other)], 1000.0)] == [JobProgress]
