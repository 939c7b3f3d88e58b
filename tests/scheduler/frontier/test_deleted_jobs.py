"""A job that is deleted: what goes with it, and what a job of the same name finds. The frontier alone."""

from __future__ import annotations

import msgspec
import pytest
from nephila.kernel.documents.job_schema import Quota
from nephila.kernel.messages import (
    Anchor,
    DomainState,
    EndedUrl,
    ForgottenUrl,
    FrontierCommit,
    HostState,
    HostUse,
    LeasedUrl,
    Outcome,
    Quarantine,
    QuotaUse,
    UrlState,
)
from nephila.native import HostStore, Trie
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.engine.job_changes import put_job
from nephila.scheduler.frontier.frontier import Frontier, PartitionSlice
from nephila.scheduler.frontier.host_table import novelty_of
from nephila.scheduler.frontier.in_flight import DELETED, LifeState, Outstanding
from nephila.scheduler.jobs.queue_entry import Entry, pack

from tests.jobs import crawl_job
from tests.queue_rows import queue_row
from tests.scheduler.deployments import deployed

KEY = b"\0" * 16
JOBS = ("gone", "stays")


def frontier(one: PartitionSlice | None = None) -> Frontier:
    """Two jobs with quotas."""
    found = Frontier(SchedulerConfig(partitions=1), HostStore(), lambda number: Trie(), **deployed(one))
    found.begin_turn(100.0, 1_700_000_000.0)
    for uid in JOBS:
        put_job(found, crawl_job(uid, uid, 1, quota=Quota(pages=10)))
    return found


def rows_of(uid: str) -> dict[str, list[object]]:
    """A row of a job for each list of a commit that names jobs."""
    return {
        "queued": [queue_row(uid, KEY, "http://a.test/", "a.test")],
        "held": [queue_row(uid, KEY, "http://a.test/", "a.test")],
        "leased": [LeasedUrl(KEY, uid, "a.test", 1)],
        "ended": [EndedUrl(KEY, uid, "a.test", 1, Outcome.STORED)],
        "urls": [UrlState(uid, KEY, "http://a.test/", "a.test")],
        "anchors": [Anchor(uid, "a.test")],
        "uses": [QuotaUse(f"job:{uid}", 0.0, 3), QuotaUse(f"browser:{uid}", 0.0, 0, 0, 1.0)],
        "forgotten": [ForgottenUrl(uid, KEY, Outcome.STORED, 1)],
        "domains": [DomainState(uid, "a.test", 3)],
        "quarantines": [Quarantine(uid, "a.test", "/d/", "nothing new", 1.0, 9)],
    }


def test_nothing_of_a_deleted_job_is_left_in_the_commit_of_its_turn() -> None:
    """The same commit may bring a job of that name. Rows of others, robots.txt and the pace of hosts stay."""
    one = frontier()
    one.pending.commits()
    commit = one.pending.of(one.partitions[0])
    for uid in JOBS:
        for name, rows in rows_of(uid).items():
            getattr(commit, name).extend(rows)
    commit.uses.append(QuotaUse("tenant:news", 0.0, 6))
    commit.hosts.append(HostState("a.test", not_before=50.0, uses=[HostUse("gone", 3), HostUse("stays", 4)]))
    kept = {name for name, rows in rows_of("stays").items() if rows}
    put_job(one, crawl_job("gone", "gone", 2, deleted=True))
    (written,) = one.pending.commits()
    assert [job.uid for job in written.jobs if job.deleted] == ["gone"]
    written.jobs = []
    expected = FrontierCommit(written.partition, written.epoch, written.sequence)
    for name in kept:
        setattr(expected, name, rows_of("stays")[name])
    expected.uses.append(QuotaUse("tenant:news", 0.0, 6))
    expected.hosts.append(HostState("a.test", not_before=50.0, uses=[HostUse("stays", 4)]))
    assert msgspec.msgpack.encode(written) == msgspec.msgpack.encode(expected)
    named = {field.name for field in msgspec.structs.fields(FrontierCommit)} - {"partition", "epoch", "sequence"}
    assert named == kept | {"hosts", "robots", "jobs"}, "a new list of the commit needs a row here"


