"""The state of one job: budgets, reservations, holds and changes of its spec. Pure."""

from __future__ import annotations

import pytest
from nephila.kernel.documents.budget_schema import HostBudget
from nephila.kernel.documents.job_schema import Mode, Politeness, Scope
from nephila.kernel.messages import HostUse, Outcome, Render
from nephila.native import HostStore, Trie
from nephila.scheduler.jobs.job import Job
from nephila.scheduler.jobs.job_holds import Hold
from nephila.scheduler.jobs.queue_entry import SEED, Entry, pack
from nephila.scheduler.tenants.quotas import Room

from tests.jobs import crawl_job

A, B, C = (bytes([number]) * 16 for number in range(3))


def job(page_quota: int | None = None, store: HostStore | None = None, **spec: object) -> Job:
    found = crawl_job("t", "t", 1, **spec)  # type: ignore[arg-type]
    return Job(found, 7, HostStore() if store is None else store, Trie(), page_quota=page_quota)


def test_the_page_budget_covers_what_is_stored_leased_and_reserved() -> None:
    """New URLs leave the places of reserved ones, and of those with priority; a reserved one has its own place."""
    one = job(scope=Scope(max_depth=0, max_pages=4))
    one.counts.ended[Outcome.STORED] = 1
    one.counts.ended[Outcome.FAILED] = 5
    one.lease()
    one.budget.reserve(A)
    assert (one.budget.left, one.budget.claimed) == (2, 3)
    assert [one.may_take(key) for key in (A, B)] == [True, True]
    one.budget.priority_refetch.add(B)
    assert (one.budget.claimed, [one.may_take(key) for key in (A, B, C)]) == (4, [True, True, False])
    one.budget.reserve(B)
    assert (one.budget.reserved, one.budget.priority_refetch) == ({A, B}, set())
    one.lease()
    assert [one.may_take(key) for key in (A, B, C)] == [True, True, False]
    one.lease()
    assert ([one.may_take(key) for key in (A, B, C)], one.has_room) == ([False, False, False], False)
    one.end_lease()
    one.budget.free(A)
    one.budget.free(B)
    assert ([one.may_take(key) for key in (A, C)], one.has_room, one.budget.reserved) == ([True, True], True, set())
    assert (one.counts.leased, one.counts.dispatched) == (2, 3)


def test_without_a_page_budget_nothing_is_reserved() -> None:
    one = job()
    one.budget.reserve(A)
    one.counts.ended[Outcome.STORED] = 10_000
    assert (one.budget.reserved, one.may_take(B), one.has_room, one.budget.is_spent, one.is_blocked) == (
        set(),
        True,
        True,
        False,
        False,
    )


@pytest.mark.parametrize(("stored", "spent"), [(1, False), (2, True), (3, True)])
def test_a_job_whose_budget_is_stored_is_blocked(stored: int, spent: bool) -> None:
    one = job(scope=Scope(max_depth=0, max_pages=2))
    one.counts.ended[Outcome.STORED] = stored
    assert (one.budget.is_spent, one.is_blocked) == (spent, spent)


def test_a_share_of_the_page_budget_replaces_it() -> None:
    """The share is spent when all partitions together have spent the budget, and no page waits to be fetched again."""
    one = job(page_quota=0, scope=Scope(max_depth=0, max_pages=100))
    assert (one.budget.left, one.has_room, one.budget.is_spent) == (0, False, False)
    one.budget.set_quota(3, spent_elsewhere=True)
    one.counts.ended[Outcome.STORED] = 1
    assert (one.budget.left, one.has_room, one.budget.is_spent) == (2, True, True)
    one.budget.reserve(A)
    assert not one.budget.is_spent
    one.budget.free(A)
    one.budget.priority_refetch.add(A)
    assert not one.budget.is_spent
    one.budget.free(A)
    assert one.budget.is_spent


