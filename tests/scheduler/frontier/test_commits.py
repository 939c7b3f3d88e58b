"""The pending commits of a frontier, and the order in which its hosts are ready. The frontier alone."""

from __future__ import annotations

import msgspec
import pytest
from nephila.kernel.documents.field_types import duration_text
from nephila.kernel.documents.job_schema import Politeness, Quota, Scope
from nephila.kernel.messages import FrontierCommit, Receipt, Record, Render, Seed
from nephila.native import HostStore, Trie, parse_url, partition_of
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.engine.job_changes import put_job
from nephila.scheduler.frontier.frontier import Frontier, PartitionSlice
from nephila.scheduler.frontier.in_flight import LifeState, Outstanding
from nephila.scheduler.frontier.restart_policy import RestartPolicy
from nephila.scheduler.jobs.job import Job
from nephila.scheduler.jobs.job_holds import Hold
from nephila.scheduler.jobs.queue_entry import RENDER_SHIFT, Entry, pack, unpack

from tests.jobs import crawl_job
from tests.queue_rows import queue_row
from tests.scheduler.deployments import deployed

URLS = [f"http://h{number}.test/" for number in range(40)]
IN_FLIGHT = (LifeState.LEASED, LifeState.FETCHED, LifeState.ENDING)
KEYS = [parse_url(url).fingerprint for url in URLS]


def frontier(partitions: int = 4, one: PartitionSlice | None = None) -> Frontier:
    config = SchedulerConfig(partitions=1 if one is not None else partitions)
    found = Frontier(config, HostStore(), lambda number: Trie(), **deployed(one))
    found.begin_turn(100.0, 1_700_000_000.0)
    return found


def job(one: Frontier, uid: str = "t", **spec: object) -> Job:
    found = put_job(one, crawl_job(uid, uid, 1, **spec))  # type: ignore[arg-type]
    assert found is not None
    return found


def queue(one: Frontier, owner: Job, url: str, order: int = 1, flags: int = 0) -> int:
    """Queue a URL; returns the number of its host."""
    parts = parse_url(url)
    number = one.store.host(parts.host_key)
    one.store.push(number, owner.number, order, pack(Entry(parts.fingerprint, flags=flags, url=url)))
    one.readiness.newly_queued(number, owner, order)
    return number


# ---- commits


def test_partition_0_comes_first_and_each_partition_counts_its_commits() -> None:
    """Jobs are in partition 0; a partition without a change has no commit."""
    one = frontier()
    for numbers in ([3, 0, 1], [2], [3, 1], []):
        for number in numbers:
            assert one.pending.of(one.partitions[number]) is one.pending.of(one.partitions[number])
        written = one.pending.commits()
        assert [commit.partition for commit in written] == sorted(numbers)
        assert [commit.sequence for commit in written] == [
            one.partitions[number].sequence for number in sorted(numbers)
        ]
    assert [partition.sequence for partition in one.partitions] == [1, 2, 1, 2]


def test_links_of_pages_are_in_the_commits_of_their_partitions_in_order() -> None:
    """Rows of several pages are one list each; rows that are logged singly come behind them."""
    one = frontier()
    rows = [queue_row("t", bytes([number]) * 16, f"http://a.test/{number}", "a.test") for number in range(7)]
    packed = [msgspec.msgpack.encode(row) for row in rows]
    one.pending.add_rows([(1, 2, packed[0] + packed[1]), (3, 1, packed[2])])
    one.pending.add_rows([(3, 2, packed[3] + packed[4])])
    one.pending.queued(one.partitions[1]).append(rows[5])
    one.pending.add_rows([(1, 1, packed[6])])
    written = [
        msgspec.convert(msgspec.msgpack.decode(msgspec.msgpack.encode(commit)), FrontierCommit)
        for commit in one.pending.commits()
    ]
    found = {commit.partition: [unpack(row.entry).url[-1] for row in commit.queued] for commit in written}
    assert found == {1: ["0", "1", "5", "6"], 3: ["2", "3", "4"]}
    assert one.pending.commits() == []


