"""The rules by which schedulers agree, one by one: whose word counts, who may use a place, when a job has ended."""

from __future__ import annotations

import msgspec
import pytest
from nephila.kernel.documents.job_schema import Scope
from nephila.kernel.layout import layout_of
from nephila.kernel.messages import CrawlJob, JobProgress, JobStatus, PartitionStatus, QuotaGrant
from nephila_cluster.scheduler.jobs.coordinator import Coordinator
from nephila_cluster.scheduler.jobs.job_protocol import REPEAT_S, JobProtocol, coordinating_partition
from nephila_cluster.scheduler.jobs.job_view import JobView
from nephila_cluster.scheduler.jobs.page_quota import PageQuota

from tests.jobs import crawl_job

JOB = "j"


def given(pages: int, version: int = 1, **fields: object) -> JobStatus:
    """A status that gives partition 0 so many pages."""
    return JobStatus(JOB, version=version, start_generation=1, granted=[QuotaGrant(0, pages)], **fields)  # type: ignore[arg-type]


def part(partition: int = 0, epoch: int = 1, **fields: object) -> PartitionStatus:
    """A word of an owner about a job of generation 1."""
    return PartitionStatus(partition, epoch, 1, start_generation=1, **fields)  # type: ignore[arg-type]


@pytest.fixture
def view():
    """A job of which partition 0 has ten pages."""
    found = JobView(JOB)
    found.take_status(given(10))
    return found


def test_of_two_coordinators_the_first_is_heard(view):
    """Both had read version 1; whatever the second says in version 2 was never said."""
    assert view.take_status(given(20, version=2))
    assert not view.take_status(given(99, version=2))
    assert view.granted(0) == 20
    assert view.take_status(given(30, version=3))


def test_an_owner_of_old_is_not_heard(view):
    """What it gave back after its successor has spoken was given back by nobody."""
    view.take_part(part(epoch=5, returned=1))
    assert not view.take_part(part(epoch=4, returned=7))
    assert view.parts[0].returned == 1


def test_a_later_generation_counts_in_any_epoch(view):
    """A broker without its topics counts epochs from 0 again, after reports that members of before still sent."""
    view.take_part(part(epoch=150, stored=920))
    applied_again = msgspec.structs.replace(part(epoch=3, stored=7), generation=2)
    assert view.take_part(applied_again)
    assert not view.take_part(part(epoch=2))
    assert view.parts[0].stored == 7


def test_what_was_given_back_before_an_owners_first_word_stays_given_back(view):
    """The owner had not read it when it spoke."""
    view.take_part(part(epoch=4, returned=7))
    view.take_part(part(epoch=5, returned=1))
    assert view.parts[0].returned == 7


def test_what_an_overtaken_owner_said_does_not_come_back_when_messages_in_between_are_gone(view):
    """Of a table old messages go, but for the last under each name: the owner's later word has all that counts."""
    view.take_part(part(epoch=4, returned=9))
    view.take_part(part(epoch=5, returned=7, confirmed=True))
    assert view.parts[0].returned == 7


def test_a_new_owner_uses_nothing_before_it_has_read_its_own_word(view):
    """Until then the one before may still have given something back."""
    view.take_part(part(epoch=4))
    quota = PageQuota(0, 5)
    assert quota.usable_pages(view, 0) == 0
    word = part(epoch=5)
    quota.fill_request(word, view, ready=0, committed=True)
    view.take_part(part(epoch=4, returned=6))
    assert quota.usable_pages(view, 0) == 0
    assert not word.confirmed
    view.take_part(word)
    assert quota.usable_pages(view, 0) == 4
    quota.fill_request(word, view, ready=0, committed=True)
    assert (word.returned, word.confirmed) == (6, True)


def test_places_are_given_back_when_they_are_scarce_and_nothing_can_turn_out_used(view):
    """Half of what is spare each time; none that a host waits for, none while something is not in the log."""
    quota = PageQuota(0, 1)
    first = part(used=2)
    quota.fill_request(first, view, ready=0, committed=True)
    view.take_part(first)
    assert quota.usable_pages(view, 0) == 10
    for exhausted, safe, ready, left in (
        (False, True, 0, 10),
        (True, False, 0, 10),
        (True, True, 8, 10),
        (True, True, 4, 8),
        (True, True, 0, 5),
        (True, True, 0, 3),
        (True, True, 0, 2),
        (True, True, 0, 2),
    ):
        view.take_status(given(10, view.status.version + 1, exhausted=exhausted))
        word = part(used=2, queued=20)
        quota.fill_request(word, view, ready=ready, committed=safe)
        assert quota.usable_pages(view, 0) == left, (exhausted, safe, ready)
        assert word.returned == 10 - left


