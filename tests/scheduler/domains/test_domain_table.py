"""The table of domains: in-degrees, shares, hosts held back and released, bounded memory, the way over the log."""

from __future__ import annotations

import random

import pytest
from nephila.kernel.documents.budget_schema import DomainBudget
from nephila.kernel.documents.job_schema import JobSpec, Mode, Scope
from nephila.scheduler.domains import domain_table
from nephila.scheduler.domains.domain_table import (
    FEW_HOSTS,
    FLOOR,
    LATEST,
    LEAST_PARKED,
    SOURCES,
    DomainTable,
    hash_of,
    table_of,
)

FARM = "x{}.farm.test"


def table_with(budget: int = 2, mode: Mode = "any", before: DomainTable | None = None) -> DomainTable | None:
    return table_of(JobSpec(scope=Scope(mode=mode), domains=DomainBudget(budget)), before)


def broad(budget: int = 2) -> DomainTable:
    table = table_with(budget)
    assert table is not None
    table.note_broad()
    table.take_changes("j")
    return table


def spend(table: DomainTable, name: str, hosts: int, each: int) -> None:
    """Each of so many hosts of a domain gets so many requests."""
    for number in range(hosts):
        table.request(f"x{number}.{name}", each)


def link(table: DomainTable, name: str, sources: int) -> None:
    for number in range(sources):
        table.link(table.of(name), hash_of(f"source-{number}.test"))


def test_a_job_of_any_hosts_has_a_table_unless_its_budget_is_0() -> None:
    table = table_with()
    assert table is not None
    assert table_with(mode="domain") is None
    assert table_with(0) is None
    assert table_with(3, before=table) is table
    assert table.limit == 3


def test_budgets_hold_once_the_job_is_broad() -> None:
    table = table_with()
    assert table is not None
    spend(table, "farm.test", 20, 30)
    link(table, "a.test", 50)
    assert not table.is_over(table.of("farm.test"))
    table.note_broad()
    assert table.is_over(table.of("farm.test"))


def test_a_host_belongs_to_the_registrable_domain_and_a_port_does_not_count() -> None:
    table = broad()
    for host in ("www.a.co.uk", "b.a.co.uk:8080", "one.blogspot.com", "two.blogspot.com", "10.0.0.1:81", "[::1]:80"):
        table.request(host, 1)
    assert sorted(table.domains) == ["10.0.0.1", "[::1]", "a.co.uk", "one.blogspot.com", "two.blogspot.com"]


def test_the_budget_is_a_share_by_in_degree_in_distinct_domains() -> None:
    table = broad()
    spend(table, "farm.test", FEW_HOSTS + 1, 1)
    spend(table, "other.test", 1, 10_000)
    link(table, "other.test", 97)
    link(table, "farm.test", 2)
    link(table, "farm.test", 2)
    farm = table.of("farm.test")
    assert (table.weight, farm.weight) == (98 + 3, 3)
    assert table.budget(farm) == 2 * table.requests * 3 / 101
    assert table.spent(FARM.format(1)) == ""
    spend(table, "farm.test", 1, 700)
    assert table.spent(FARM.format(1)) == "its domain farm.test has used 709 of 637 requests"


def test_few_hosts_and_few_requests_are_never_too_many() -> None:
    table = broad()
    link(table, "good.test", SOURCES)
    spend(table, "few.test", FEW_HOSTS, 10_000)
    spend(table, "small.test", FLOOR - 1, 1)
    assert not table.is_over(table.of("few.test"))
    assert not table.is_over(table.of("small.test"))
    spend(table, "few.test", FEW_HOSTS + 1, 1)
    assert not table.is_over(table.of("small.test"))
    spend(table, "small.test", 1, 1)
    assert table.spent("small.test") == ""  # its share has grown with the requests of the other
    table.limit = 0
    assert table.spent("small.test") == f"its domain small.test has used {FLOOR} of {FLOOR} requests"


def test_the_in_degree_is_exact_up_to_its_limit() -> None:
    table = broad()
    for _ in range(2):
        link(table, "a.test", SOURCES - 1)
    assert table.of("a.test").weight == SOURCES
    link(table, "a.test", SOURCES + 100)
    assert table.of("a.test").weight == SOURCES + 1


def held_farm() -> DomainTable:
    """A farm with 300 hosts, all held back."""
    table = broad()
    link(table, "good.test", SOURCES)
    spend(table, "farm.test", 300, 1)
    farm = table.of("farm.test")
    for number in range(300):
        table.park(farm, number)
    assert table.release() == []
    return table


def test_as_many_hosts_are_released_as_the_grown_budget_has_requests() -> None:
    table = held_farm()
    farm = table.of("farm.test")
    spend(table, "good.test", 1, 50_000)
    room = int(table.budget(farm)) - farm.requests + 1
    assert 0 < room < 300
    assert table.release() == list(range(room))
    assert table.release() == []
    table.check()
    link(table, "farm.test", 3)
    assert table.release()[0] == room
    table.check()


