"""A frontier with one of many partitions: forwarded URLs, lost receipts, state in the log."""

from __future__ import annotations

from typing import Any

import pytest
from nephila.kernel.documents.job_schema import Scope
from nephila.kernel.messages import Context, FetchResult, Outcome, Render, Seed
from nephila.native import parse_url, partition_of
from nephila.scheduler.engine.admission import add_forwarded, admit
from nephila.scheduler.frontier.frontier import PartitionSlice
from nephila.scheduler.frontier.host_state import TurnOutput
from nephila.scheduler.jobs.queue_entry import SEED, Entry, entry_flags, pack_context, unpack

from tests.scheduler.engine.outcome_rig import JOB, OutcomeRig

URL = "http://a.test/0"
FAILED = FetchResult.FAILED
ALL = PartitionSlice(0, 1)
HOME = partition_of(parse_url(URL).fingerprint, 2)
FAR = next(
    host
    for host in (f"far{number}.test" for number in range(20))
    if partition_of(parse_url(f"http://{host}/").fingerprint, 2) != HOME
)


def entry_of(rig: OutcomeRig, url: str) -> tuple[int, Entry] | None:
    """Order and entry of a queued URL."""
    parts, job = parse_url(url), rig.frontier.jobs[JOB]
    number = rig.frontier.store.find(parts.host_key)
    items = rig.frontier.store.items(number, job.number) if number >= 0 else []
    return next(((order, unpack(packed)) for order, packed in items if unpack(packed).url == parts.href), None)


ADMITTED: dict[str, dict[str, Any]] = {
    "seed": {"flags": SEED, "priority": 255},
    "link": {"priority": 7},
    "target of a redirect": {"hops": 3, "head": True, "priority": 9},
    "target of a seed's redirect": {"hops": 1, "head": True, "flags": SEED},
    "with a context": {"context": pack_context(Context("member", "list"))},
    "rendered": {"flags": entry_flags(False, Render.ALWAYS)},
}


@pytest.mark.parametrize("name", ADMITTED)
def test_a_forwarded_url_is_queued_as_in_one_frontier(name: str) -> None:
    """Depth, hops, flags, priority, context and place in the queue; and once, however often it is forwarded."""
    url, fields = f"http://{FAR}/x", ADMITTED[name]
    parts = parse_url(url)
    whole, home, far = OutcomeRig(), OutcomeRig(PartitionSlice(HOME, 2)), OutcomeRig(PartitionSlice(1 - HOME, 2))
    for rig in (whole, home, far):
        rig.job(scope=Scope(mode="any", max_depth=5))
    for rig in (whole, home):
        job = rig.frontier.jobs[JOB]
        head = fields.get("head", False)
        rest = {name: value for name, value in fields.items() if name != "head"}
        admit(rig.frontier, job, Entry(parts.fingerprint, 4, url=parts.href, **rest), parts.host_key, head=head)
    assert entry_of(home, url) is None
    assert parts.fingerprint not in home.frontier.jobs[JOB].seen
    ((number, seed),) = home.frontier.take_for_other_partitions()
    assert number == 1 - HOME
    for _ in range(2):
        add_forwarded(far.frontier, far.frontier.jobs[JOB], seed, unpack(seed.entry), parts)
    assert entry_of(far, url) == entry_of(whole, url) is not None
    assert far.frontier.jobs[JOB].queue.length == 1
    far.check()


@pytest.mark.parametrize(
    ("seed", "anchor", "depth", "queued"),
    [
        (False, False, 0, False),
        (True, False, 9, True),
        (False, True, 2, True),
        (False, True, 3, False),
        (True, True, 9, True),
    ],
)
def test_a_forwarded_link_is_held_against_the_scope_where_it_belongs(
    seed: bool, anchor: bool, depth: int, queued: bool
) -> None:
    """A seed belongs to its job anyway; an anchor comes with it where it is the target of a seed's redirect."""
    rig = OutcomeRig(PartitionSlice(1 - HOME, 2))
    rig.job(scope=Scope(max_depth=2))
    url = f"http://{FAR}/x"
    entry = Entry(parse_url(url).fingerprint, depth, flags=entry_flags(seed), url=url)
    add_forwarded(rig.frontier, rig.frontier.jobs[JOB], Seed(JOB, anchor=anchor), entry, parse_url(url))
    assert (entry_of(rig, url) is not None) == queued
    assert rig.frontier.jobs[JOB].scope.anchors == ({FAR} if anchor else set())


