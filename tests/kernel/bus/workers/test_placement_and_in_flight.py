"""Where hosts are put, what a worker holds, and who is suspected: the pure parts of the workers' bus."""

from __future__ import annotations

from nephila.kernel import messages as m
from nephila.kernel.bus.workers.in_flight import InFlightRequests
from nephila.kernel.bus.workers.placement import Placement
from nephila.kernel.bus.workers.poison import MAX_SUSPECTS, CrashSuspects

from tests.kernel.bus.workers.far_worker import outcome_of, record_of, request


def test_a_host_is_kept_and_its_memory_bounded():
    """The host that did not come for longest is forgotten and placed anew."""
    load = {"x": 0, "y": 5}
    placement = Placement(load.__getitem__, hosts=2)
    assert placement.choose("a", load) == "x"
    load["x"] = 9
    assert placement.choose("a", load) == "x"
    assert placement.choose("b", load) == "y"
    placement.choose("a", load)
    placement.choose("c", load)
    assert len(placement) == 2
    assert placement.choose("a", load) == "x"
    assert placement.choose("a", ["y"]) == "y"
    assert placement.choose("d", []) is None


def test_hosts_leave_a_worker_that_has_far_more_to_do():
    """Not for a little more: each that moves costs a connection."""
    load = {"first": 0}
    placement = Placement(load.__getitem__)
    for number in range(40):
        load["first"] = number
        placement.choose(str(number), load)
    load["second"] = 24
    assert placement.choose("0", load) == "first"
    load["second"] = 0
    moved = 0
    for number in range(40):
        worker = placement.choose(str(number), load)
        if worker == "second":
            moved += 1
            load["first"] -= 1
            load["second"] += 1
    assert 5 <= moved <= 20
    assert placement.choose("0", load) == "second"


def test_a_page_is_done_with_outcome_and_record_in_any_order():
    """Either may come first; both are needed."""
    first, second = request("a/1"), request("a/2")
    in_flight = InFlightRequests()
    for one in (first, second):
        in_flight.take(0, one, 1.0)
    assert not in_flight.record(record_of(first))
    assert in_flight.outcome(outcome_of(first, m.FetchResult.FETCHED))
    assert not in_flight.outcome(outcome_of(second, m.FetchResult.NOT_MODIFIED))
    assert [one.request.url for one in in_flight] == ["a/2"]
    assert in_flight.record(record_of(second))
    assert len(in_flight) == 0


def test_robots_and_failures_are_done_with_their_outcome():
    """There is no record to wait for."""
    in_flight = InFlightRequests()
    for url, job, result in (("a/robots.txt", "", m.FetchResult.FETCHED), ("a/1", "j", m.FetchResult.REDIRECT)):
        one = request(url, job)
        in_flight.take(0, one, 1.0)
        assert in_flight.outcome(outcome_of(one, result))


def test_what_belongs_to_another_attempt_or_nobody_changes_nothing():
    """Late messages, and those of URLs that are not here."""
    in_flight = InFlightRequests()
    in_flight.take(0, request("a/1", attempt=2), 1.0)
    assert not in_flight.outcome(outcome_of(request("a/1"), m.FetchResult.FAILED))
    assert not in_flight.record(record_of(request("a/1", fetch_no=2)))
    assert not in_flight.record(record_of(request("b/1")))
    assert len(in_flight) == 1


def test_a_suspect_is_guilty_when_it_was_alone_twice():
    """Deaths of others in the meantime do not count for it."""
    suspects = CrashSuspects()
    key = ("j", b"1")
    assert suspects.worker_crashed([key, ("j", b"2")], alone=False) is None
    for expected in (None, key):
        suspects.probing = key
        suspects.worker_crashed([("j", b"3")], alone=False)
        suspects.probing = key
        assert suspects.worker_crashed([key], alone=True) == expected
        assert suspects.probing is None
    assert key not in suspects
    assert ("j", b"2") in suspects
    suspects.probed(("j", b"2"), through=False)
    assert ("j", b"2") in suspects
    suspects.probed(("j", b"2"), through=True)
    assert ("j", b"2") not in suspects


def test_suspects_that_never_come_back_are_forgotten():
    """Their number is bounded, the oldest go."""
    suspects = CrashSuspects()
    suspects.worker_crashed([("j", number.to_bytes(4, "big")) for number in range(MAX_SUSPECTS + 5)], alone=False)
    assert len(suspects) == MAX_SUSPECTS
    assert ("j", (4).to_bytes(4, "big")) not in suspects
