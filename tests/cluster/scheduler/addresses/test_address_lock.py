"""Schedulers that share server addresses keep one pace there, however they come, freeze and go; nobody is left out."""

from __future__ import annotations

from collections import Counter

import pytest
from nephila.kernel.messages import AddressAnnouncement, AddressReleased, PartitionOwned
from nephila_cluster.scheduler.addresses.address_claims import MEMBER_TIMEOUT_S, AddressClaims
from nephila_cluster.scheduler.addresses.shared_pace import MARGIN_S

from tests.cluster.scheduler.addresses.address_model import CONNECTIONS, GAP_S, Host, World, storm

FOR_EVER = 10**9


def shared(hosts: int = 60, addresses: int = 1, delay_s: float = 1.0) -> list[Host]:
    """Hosts in all partitions, on few addresses."""
    return [Host(number, f"10.0.0.{number % addresses}", delay_s, FOR_EVER) for number in range(hosts)]


def entries(world: World) -> int:
    """Addresses named in all messages."""
    return sum(len(message.claims) + len(message.released) + len(message.in_flight) for message in world.messages)


@pytest.mark.parametrize("schedulers", [1, 2, 4])
@pytest.mark.parametrize("took_s", [0.2, 3.0])
def test_one_pace_on_a_shared_address(schedulers, took_s):
    """The server sees the gap and the count of one scheduler, and is kept as busy, by many but for a tenth."""
    world = World("turns", shared(), schedulers, took_s=took_s)
    world.run(60)
    assert world.too_early() == 0
    assert world.most_at_once() <= CONNECTIONS
    most = 60 * min(1 / (GAP_S + MARGIN_S), CONNECTIONS / took_s)
    assert len(world.log) >= 0.9 * most


def test_each_scheduler_has_its_share():
    """Of one address, by time."""
    world = World("turns", shared(), 4)
    world.run(121)
    shares = Counter(fetch.host.partition % 4 for fetch in world.log)
    assert min(shares.values()) > 0.8 * len(world.log) / 4


def test_an_address_of_one_scheduler_costs_nothing():
    """One claim for each, and every host is fetched from as often as its delay allows."""
    hosts = [Host(number, f"10.0.{number}.1", 1.0, FOR_EVER) for number in range(200)]
    world = World("turns", hosts, 4)
    world.run(30)
    assert entries(world) == 200
    assert len(world.log) >= 200 * 24


def test_who_is_alone_says_nothing():
    """But what partitions it has, and now and then that it is there."""
    world = World("turns", shared(), 1)
    world.run(60)
    assert entries(world) == 0
    assert len(world.messages) <= 16 + 6


def test_an_address_that_nobody_uses_any_more_is_let_go():
    """After a while without a fetch; the others' books have no claims left."""
    hosts = [Host(number, f"10.0.{number}.1", 1.0, 2) for number in range(32)]
    world = World("turns", hosts, 2)
    world.run(30)
    assert any(member.address_queue.lock.table.claims for member in world.members.values())
    world.run(120)
    assert not any(member.address_queue.lock.table.claims for member in world.members.values())
    assert len(world.log) == 64


@pytest.mark.parametrize("seed", range(10))
def test_one_pace_through_kills_freezes_and_joins(seed):
    """No start too early and never too many at once, whatever happens; afterwards the address is used as before."""
    world, share = storm(seed)
    assert world.too_early() == 0
    assert world.most_at_once() <= CONNECTIONS
    assert share >= 0.85
    for member in world.members.values():
        member.address_queue.lock.table.check(other.address_queue.lock.me for other in world.members.values())
        member.address_queue.check()


def test_the_rules_that_were_not_chosen_break_it():
    """The model sees what it is to see: each for itself, and BUbiNG's factor, which keeps the rate and not the gap."""
    for rule, more in (("alone", 1.9), ("factor", 0.9)):
        world = World(rule, shared(), 2)
        world.run(30)
        assert world.too_early() > 10
        assert len(world.log) >= more * 30 / GAP_S


# ---- the book alone

A, B, C = ("a", 1), ("b", 1), ("c", 1)


def said(who, **more) -> AddressAnnouncement:
    """A message."""
    return AddressAnnouncement(*who, **more)


def book_of(*owners) -> AddressClaims:
    """One that is read, with a partition for each of these."""
    book = AddressClaims(len(owners))
    book.begin()
    for partition, who in enumerate(owners):
        book.take(said(who, partitions=[PartitionOwned(partition, 10)]), 0.0)
    return book


def test_the_first_of_the_log_is_the_first():
    """Who claims later stands behind; who passes on and wants it again, at the end."""
    book = book_of(A, B, C)
    for who in (B, A, C, A):
        book.take(said(who, claims=["x"]), 1.0)
    assert book.claims["x"] == [B, A, C]
    changes = book.take(said(B, released=[AddressReleased("x", 0.2, reclaimed=True, in_flight=3)]), 2.0)
    assert book.claims["x"] == [A, C, B]
    assert changes.addresses == {"x"}
    assert (book.others("x", A), book.others("x", B)) == (3, 0)
    assert book.gap_until["x"] == 2.2


def test_a_scheduler_is_gone_with_its_last_partition():
    """Not before: its claims stand while any of what it has in flight is not told by another."""
    book = AddressClaims(3)
    book.begin()
    book.take(said(A, partitions=[PartitionOwned(0, 1), PartitionOwned(1, 2)], claims=["x"]), 0.0)
    book.take(said(B, partitions=[PartitionOwned(2, 3)], claims=["x"]), 0.0)
    book.take(said(B, partitions=[PartitionOwned(0, 7)]), 1.0)
    assert book.first("x") == A
    changes = book.take(said(B, partitions=[PartitionOwned(1, 8)]), 1.0)
    assert (book.first("x"), changes.orphaned, changes.departed) == (B, {"x"}, {A})
    book.take(said(A, claims=["x", "y"]), 2.0)
    assert book.claims == {"x": [B]}
    book.take(said(A, partitions=[PartitionOwned(0, 1)]), 2.0)
    assert book.owners[0] == (7, B)


def test_nothing_counts_before_everybody_has_said_what_they_have():
    """Old messages of the topic tell of owners only."""
    book = AddressClaims(2)
    book.take(said(A, partitions=[PartitionOwned(0, 1)], claims=["x"]), 0.0)
    book.begin()
    assert not book.claims
    book.take(said(C, partitions=[PartitionOwned(1, 5)]), 0.0)
    assert not book.complete
    book.take(said(A, claims=["x"], partitions=[PartitionOwned(0, 1)]), 0.0)
    assert book.complete
    assert book.first("x") == A


def test_who_is_silent_for_long_is_gone():
    """A scheduler that hangs says nothing, and nobody waits for it for ever."""
    book = book_of(A, B)
    book.take(said(A, claims=["x"]), 1.0)
    book.take(said(B, claims=["x"]), 1.0)
    assert not book.drop_silent(1.0 + MEMBER_TIMEOUT_S, B).departed
    assert book.drop_silent(1.1 + MEMBER_TIMEOUT_S, B).departed == {A}
    assert book.first("x") == B