def test_a_redirect_to_another_partition_is_checked_there() -> None:
    """This partition need not know the anchor of the target."""
    rig = OutcomeRig(PartitionSlice(HOME, 2))
    rig.job(URL)
    request = rig.next_request()
    rig.frontier.take_for_other_partitions()
    waiting = rig.waiting(URL)
    assert waiting is not None
    waiting.entry = waiting.entry._replace(flags=0)
    rig.end(request, result=FetchResult.REDIRECT, status=301, location=f"http://{FAR}/x")
    ((number, seed),) = rig.frontier.take_for_other_partitions()
    entry = unpack(seed.entry)
    assert (number, entry.url, entry.hops, entry.flags, seed.head) == (1 - HOME, f"http://{FAR}/x", 1, 0, True)


# ---- receipts that do not come


def landed(attempt: int, **ending: Any) -> OutcomeRig:
    """A URL whose outcome of this attempt came 10 s ago."""
    rig = OutcomeRig(ALL)
    rig.job(URL, "http://a.test/1")
    request = rig.next_request()
    waiting = rig.waiting(URL)
    assert waiting is not None
    request.attempt = waiting.attempt = attempt
    rig.frontier.pending.commits()
    rig.end(request, **{"result": FetchResult.FETCHED, "status": 200, **ending})
    (commit,) = rig.frontier.pending.commits()
    assert [(one.landed, one.attempt, one.record is not None) for one in commit.leased] == [
        (True, attempt, bool(ending))
    ]
    rig.pass_time(10.0)
    return rig


def lost(rig: OutcomeRig, before: float) -> int:
    out = TurnOutput()
    count = rig.handler.receipts_lost(before, rig.now, out)
    rig.records += [record for _, record in out.records]
    rig.check()
    return count


@pytest.mark.parametrize(
    ("attempt", "state"),
    [(1, "queued, fetch 1, tries 1"), (8, "queued, fetch 1, tries 8"), (9, "failed(lost)"), (10, "failed(lost)")],
)
def test_a_page_whose_receipt_is_lost_is_fetched_again(attempt: int, state: str) -> None:
    """Each time is a try: a page that ends its parser every time ends with a row."""
    rig = landed(attempt)
    assert lost(rig, rig.now - 10.001) == 0
    assert rig.state(URL) == "fetched"
    assert lost(rig, rig.now - 10.0) == 1
    assert rig.state(URL) == state
    assert rig.frontier.counters.lost_messages == 1
    assert lost(rig, rig.now - 10.0) == 0


def test_a_row_whose_receipt_is_lost_is_published_again() -> None:
    """The same row, as often as it is lost; the wait for its receipt begins anew."""
    rig = landed(1, result=FAILED, reason="http_404", status=404)
    for count in (1, 2):
        assert lost(rig, rig.now - 10.0) == 1
        assert lost(rig, rig.now - 10.0) == 0
        assert rig.records[0] is rig.records[count]
        assert rig.state(URL) == "failed(http_404)"
        rig.pass_time(10.0)
    rig.receipt(URL, 1, Outcome.FAILED)
    assert lost(rig, rig.now) == 0
    assert rig.state(URL) == "ended"


def test_a_receipt_before_the_outcome_is_in_the_log() -> None:
    """A successor that reads the outcome ends the URL."""
    rig = OutcomeRig(ALL)
    rig.job(URL)
    request = rig.next_request()
    rig.frontier.pending.commits()
    rig.receipt(URL, 1)
    (commit,) = rig.frontier.pending.commits()
    assert [one.receipt.fetch_no for one in commit.leased if one.receipt is not None] == [1]
    rig.end(request, result=FetchResult.FETCHED, status=200)
    assert rig.state(URL) == "ended"
    assert not rig.frontier.in_flight.without_receipt


@pytest.mark.parametrize("consumed_s", [None, -1.0, 0.0, 5.0])
def test_a_try_counts_only_where_a_downloader_consumed_the_request(consumed_s: float | None) -> None:
    """Any outcome of a request handed out later, or at the same instant, shows it; reports of expired leases do not."""
    rig = OutcomeRig(ALL, concurrency=2)
    rig.frontier.in_flight.consumed_until, rig.frontier.in_flight.notes_consumed = [0.0, 0.0], True
    rig.job(URL, "http://b.test/")
    other = next(request for request in (*rig.dispatch(), *rig.dispatch()) if request.url != URL)
    waiting = rig.waiting(URL)
    assert waiting is not None
    waiting.attempt = 3
    rig.end(other, result=FAILED, reason="lease_expired", lease_until=1.0)
    if consumed_s is not None:
        rig.pass_time(consumed_s)
        rig.end(other, result=FetchResult.FETCHED, status=200)
    rig.pass_time(180.0 - (consumed_s or 0.0))
    rig.dispatch()
    consumed = consumed_s is not None and consumed_s >= 0
    assert rig.state(URL) == ("failed(lease_expired)" if consumed else "delayed 8 s, fetch 1, tries 3")