def test_links_of_the_turn_go_with_their_job() -> None:
    """Rows that are not merged into a commit yet."""
    one = frontier()
    one.pending.commits()
    for uid in JOBS:
        one.pending.add_rows([(0, 1, msgspec.msgpack.encode(rows_of(uid)["queued"][0]))])
    put_job(one, crawl_job("gone", "gone", 2, deleted=True))
    (written,) = one.pending.commits()
    decoded = msgspec.convert(msgspec.msgpack.decode(msgspec.msgpack.encode(written)), FrontierCommit)
    assert [queued.job for queued in decoded.queued] == ["stays"]


def test_what_a_deleted_job_used_is_not_that_of_its_namesake() -> None:
    """On hosts that are objects: budget, novelty, quotas and browser time; counts of ended URLs; queued URLs."""
    one = frontier()
    host = one.hosts.get_or_create("a.test")
    for uid in JOBS:
        job = one.jobs[uid]
        host.uses[uid] = HostUse(uid, 3)
        novelty_of(host, job)
        one.holds.count_quotas(job, 100, 2.0)
        one.partitions[0].ended[uid, Outcome.STORED] += 1
        one.store.push(host.number, job.number, 1, pack(Entry(KEY, url="http://a.test/")))
        one.readiness.prepared.requested(host.number, job.number, "http://a.test")
    for deleted in (True, False):
        put_job(one, crawl_job("gone", "gone", 2, deleted=deleted, quota=Quota(pages=10)))
    assert set(host.uses) == set(host.novelty) == {"stays"}
    assert set(one.partitions[0].ended) == {("stays", Outcome.STORED)}
    assert [one.jobs[uid].queue.length for uid in JOBS] == [0, 1]
    assert [[use.pages for use in one.quotas.uses(uid, one.time.utc_now)] for uid in JOBS] == [[0], [1]]
    assert [one.quotas.browser_s(uid) for uid in JOBS] == [0.0, 2.0]
    assert one.readiness.prepared.job(host.number) == one.jobs["stays"].number
    assert one.jobs["gone"].number == 2


@pytest.mark.parametrize("state", [LifeState.LEASED, LifeState.FETCHED, LifeState.ENDING])
def test_only_fetches_in_flight_outlive_their_job(state: LifeState) -> None:
    """They keep their place in the order of the leases, under a name that no job can have."""
    one = frontier(PartitionSlice(0, 1))
    host = one.hosts.get_or_create("a.test")
    for number, uid in enumerate((*JOBS, "gone")):
        key = bytes([number]) * 16
        entry = Entry(key, 0, 1, 0, 0, 0, 0, f"http://a.test/{number}")
        waiting = Outstanding(uid, host, entry, 1, state=state if uid == "gone" else LifeState.LEASED)
        one.in_flight.restore(waiting)
        if waiting.state is LifeState.LEASED:
            one.in_flight.resume(waiting, 200.0 + number, 100.0)
    put_job(one, crawl_job("gone", "gone", 2, deleted=True))
    leased = state is LifeState.LEASED
    named = [DELETED + "gone", "stays", DELETED + "gone"] if leased else ["stays"]
    assert [uid for uid, _ in one.in_flight.leases] == named
    assert list(one.in_flight.leases.values()) == ([200.0, 201.0, 202.0] if leased else [201.0])
    assert sorted(uid for uid, _ in one.in_flight.urls) == sorted(named)
    assert all(uid == waiting.job for (uid, _), waiting in one.in_flight.urls.items())
    assert (len(one.in_flight), len(one.in_flight.without_receipt)) == (len(named), 0)


def test_fetch_numbers_go_on_and_job_numbers_are_not_used_again() -> None:
    """Also when they come from a snapshot; the higher job number counts."""
    one = frontier()
    one.jobs["gone"].fetch_numbers.note(7)
    put_job(one, crawl_job("gone", "gone", 2, deleted=True))
    assert one.jobs.deleted == {"gone": 7}
    again = frontier()
    again.jobs.restore_counts(9, {"old": 3})
    again.jobs.restore_counts(5, one.jobs.deleted)
    job = put_job(again, crawl_job("old", "old", 1))
    assert job is not None
    assert (job.number, job.fetch_numbers.first, again.jobs.deleted) == (9, 4, {"gone": 7})
    assert put_job(again, crawl_job("new", "new", 1)).fetch_numbers.first == 1  # type: ignore[union-attr]
    assert again.jobs.next_number == 11