def test_places_of_another_time_of_the_job_count_for_nothing(view):
    """It was deleted, and another of its name has begun."""
    quota = PageQuota(0, 1)
    view.take_part(part(returned=4))
    assert quota.usable_pages(view, 0) == 6
    view.take_status(JobStatus(JOB, version=2, start_generation=9, granted=[QuotaGrant(0, 3)]))
    assert quota.usable_pages(view, 0) == 0
    word = PartitionStatus(0, 1, 9)
    quota.fill_request(word, view, ready=0, committed=True)
    assert (word.start_generation, word.returned) == (9, 0)
    view.take_part(word)
    assert quota.usable_pages(view, 0) == 3


def spec(**fields: object) -> CrawlJob:
    """The job, without a budget unless it says so."""
    return crawl_job(JOB, JOB, 1, scope=Scope(**fields))  # type: ignore[arg-type]


def spoken(coordinator: Coordinator, job: CrawlJob) -> JobStatus:
    """What it says, and all have read."""
    status = coordinator.next(job)
    coordinator.view.take_status(status)
    return status


@pytest.fixture
def coordinator():
    """Of a job over two partitions that nobody has view of."""
    return Coordinator(JobView(JOB), lambda: 2)


def test_a_job_ends_after_all_rest_the_logs_are_read_and_all_say_so_once_more(coordinator):
    """Each of the three is waited for."""
    tell = coordinator.view.take_part
    tell(part(0, idle=True))
    assert not spoken(coordinator, spec()).done
    assert coordinator.pending_end_check is None
    tell(part(1, idle=True))
    assert spoken(coordinator, spec()).idle_check == 0
    rest = coordinator.pending_end_check
    assert spoken(coordinator, spec()).idle_check == 0
    coordinator.on_ends_reached(rest)
    assert (spoken(coordinator, spec()).idle_check, coordinator.pending_end_check) == (1, None)
    tell(part(0, idle=True, idle_check=1))
    assert not spoken(coordinator, spec()).done
    tell(part(1, idle=True, idle_check=1))
    assert spoken(coordinator, spec()).done


@pytest.mark.parametrize("change", [{"activity": 1}, {"epoch": 2}, {"idle": False}])
def test_whatever_happens_in_between_begins_it_anew(coordinator, change):
    """A URL was handed out, another owner speaks, somebody is at work."""
    tell = coordinator.view.take_part
    for number in (0, 1):
        tell(part(number, idle=True))
    spoken(coordinator, spec())
    coordinator.on_ends_reached(coordinator.pending_end_check)
    spoken(coordinator, spec())
    tell(part(0, idle=True, idle_check=1))
    tell(part(**{"partition": 1, "idle": True, "idle_check": 1, **change}))
    assert not spoken(coordinator, spec()).done
    tell(part(**{"partition": 1, "idle_check": 1, **change, "idle": True}))
    assert not spoken(coordinator, spec()).done
    assert coordinator.pending_end_check is not None


def test_ends_that_were_asked_for_too_early_are_no_answer(coordinator):
    """Something has happened since."""
    for number in (0, 1):
        coordinator.view.take_part(part(number, idle=True))
    spoken(coordinator, spec())
    early = coordinator.pending_end_check
    coordinator.view.take_part(part(0, idle=True, activity=5))
    spoken(coordinator, spec())
    coordinator.on_ends_reached(early)
    assert spoken(coordinator, spec()).idle_check == 0


def test_half_of_what_is_free_is_shared_by_who_asks(coordinator):
    """A host that comes late finds some; whoever asks for less gets that."""
    coordinator.view.take_part(part(0, requested=90, queued=90))
    first = spoken(coordinator, spec(max_pages=100))
    assert {one.partition: one.pages for one in first.granted} == {0: 50}
    coordinator.view.take_part(part(1, requested=4, queued=4))
    second = spoken(coordinator, spec(max_pages=100))
    assert {one.partition: one.pages for one in second.granted} == {0: 62, 1: 4}