def test_a_domain_takes_no_more_hosts_than_it_may_use() -> None:
    table = broad()
    link(table, "good.test", SOURCES)
    spend(table, "farm.test", 200, 1)
    farm = table.of("farm.test")
    numbers = iter(range(10_000))
    while table.takes_hosts(farm):
        table.park(farm, next(numbers))
    assert len(table.parked) == FLOOR > LEAST_PARKED
    spend(table, "good.test", 1, 20_000)
    while table.takes_hosts(farm):
        table.park(farm, next(numbers))
    assert len(table.parked) == int(table.budget(farm)) + 1


def in_partition(count: int) -> DomainTable:
    """The table of one of so many partitions that have 200 domains of one host between them, and a farm with 20 hosts
    in each."""
    table = table_of(JobSpec(scope=Scope(mode="any"), domains=DomainBudget(2)), None, count)
    assert table is not None
    table.note_broad()
    for number in range(0, 200, count):
        spend(table, f"good-{number}.test", 1, 1000)
        link(table, f"good-{number}.test", SOURCES)
    link(table, "farm.test", SOURCES)
    spend(table, "farm.test", 20, 1)
    return table


@pytest.mark.parametrize("count", [4, 20])
def test_a_domain_with_hosts_in_all_partitions_has_the_budget_of_one_partition(count: int) -> None:
    whole, part = in_partition(1), in_partition(count)
    farm = part.of("farm.test")
    assert part.budget(farm) * count == pytest.approx(whole.budget(whole.of("farm.test")), rel=0.15)
    spend(part, "farm.test", 20, int(part.budget(farm)) // 20 + 1)
    assert part.is_over(farm)
    # A domain of one host is in one partition.
    assert part.lateness("x0.good-0.test") == whole.lateness("x0.good-0.test")
    part.park(farm, 7)
    assert part.release() == []
    spend(part, "good-0.test", 1, 1000 * count * int(farm.requests))
    assert part.release() == [7]
    part.check()


def test_requests_that_are_always_allowed_are_divided_among_the_partitions() -> None:
    table = table_of(JobSpec(scope=Scope(mode="any"), domains=DomainBudget(2)), None, 10)
    assert table is not None
    table.note_broad()
    spend(table, "farm.test", 20, 0)
    assert table.budget(table.of("farm.test")) == FLOOR / 10


def test_new_limits_release_all_hosts() -> None:
    table = held_farm()
    assert table.release_all() == list(range(300))
    assert table.parked == {}
    table.check()


def test_hosts_of_a_domain_come_later_with_each_doubling_of_its_use() -> None:
    table = broad()
    for name in ("a.test", "b.test", "c.test", "d.test"):
        spend(table, name, 1, 1000)
    assert table.lateness("a.test") == 1
    spend(table, "a.test", 1, 3000)
    assert table.lateness("a.test") == 2
    assert table.lateness("b.test") == 0
    assert table.lateness("new.test") == 0
    link(table, "a.test", 200)
    assert table.lateness("a.test") == 0
    assert table.lateness("b.test") == 5
    link(table, "a.test", SOURCES)
    spend(table, "b.test", 1, 10**6)
    assert table.lateness("b.test") == LATEST


def test_memory_is_bounded_and_domains_of_many_hosts_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(domain_table, "MOST_DOMAINS", 50)
    table = broad()
    spend(table, "farm.test", 20, 3)
    for number in range(500):
        table.request(f"d{number}.test", 1)
    assert len(table) == 50
    assert table.of("farm.test").requests == 60
    table.check()
    for number in range(500):
        spend(table, f"many{number}.test", 3, 1)
    assert len(table) == 50
    table.check()


@pytest.mark.parametrize("seed", range(5))
def test_any_operations_over_the_log_give_the_same_table(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table that is read back from all commits, and from a snapshot and later commits, is the one that ran."""
    monkeypatch.setattr(domain_table, "MOST_DOMAINS", 30)
    rng = random.Random(seed)
    table, read = broad(1), broad(1)
    for step in range(2000):
        name = f"d{int(rng.expovariate(0.1))}.test"
        host = f"x{rng.randrange(12)}.{name}"
        match rng.randrange(6):
            case 0:
                table.link(table.of(host), hash_of(str(rng.randrange(40))))
            case 1 | 2:
                table.request(host, rng.randrange(1, 30))
            case 3:
                table.fail(host)
            case 4:
                if table.is_over(table.of(host)):
                    table.park(table.of(host), hash_of(host))
            case 5:
                released = table.release()
                assert len(released) == len(set(released))
                assert not set(released) & set(table.parked)
        if rng.random() < 0.1:
            for state in table.take_changes("j"):
                read.restore(state)
            table.check()
            read.check()
            assert sorted(map(repr, table.dump("j"))) == sorted(map(repr, read.dump("j")))
        if step == 1000:
            read = broad(1)
            for state in table.dump("j"):
                read.restore(state)


def test_that_a_job_is_broad_is_logged_once() -> None:
    table = table_with()
    assert table is not None
    table.note_broad()
    table.note_broad()
    states = table.take_changes("j")
    assert [state.domain for state in states] == [""]
    assert table.take_changes("j") == []
    again = table_with()
    assert again is not None
    again.restore(states[0])
    assert again.broad
    assert [state.domain for state in again.dump("j")] == [""]