@pytest.mark.parametrize("partitions", [0, 3, -4])
def test_partitions_are_a_power_of_two(partitions: int) -> None:
    with pytest.raises(ValueError, match="power of two"):
        Frontier(SchedulerConfig(partitions=partitions), HostStore(), lambda number: Trie())


def test_urls_of_other_partitions_are_forwarded_once() -> None:
    """Each to its own partition; a frontier that has all partitions has no others."""
    one = frontier(one=PartitionSlice(2, 8))
    others = [key for key in KEYS if one.is_other_partition(key)]
    assert others == [key for key in KEYS if partition_of(key, 8) != 2]
    for url, key in zip(URLS, KEYS, strict=True):
        if key in others:
            one.forward(Seed("t", url), key)
    assert [(number, seed.url) for number, seed in one.take_for_other_partitions()] == [
        (partition_of(key, 8), url) for url, key in zip(URLS, KEYS, strict=True) if key in others
    ]
    assert one.take_for_other_partitions() == []
    assert not any(map(frontier().is_other_partition, KEYS))


@pytest.mark.parametrize("state", IN_FLIGHT)
@pytest.mark.parametrize("uid", ["t", "", "\0t"])
def test_an_outstanding_url_is_logged_as_its_successor_needs_it(uid: str, state: LifeState) -> None:
    """The URL only where the queue does not have it: robots.txt, and jobs that were deleted. One program logs the lease
    alone: after a restart the URL is fetched again."""
    for one in (frontier(1), frontier(one=PartitionSlice(0, 1))):
        job(one)
        entry = Entry(KEYS[0], 0, 5, 1, 0, 0, 0, URLS[0])
        waiting = Outstanding(uid, one.hosts.get_or_create("h0.test"), entry, 2, "192.0.2.1", state, 1_700_000_180.0)
        waiting.receipted, waiting.record = Receipt(KEYS[0], 5), Record(uid, KEYS[0])
        leased = one.in_flight.logged(waiting)
        assert (leased.url_key, leased.job, leased.host, leased.attempt) == (KEYS[0], uid, "h0.test", 2)
        rest = (leased.lease_until, leased.address, leased.entry, leased.landed)
        if one.restart is RestartPolicy.LEASES_END:
            assert rest == (0.0, "", b"", False)
            assert (leased.receipt, leased.record) == (None, None)
        else:
            packed = b"" if uid == "t" else pack(entry)
            assert rest == (1_700_000_180.0, "192.0.2.1", packed, state is not LifeState.LEASED)
            assert (leased.receipt, leased.record) == (waiting.receipted, waiting.record)


def test_urls_without_receipt_are_in_the_order_of_their_outcomes() -> None:
    """A URL whose row was published again waits from then on."""
    one = frontier()
    host = one.hosts.get_or_create("h0.test")
    waiting = [
        Outstanding("t", host, Entry(key, 0, 1, 0, 0, 0, 0, url), 1) for url, key in zip(URLS, KEYS, strict=True)
    ]
    for number in (0, 1, 2, 0):
        one.begin_turn(one.time.now + 10.0, one.time.utc_now + 10.0)
        one.in_flight.await_receipt(waiting[number])
    assert list(one.in_flight.without_receipt.items()) == [
        (("t", KEYS[1]), 120.0),
        (("t", KEYS[2]), 130.0),
        (("t", KEYS[0]), 140.0),
    ]


def test_each_total_of_a_quota_is_in_a_commit_once() -> None:
    """However many fetches the turn has; a next turn logs the new totals."""
    one = frontier()
    job(one, quota=Quota(pages=10), site="s", site_quota=Quota(pages=20, per="day"))
    one.pending.commits()
    for browser_s, accounts in ((0.0, ["job:t", "site:s"]), (2.0, ["job:t", "site:s", "browser:t"])):
        for _ in range(2):
            one.holds.count_quotas(one.jobs["t"], 50, browser_s)
        (commit,) = one.pending.commits()
        assert [use.account for use in commit.uses] == accounts
    assert [(use.pages, use.bytes, use.browser_s) for use in commit.uses] == [(4, 200, 4.0), (4, 200, 4.0), (0, 0, 4.0)]