def test_places_are_scarce_when_somebody_could_fetch_and_none_is_free(coordinator):
    """Not when somebody would only like to have more ahead."""
    coordinator.view.take_part(part(0, requested=3))
    coordinator.view.take_part(part(1, requested=1))
    for _ in range(4):
        status = spoken(coordinator, spec(max_pages=3))
    assert sum(one.pages for one in status.granted) == 3
    assert not status.exhausted
    coordinator.view.take_part(part(1, requested=3, needed_now=3))
    assert spoken(coordinator, spec(max_pages=3)).exhausted
    coordinator.view.take_part(part(0, requested=3, returned=1))
    back = spoken(coordinator, spec(max_pages=3))
    assert sum(one.pages for one in back.granted) == 4


def test_pages_that_were_stored_before_there_was_a_budget_take_up_places(coordinator):
    """A budget of ten for a job that has stored eight leaves two."""
    coordinator.view.take_part(part(0, used=8, stored=8, requested=40, needed_now=40))
    for _ in range(5):
        status = spoken(coordinator, spec(max_pages=10))
    assert [one.pages for one in status.granted] == [10]


class Idle:
    """A partition in which nothing happens."""

    committed = True
    epoch = 1

    def __init__(self, number: int) -> None:
        self.number = number

    def state_version(self, uid: str) -> tuple[int, int]:
        """See `OwnedPartition`."""
        return 1, 0

    def take_changed(self) -> list[str]:
        """See `OwnedPartition`."""
        return []

    def status(self, uid: str) -> PartitionStatus | None:
        """See `OwnedPartition`."""
        return PartitionStatus(generation=1, idle=True)

    def ready(self, uid: str) -> int:
        """See `OwnedPartition`."""
        return 0

    def set_quota(self, uid: str, pages: int, spent: bool) -> None:
        """See `OwnedPartition`."""


def test_nothing_is_said_twice_but_for_a_sign_of_life():
    """Each word is on its way once; an hour of nothing costs a status now and then."""
    protocol = JobProtocol("m", lambda: layout_of(2), {JOB: spec()})
    owned = [Idle(0), Idle(1)]
    first = protocol.messages_to_send(owned, 1000.0)
    assert [type(one) for one in first] == [JobProgress, JobStatus]
    assert protocol.messages_to_send(owned, 1001.0) == []
    while (said := protocol.messages_to_send(owned, 1002.0)) or first:
        for message in [*first, *said]:
            (protocol.on_status if isinstance(message, JobStatus) else protocol.on_progress)(message)
        first = []
        if wanted := protocol.pending_end_check():
            protocol.on_ends_reached(JOB, wanted[JOB])
    assert protocol.views[JOB].status.done
    assert protocol.messages_to_send(owned, 1003.0) == []
    (again,) = protocol.messages_to_send(owned, 1003.0 + REPEAT_S)
    assert again.done


def test_who_has_another_partition_coordinates_nothing():
    """The job's home is one of them; its owner alone says how the job stands."""
    other = 1 - coordinating_partition(JOB, layout_of(2))
    protocol = JobProtocol("m", lambda: layout_of(2), {JOB: spec()})
    assert [type(one) for one in protocol.messages_to_send([Idle(other)], 1000.0)] == [JobProgress]


def test_a_member_that_loses_the_coordinating_partition_looks_for_no_end_of_the_job():
    """Its successor does; a member that gets the partition back looks again."""
    home = coordinating_partition(JOB, layout_of(2))
    protocol = JobProtocol("m", lambda: layout_of(2), {JOB: spec()})

    def settle(*partitions: int) -> None:
        owned = [Idle(number) for number in partitions]
        while said := protocol.messages_to_send(owned, 1000.0):
            for message in said:
                (protocol.on_status if isinstance(message, JobStatus) else protocol.on_progress)(message)

    settle(0, 1)
    (rest,) = protocol.pending_end_check().values()
    protocol.messages_to_send([Idle(1 - home)], 1001.0)
    assert protocol.pending_end_check() == {}
    protocol.on_ends_reached(JOB, rest)
    settle(0, 1)
    assert not protocol.views[JOB].status.done