def test_a_paused_or_held_job_takes_nothing() -> None:
    """The end of one reason leaves the other."""
    one = job()
    one.set_hold(Hold.QUOTA, "used up")
    one.set_hold(Hold.QUOTA, "used up in another way")
    assert (one.has_room, one.may_take(A), one.is_blocked, one.holds.changes) == (False, False, True, 1)
    one.change(crawl_job("t", "t", 2, paused=True))
    one.set_hold(Hold.QUOTA, "")
    assert (one.has_room, one.is_blocked, one.holds.changes) == (False, True, 2)
    one.change(crawl_job("t", "t", 3))
    assert one.has_room
    one.set_hold(Hold.QUOTA, "used up")
    one.change(crawl_job("t", "t", 4))
    assert not one.has_room, "a changed spec does not release it"


def test_rooms_of_quotas_count_the_leases_of_their_jobs() -> None:
    """A room that a job gets or loses takes its leases over; every room needs a place."""
    one, other = job(), job()
    shared, own = Room(), Room()
    other.note_quotas((shared,))
    other.lease()
    one.lease()
    one.restore_lease()
    one.note_quotas((shared, own))
    assert (shared.in_flight, own.in_flight, one.counts.dispatched) == (3, 2, 1)
    shared.places = 4
    assert one.has_room
    shared.places = 3
    assert not one.has_room
    one.note_quotas((own,))
    assert (shared.in_flight, own.in_flight, one.has_room, one.holds.rooms) == (1, 2, True, (own,))
    one.end_lease()
    one.set_hold(Hold.QUOTA, "used up")
    one.note_quotas(())
    assert (own.in_flight, one.holds.rooms, one.holds.text(Hold.QUOTA), one.has_room) == (0, (), "", True)


@pytest.mark.parametrize(
    ("budget", "spent"),
    [
        (HostBudget(), ""),
        (HostBudget(queued=1), ""),
        (HostBudget(pages=4), ""),
        (HostBudget(pages=3), "the budget of 3 fetches per host is spent"),
        (HostBudget(bytes=2001), ""),
        (HostBudget(bytes=2000), "the budget of 2,000 bytes per host is spent"),
        (HostBudget(time="1.6s"), ""),
        (HostBudget(time="1.5s"), "the budget of 1.5 s per host is spent"),
    ],
)
def test_each_measure_of_a_host_budget_is_spent_at_its_limit(budget: HostBudget, spent: str) -> None:
    one = job(host_budget=budget)
    assert one.compiled.host_limits.spent(HostUse("t", 3, 2000, 1.5)) == spent
    assert one.compiled.host_limits.spent(None) == ""


def test_urls_on_hosts_whose_budget_is_spent_are_not_waited_for() -> None:
    """They are queued; delayed URLs are both."""
    store = HostStore()
    one = job(store=store)
    for host, key in (("a.test", A), ("a.test", B), ("b.test", C)):
        store.push(store.host(host), one.number, 1, pack(Entry(key, url="http://x.test/")))
    one.queue.delayed += 1
    assert (one.queue.length, one.queue.waiting) == (4, 4)
    one.queue.over_budget_hosts[store.host("a.test")] = None
    assert (one.queue.length, one.queue.waiting) == (4, 2)


def test_fetch_numbers_rise() -> None:
    """A URL that was fetched in an earlier run, or is watched, has had its first fetch."""
    one = Job(crawl_job("t", "t", 1), 7, HostStore(), Trie(), first_fetch_no=3)
    assert [one.is_first_fetch(A, number) for number in (1, 3, 4)] == [True, True, False]
    one.fetch_numbers.note(9)
    one.fetch_numbers.note(5)
    assert (one.fetch_numbers.first, one.fetch_numbers.last) == (3, 9)
    one.fetch_numbers.restore(4, 6)
    assert (one.fetch_numbers.first, one.fetch_numbers.last) == (4, 6)