def test_a_job_is_held_by_the_fetch_that_uses_up_its_quota() -> None:
    """Not later than that, and until a larger quota comes."""
    one = frontier()
    found = job(one, quota=Quota(pages=2))
    for held in (False, True, True):
        one.holds.count_quotas(found, 1, 0.0)
        assert bool(found.holds.text(Hold.QUOTA)) == held
    put_job(one, crawl_job("t", "t", 2, quota=Quota(pages=4)))
    one.holds.apply_quotas()
    assert not found.holds.text(Hold.QUOTA)


# ---- consumption of requests


def test_a_request_counts_as_consumed_when_a_later_one_of_its_kind_was() -> None:
    """Requests for browsers have other downloaders."""
    one = Frontier(SchedulerConfig(partitions=1), HostStore(), lambda number: Trie(), consumed_until=100.0)
    job(one)
    host, length_s = one.hosts.get_or_create("h0.test"), one.config.start_by_s + one.config.lease_s
    plain, rendered = (
        Outstanding("t", host, Entry(key, 0, 1, 0, 0, render << RENDER_SHIFT, 0, url), 1)
        for key, render, url in zip(KEYS, (Render.NEVER, Render.ALWAYS), URLS, strict=False)
    )
    for at in (100.0, 101.0):
        for waiting in (plain, rendered):
            one.in_flight.resume(waiting, at + length_s, at)
            assert one.in_flight.leased_at(waiting) == at
        assert {one.in_flight.was_consumed(waiting) for waiting in (plain, rendered)} == {at == 100.0}
    one.in_flight.note_consumed(101.0)
    one.in_flight.note_consumed(99.0)
    assert [one.in_flight.was_consumed(waiting) for waiting in (plain, rendered)] == [True, False]
    one.in_flight.note_consumed(101.0, rendered=True)
    assert one.in_flight.was_consumed(rendered)


@pytest.mark.parametrize(
    ("of_job", "of_url", "rendered"),
    [
        ("never", Render.UNSPECIFIED, False),
        ("never", Render.AUTO, True),
        ("auto", Render.UNSPECIFIED, True),
        ("always", Render.NEVER, False),
    ],
)
def test_the_rendering_of_a_url_goes_before_that_of_its_job(of_job: str, of_url: Render, rendered: bool) -> None:
    """robots.txt is not rendered."""
    one = frontier()
    job(one, render=of_job)
    host, entry = one.hosts.get_or_create("h0.test"), Entry(KEYS[0], 0, 1, 0, 0, of_url << RENDER_SHIFT, 0, URLS[0])
    assert one.in_flight.is_rendered(Outstanding("t", host, entry, 1)) == rendered
    assert not one.in_flight.is_rendered(Outstanding("", host, entry, 1))


# ---- readiness


def test_a_prepared_host_is_taken_at_its_instant_and_not_before() -> None:
    """A host that is not prepared is not taken here."""
    one = frontier()
    owner = job(one)
    first, second = (queue(one, owner, url) for url in URLS[:2])
    one.readiness.prepared.requested(second, owner.number, "http://h1.test")
    one.readiness.schedule_at(second, 110.0)
    one.readiness.schedule_at(first, 100.0)
    assert one.readiness.take_prepared() == -1
    one.begin_turn(110.0, one.time.utc_now + 10.0)
    assert one.readiness.take_prepared() == second
    assert one.store.ready_at(second) is None
    assert one.readiness.take_prepared() == -1