class Counting(Idle):
    """A partition that counts how often it is looked at, with one job that may run."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.looks = 0
        self.stored = 0
        self.changed: list[str] = []

    def state_version(self, uid: str) -> tuple[int, int]:
        """See `OwnedPartition`."""
        self.looks += 1
        return 1, self.stored

    def take_changed(self) -> list[str]:
        """See `OwnedPartition`."""
        taken, self.changed = self.changed, []
        return taken

    def status(self, uid: str) -> PartitionStatus | None:
        """See `OwnedPartition`."""
        self.looks += 1
        return PartitionStatus(generation=1, idle=not self.stored, stored=self.stored, activity=self.stored)


def settled(partitions: int) -> tuple[JobProtocol, list[Counting]]:
    """A job that is done, in a member with all partitions."""
    protocol, owned = (
        JobProtocol("m", lambda: layout_of(partitions), {JOB: spec()}),
        [Counting(number) for number in range(partitions)],
    )
    for before in range(16, 0, -1):
        round_of(protocol, owned, 1000.0 - before)
    assert protocol.views[JOB].status.done
    return protocol, owned


def round_of(protocol: JobProtocol, owned: list[Counting], now: float) -> list[JobStatus | JobProgress]:
    """A round, and its messages are read."""
    said = protocol.messages_to_send(owned, now)
    for message in said:
        (protocol.on_status if isinstance(message, JobStatus) else protocol.on_progress)(message)
    for uid, rest in protocol.pending_end_check().items():
        protocol.on_ends_reached(uid, rest)
    return said


def test_an_idle_job_costs_nothing_but_a_sign_of_life():
    """No partition is looked at until something changes, and its status comes every REPEAT_S all the same."""
    protocol, owned = settled(2)
    for one in owned:
        one.looks = 0
    signs = [at for at in range(100) if round_of(protocol, owned, 1000.0 + at)]
    assert len(signs) == 3
    assert [one.looks for one in owned] == [0, 0]


@pytest.mark.parametrize("news", ["partition", "spec", "owner"])
def test_a_change_makes_a_job_active_again(news):
    """A partition that has seen an event, another desired state, another owner of a partition."""
    protocol, owned = settled(2)
    if news == "partition":
        owned[0].stored, owned[0].changed = 1, [JOB]
    elif news == "spec":
        protocol._jobs[JOB] = msgspec.structs.replace(spec(), generation=2)  # type: ignore[index]
        protocol.on_job(JOB)
    else:
        owned[1].epoch = 2
    assert round_of(protocol, owned, 1001.0)


def test_counters_of_many_partitions_are_published_less_often():
    """Two partitions here of 65,536, so that one running job takes 1.6 s; a report that others wait for comes at once.
    With 64 partitions it is every round."""
    for partitions, expected in ((64, [1, 2, 3, 4, 5, 6]), (65_536, [2, 4, 6])):
        protocol, owned = (
            JobProtocol("m", lambda count=partitions: layout_of(count), {JOB: spec()}),
            [Counting(0), Counting(1)],
        )
        owned[0].stored = 1
        round_of(protocol, owned, 1000.0)
        round_of(protocol, owned, 1000.0)
        found = []
        for at in range(1, 7):
            owned[0].stored += 1
            if any(isinstance(one, JobProgress) for one in round_of(protocol, owned, 1000.0 + at)):
                found.append(at)
        assert found == expected
    owned[1].stored = 1  # not idle any more
    owned[1].changed = [JOB]
    assert any(isinstance(one, JobProgress) for one in round_of(protocol, owned, 1006.1))


def test_new_counters_alone_are_not_awaited():
    """A coordinator need not decide again within 50 ms because a partition has stored a page."""
    protocol = JobProtocol("m", lambda: layout_of(2), {JOB: spec()})
    word = part(1, stored=1)
    assert protocol.on_progress(JobProgress("j@x", JOB, [word]))
    assert not protocol.on_progress(JobProgress("j@x", JOB, [part(1, stored=2)]))
    assert protocol.on_progress(JobProgress("j@x", JOB, [part(1, stored=2, idle=True)]))
    assert protocol.on_progress(JobProgress("j@x", JOB, [part(1, stored=2, idle=True, needed_now=5)]))
