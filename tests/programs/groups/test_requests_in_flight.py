"""Which requests of a group are finished, and which URLs are suspects after its death."""

from __future__ import annotations

from nephila.kernel import messages as m
from nephila.programs.groups.crash_suspects import MAX_SUSPECTS, CrashSuspects
from nephila.programs.groups.worker.requests_in_flight import RequestsInFlight


def request(url: str, job: str = "j", fetch_no: int = 1, attempt: int = 1) -> m.FetchRequest:
    """A request for a URL whose host is its first part."""
    key, host = url.encode().ljust(16, b"."), url.partition("/")[0]
    return m.FetchRequest(job, key, url, host, fetch_no=fetch_no, attempt=attempt)


def outcome_of(request: m.FetchRequest, result: m.FetchResult) -> m.FetchOutcome:
    return m.FetchOutcome(
        request.job, request.url_key, request.host, request.kind, request.fetch_no, request.attempt, result=result
    )


def record_of(request: m.FetchRequest) -> m.Record:
    return m.Record(request.job, request.url_key, request.url, request.fetch_no, request.attempt, m.Outcome.STORED)


def test_a_page_is_done_with_outcome_and_record_in_any_order():
    """Either may come first; both are needed."""
    first, second = request("a/1"), request("a/2")
    in_flight = RequestsInFlight()
    for one in (first, second):
        in_flight.take(one)
    assert not in_flight.record(record_of(first))
    assert in_flight.outcome(outcome_of(first, m.FetchResult.FETCHED))
    assert not in_flight.outcome(outcome_of(second, m.FetchResult.NOT_MODIFIED))
    assert len(in_flight) == 1
    assert in_flight.record(record_of(second))
    assert len(in_flight) == 0


def test_robots_and_failures_are_done_with_their_outcome():
    """There is no record to wait for."""
    in_flight = RequestsInFlight()
    for url, job, result in (("a/robots.txt", "", m.FetchResult.FETCHED), ("a/1", "j", m.FetchResult.REDIRECT)):
        one = request(url, job)
        in_flight.take(one)
        assert in_flight.outcome(outcome_of(one, result))


def test_what_belongs_to_another_attempt_or_nobody_changes_nothing():
    """Late messages, and those of URLs that are not here."""
    in_flight = RequestsInFlight()
    in_flight.take(request("a/1", attempt=2))
    assert not in_flight.outcome(outcome_of(request("a/1"), m.FetchResult.FAILED))
    assert not in_flight.record(record_of(request("a/1", fetch_no=2)))
    assert not in_flight.record(record_of(request("b/1")))
    assert len(in_flight) == 1


def test_a_suspect_is_guilty_when_it_was_alone_twice():
    """Deaths of others in the meantime do not count for it."""
    suspects = CrashSuspects()
    key = ("j", b"1")
    assert suspects.died([key, ("j", b"2")], alone=False) is None
    for expected in (None, key):
        suspects.probing = key
        suspects.died([("j", b"3")], alone=False)
        suspects.probing = key
        assert suspects.died([key], alone=True) == expected
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
    suspects.died([("j", number.to_bytes(4, "big")) for number in range(MAX_SUSPECTS + 5)], alone=False)
    assert len(suspects) == MAX_SUSPECTS
    assert ("j", (4).to_bytes(4, "big")) not in suspects