def test_a_robots_txt_is_fetched_only_for_a_page_that_the_budget_covers() -> None:
    """Hosts that are prepared count as pages; a job that ignores robots.txt prepares none."""
    one = frontier()
    limited = job(one, scope=Scope(max_depth=0, max_pages=2))
    careless = job(
        one, "careless", scope=Scope(max_depth=0, max_pages=2), politeness=Politeness(delay="1s", respect_robots=False)
    )
    for number, allowed in enumerate((True, True, False)):
        assert one.readiness.may_prepare(limited) == allowed
        one.readiness.prepared.requested(number, limited.number, "http://a.test")
        one.readiness.prepared.requested(10 + number, careless.number, "http://a.test")
    assert one.readiness.may_prepare(careless)
    assert one.readiness.may_prepare(job(one, "unlimited"))


def test_gauges_of_hosts() -> None:
    """Due hosts, ready ones, waiting ones and those that no delay frees."""
    one = frontier()
    owner, other = job(one), job(one, "other")
    numbers = [queue(one, owner, url) for url in URLS[:6]]
    for number, at in zip(numbers, (90.0, 100.0, 101.0, 150.0, 150.0, 150.0), strict=True):
        one.readiness.schedule_at(number, at)
    assert (one.readiness.hosts_ready(100.0), one.readiness.hosts_waiting(100.0), one.readiness.urls_ready(100.0)) == (
        2,
        4,
        2,
    )
    assert one.store.take_ready(100.0) == numbers[0]
    one.readiness.ready.add(numbers[0], [(owner.number, 1)], 95.0)
    queue(one, owner, "http://h0.test/second")
    assert (one.readiness.hosts_ready(100.0), one.readiness.hosts_waiting(100.0), one.readiness.urls_ready(100.0)) == (
        2,
        4,
        3,
    )
    assert (one.readiness.oldest_ready_s(120.0), one.readiness.oldest_ready_s(90.0)) == (25.0, 0.0)
    assert one.readiness.hosts_blocked == 0
    for number in numbers[3:5]:
        one.store.unschedule(number)
    one.readiness.set_waiting_for_job(numbers[3], (owner, other))
    owner.queue.over_budget_hosts[numbers[4]] = None
    host = one.hosts.get(numbers[5])
    host.address = "192.0.2.1"
    one.store.unschedule(numbers[5])
    one.readiness.wait_for_address(host, head=False)
    assert one.readiness.hosts_blocked == 3
    one.readiness.resume_hosts(owner)
    assert (one.readiness.hosts_blocked, one.store.ready_at(numbers[3])) == (3, 100.0), "one job still lists it"
    assert one.readiness.take_waiting_for_address() == numbers[5]
    assert one.readiness.take_waiting_for_address() == -1


def test_the_most_careful_job_says_how_many_fetches_a_host_has_and_how_long_it_waits() -> None:
    """Without a job it is one fetch, after its Crawl-delay."""
    one = frontier()
    host = one.hosts.get_or_create("h0.test")
    host.crawl_delay_s = 4.0
    assert (one.hosts.limit(host), one.hosts.delay_s(host, None), one.hosts.fetches_alone(host, None)) == (
        1,
        4.0,
        False,
    )
    host.crawl_delay_s = 0.0
    quick, slow = (
        job(
            one,
            str(delay),
            politeness=Politeness(delay=duration_text(delay), concurrency_per_host=count, respect_robots=False),
        )
        for delay, count in ((2.0, 4), (3.0, 2))
    )
    for owner, limit, delay_s in ((quick, 4, 2.0), (slow, 2, 3.0)):
        queue(one, owner, URLS[0])
        assert (one.hosts.limit(host), one.hosts.delay_s(host, None), one.hosts.delay_s(host, quick)) == (
            limit,
            delay_s,
            2.0,
        )
    alone = job(
        one, "alone", politeness=Politeness(delay=duration_text(1.0), concurrency_per_host=1, respect_robots=False)
    )
    assert not one.hosts.fetches_alone(host, alone)
    assert one.hosts.fetches_alone(one.hosts.get_or_create("h1.test"), alone)