def test_queued_urls_are_judged_again_only_after_a_changed_scope() -> None:
    """A seed leaves only where it is excluded; the answer is the rule. A job of a later generation may have changed
    before this program started."""
    seed = Entry(A, 0, 1, 0, 0, SEED, 0, "http://b.test/x")
    link = Entry(B, 3, 1, 0, 0, 0, 0, "http://a.test/x")
    one = job(scope=Scope(max_depth=1))
    one.scope.add_seed("a.test", "/")
    assert [one.left_scope(seed, "b.test"), one.left_scope(link, "a.test")] == ["", ""]
    one.change(crawl_job("t", "t", 2, scope=Scope(max_depth=1), weight=3.0))
    assert one.left_scope(link, "a.test") == ""
    one.change(crawl_job("t", "t", 3, scope=Scope(max_depth=2)))
    assert one.left_scope(link, "a.test") == "depth 3 is beyond the limit of 2"
    assert one.left_scope(seed, "b.test") == ""
    one.change(crawl_job("t", "t", 4, scope=Scope(exclude=["/x"], max_depth=-1)))
    assert one.left_scope(seed, "b.test") == "/x"
    one.change(crawl_job("t", "t", 5, scope=Scope(max_depth=-1)))
    assert one.left_scope(link, "a.test") == "", "the anchor stays"
    one.change(crawl_job("t", "t", 6, scope=Scope(max_depth=-1)))
    assert one.left_scope(link._replace(url="http://b.test/"), "b.test") == "host b.test is not a seed host"
    later = Job(crawl_job("t", "t", 2, scope=Scope(max_depth=1)), 7, HostStore(), Trie())
    assert later.left_scope(link, "a.test") == "depth 3 is beyond the limit of 1"


def test_refused_links_are_remembered_up_to_a_limit_and_until_the_scope_changes() -> None:
    one = job()
    for key in (A, B):
        one.refused.reject(key, 2)
    assert [key in one.refused.rejected for key in (A, B, C)] == [True, True, False]
    one.refused.reject(C, 2)
    assert [key in one.refused.rejected for key in (A, B, C)] == [False, False, True]
    one.change(crawl_job("t", "t", 2))
    assert C not in one.refused.rejected


@pytest.mark.parametrize(("mode", "seed_hosts"), [("any", ["a.test"]), ("host", ["b.test"])])
def test_seed_hosts_are_those_of_the_anchors_or_of_the_seeds(mode: Mode, seed_hosts: list[str]) -> None:
    """Only a scope without anchors reads the seeds; one that is no URL is skipped."""
    one = job(seeds=["http://a.test/x", "no url"], scope=Scope(mode=mode, max_depth=0))
    one.scope.add_seed("b.test", "/")
    assert [host for host in ("a.test", "b.test", "") if one.is_seed_host(host)] == seed_hosts
    one.change(crawl_job("t", "t", 2, ["http://c.test/"], Scope(mode=mode, max_depth=0)))
    assert one.is_seed_host("c.test") == (mode == "any")


def test_a_spec_without_settings_has_their_defaults() -> None:
    one = job()
    assert (
        one.budget.max_pages,
        one.compiled.host_limits.counts_use,
        one.compiled.ignore_robots,
        one.compiled.render,
    ) == (0, False, False, Render.NEVER)
    assert job(politeness=Politeness(delay="1s", respect_robots=False)).compiled.ignore_robots


def test_events_that_may_end_idleness_are_noted() -> None:
    """A dispatch, a hold that begins or ends, another spec; not a page that ends."""
    changed: set[str] = set()
    one = Job(crawl_job("t", "t", 1), 7, HostStore(), Trie(), changed=changed)

    def noted(event: object) -> bool:
        found = bool(changed)
        changed.clear()
        return found

    assert noted(None)  # new
    assert noted(one.lease())
    assert not noted(one.end_lease())
    assert noted(one.set_hold(Hold.WINDOW, "until noon"))
    assert not noted(one.set_hold(Hold.WINDOW, "until one"))
    assert noted(one.set_hold(Hold.WINDOW, ""))
    assert noted(one.change(crawl_job("t", "t", 2)))
