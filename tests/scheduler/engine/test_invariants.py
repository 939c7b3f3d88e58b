"""The check of the invariants notices each of them broken: other tests rely on it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from nephila.kernel.documents.job_schema import Quota, Scope
from nephila.kernel.messages import FetchRequest, FetchResult, Outcome
from nephila.native import parse_url
from nephila.scheduler.frontier.frontier import PartitionSlice
from nephila.scheduler.frontier.host_state import QueueSlot
from nephila.scheduler.frontier.in_flight import LifeState
from nephila.scheduler.jobs.queue_entry import Entry, pack

from tests.scheduler.engine.outcome_rig import JOB, OutcomeRig

LEASED, FETCHED, QUEUED = (f"http://{host}.test/" for host in ("a", "b", "c"))
DELAYED = "http://d.test/"


def rig() -> OutcomeRig:
    """A URL in each place: leased, fetched, queued, delayed and ended; on a host each."""
    one = OutcomeRig(PartitionSlice(0, 1), concurrency=4, window=4)
    one.job(LEASED, FETCHED, DELAYED, "http://e.test/", quota=Quota(pages=90), scope=Scope(max_depth=-1, max_pages=90))
    one.frontier.jobs[JOB].budget.set_quota(90, spent_elsewhere=False)
    found = [request for _ in range(2) for request in one.dispatch()]
    requests = {request.url: request for request in found}
    for url in (FETCHED, "http://e.test/"):
        one.end(requests[url], result=FetchResult.FETCHED, status=200)
    one.receipt("http://e.test/", 1)
    one.end(requests[DELAYED], result=FetchResult.FAILED, reason="connect")
    one.frontier.set_limits(1, 4)
    one.job(QUEUED, quota=Quota(pages=90), scope=Scope(max_depth=-1, max_pages=90))
    one.check()
    return one


def key(url: str) -> bytes:
    return parse_url(url).fingerprint


def number(one: OutcomeRig, url: str) -> int:
    return one.frontier.store.find(parse_url(url).host_key)


def push(one: OutcomeRig, url: str) -> None:
    """Queue a URL beside the place that it has."""
    one.frontier.store.push(number(one, QUEUED), one.frontier.jobs[JOB].number, 1, pack(Entry(key(url), url=url)))


def add(counter: object, name: str, by: int = 1) -> None:
    setattr(counter, name, getattr(counter, name) + by)


BROKEN: dict[str, Callable[[OutcomeRig], object]] = {
    "a URL is under another key": lambda one: moved(one),
    "a URL is in flight in a state outside": lambda one: answered(one),
    "leases and leased URLs differ": lambda one: one.frontier.in_flight.leases.clear(),
    "leases out of order": lambda one: out_of_order(one),
    "URLs without receipt and those with an outcome differ": lambda one: one.frontier.in_flight.without_receipt.clear(),
    "URLs without receipt out of order": lambda one: two_without_receipt(one),
    "a URL has no job": lambda one: rename(one),
    "in flight": lambda one: add(one.host, "in_flight"),
    "an active host was evicted": lambda one: one.frontier.hosts.hot.pop(number(one, LEASED)),
    "quotas count other leases": lambda one: add(one.frontier.jobs[JOB].holds.rooms[0], "in_flight"),
    "is prepared for no page": lambda one: one.frontier.readiness.prepared.requested(
        number(one, DELAYED), 0, "http://d.test"
    ),
    "is late": lambda one: one.frontier.readiness.prepared.requested(number(one, QUEUED), 0, "http://c.test"),
    "is in two places": lambda one: one.frontier.readiness.ready.add(number(one, QUEUED), [(0, 1)]),
    "address queues and hosts differ": lambda one: one.frontier.readiness.waiting_for_address.update(
        {99: QueueSlot(99)}
    ),
    "queued, and nothing will ever take it": lambda one: one.frontier.store.unschedule(number(one, QUEUED)),
    "would be taken before its pace allows": lambda one: ready_too_early(one),
    "queued, but": lambda one: vars(one.frontier.jobs[JOB].queue).update(delayed=5),
    "leased, but": lambda one: one.frontier.jobs[JOB].lease(),
    "a URL is in two places": lambda one: push(one, LEASED),
    "a URL was not seen": lambda one: one.frontier.jobs[JOB].seen.discard(key(FETCHED)),
    "a URL with a reservation is not queued": lambda one: one.frontier.jobs[JOB].budget.reserve(key(FETCHED)),
    "a URL with priority is not queued": lambda one: one.frontier.jobs[JOB].budget.priority_refetch.add(key(FETCHED)),
    "a URL has two reservations": lambda one: two_reservations(one),
    "left, 1 ended": lambda one: one.frontier.jobs[JOB].seen.add(key("http://x.test/")),
    "left, 2 ended": lambda one: one.frontier.jobs[JOB].counts.ended.update([Outcome.FAILED]),
}


def moved(one: OutcomeRig) -> None:
    """Under the key of another URL."""
    urls = one.frontier.in_flight.urls
    urls[JOB, key(QUEUED)] = urls.pop((JOB, key(FETCHED)))


def answered(one: OutcomeRig) -> None:
    """An outcome that nothing follows."""
    one.frontier.in_flight.answer(one.frontier.in_flight.urls[JOB, key(LEASED)], one.now)


def out_of_order(one: OutcomeRig) -> None:
    """Two leases, the later one first."""
    one.frontier.set_limits(9, 9)
    one.pass_time(5.0)
    assert one.dispatch()
    one.frontier.in_flight.leases.move_to_end(next(iter(one.frontier.in_flight.leases)))


def two_without_receipt(one: OutcomeRig) -> None:
    """Two URLs without receipt, the later one first."""
    one.pass_time(5.0)
    lease_until = one.frontier.in_flight.urls[JOB, key(LEASED)].lease_until
    request = FetchRequest(JOB, key(LEASED), LEASED, "a.test", fetch_no=1, attempt=1, lease_until=lease_until)
    one.end(request, result=FetchResult.FETCHED, status=200)
    one.frontier.in_flight.without_receipt.move_to_end(next(iter(one.frontier.in_flight.without_receipt)))


def rename(one: OutcomeRig) -> None:
    """An outstanding URL of a job that there is not; its counts agree."""
    waiting = one.frontier.in_flight.urls.pop((JOB, key(LEASED)))
    waiting.job = "other"
    one.frontier.in_flight.urls["other", key(LEASED)] = waiting
    one.frontier.in_flight.leases["other", key(LEASED)] = one.frontier.in_flight.leases.pop((JOB, key(LEASED)))


def ready_too_early(one: OutcomeRig) -> None:
    """A ready host whose pace forbids a fetch."""
    one.frontier.hosts.get(number(one, QUEUED)).pace.after_fetch(one.now, 9.0)
    one.frontier.store.unschedule(number(one, QUEUED))
    one.frontier.readiness.ready.add(number(one, QUEUED), [(0, 1)])


def two_reservations(one: OutcomeRig) -> None:
    """A queued URL with both."""
    one.frontier.jobs[JOB].budget.reserve(key(QUEUED))
    one.frontier.jobs[JOB].budget.priority_refetch.add(key(QUEUED))


@pytest.mark.parametrize("words", BROKEN)
def test_a_broken_invariant_is_named(words: str) -> None:
    """In its own words."""
    one = rig()
    BROKEN[words](one)
    with pytest.raises(AssertionError, match=words.replace("priority", "a reservation")):
        one.check()


def test_each_state_of_a_url_is_there() -> None:
    one = rig()
    states = [one.state(url) for url in (LEASED, FETCHED, QUEUED, "http://e.test/")]
    assert states == ["leased", "fetched", "queued, fetch 1, tries 0", "ended"]
    assert one.state(DELAYED).startswith("delayed")
    assert one.waiting(LEASED).state is LifeState.LEASED  # type: ignore[union-attr]
