"""Membership: a partition that somebody holds is finished there first, then goes where the ring says."""

from __future__ import annotations

import random

import msgspec
from nephila_cluster.kafka.group.membership import Claim, Membership, plan
from nephila_cluster.kafka.group.ring import assign_partitions, max_partitions


class Group:
    """Members and the rebalances between them, without a broker."""

    def __init__(self, partitions: int = 32) -> None:
        self.partitions = partitions
        self.generation = 0
        self.members: dict[str, Membership] = {}

    def rebalance(self) -> None:
        """Everybody claims, the leader plans, everybody hears."""
        self.generation += 1
        shares = plan({f"id-{n}": _claim(m) for n, m in self.members.items()}, self.partitions)
        given = sorted(p for share in shares.values() for p in share.partitions)
        assert given == list(range(self.partitions)), "every partition has one member"
        for name, member in self.members.items():
            share = shares[f"id-{name}"]
            assert set(share.leaving) <= set(share.partitions)
            assert member.held.keys() <= set(share.partitions), "nobody loses what it holds"
            member.leaving, member.promised = frozenset(share.leaving), frozenset(share.promised)
            member.on_assignment(share.partitions, self.generation)

    def settle(self) -> int:
        """Rebalance until nothing leaves any more; returns how often."""
        for times in range(1, 10):
            self.rebalance()
            leaving = [m for m in self.members.values() if m.leaving]
            if not leaving:
                return times
            for member in leaving:
                member.release(member.leaving)
        raise AssertionError("it does not settle")

    def join(self, name: str) -> None:
        """A new member that holds nothing."""
        self.members[name] = Membership(name, float(self.generation))

    @property
    def owners(self) -> dict[int, str]:
        """Who holds what."""
        return {p: name for name, member in self.members.items() for p in member.held}


def _claim(member: Membership) -> Claim:
    return Claim(member.name, member.started, dict(member.held), sorted(member.promised))


def test_a_joiner_waits_for_what_leaves():
    """First nothing moves but words; once the holder has let go, the joiner has what was promised, and no more."""
    group = Group()
    group.join("a")
    group.join("b")
    assert group.settle() == 1
    before = group.owners
    group.join("c")
    group.rebalance()
    assert group.owners == before
    leaving = {p for m in group.members.values() for p in m.leaving}
    assert group.members["c"].promised == leaving
    for member in group.members.values():
        member.release(member.leaving)
    group.rebalance()
    assert group.members["c"].held.keys() == leaving
    assert all(group.owners[p] == before[p] for p in before.keys() - leaving)


def test_one_that_lets_go_late_delays_only_its_own():
    """A holds on; what B lets go of is C's at once, and A's part stays promised to C."""
    group = Group()
    for name in "ab":
        group.join(name)
    group.settle()
    group.join("c")
    group.rebalance()
    late, prompt = group.members["a"].leaving, group.members["b"].leaving
    assert late
    assert prompt
    group.members["b"].release(prompt)
    group.rebalance()
    assert group.members["c"].held.keys() == prompt
    assert group.members["c"].promised == late
    assert group.members["a"].leaving == late


def test_a_death_in_the_middle_of_a_hand_over():
    """The one it was promised to dies: it stays where it is."""
    group = Group()
    for name in "ab":
        group.join(name)
    group.settle()
    before = group.owners
    group.join("c")
    group.rebalance()
    del group.members["c"]
    group.rebalance()
    assert group.owners == before
    assert not any(m.leaving for m in group.members.values())


def test_of_two_with_one_name_the_newer_counts():
    """The older gets nothing, though it says it holds everything."""
    old, new = Claim("a", 1.0, dict.fromkeys(range(8), 1)), Claim("a", 2.0)
    shares = plan({"x": old, "y": new}, 8)
    assert shares["x"].partitions == []
    assert shares["y"].partitions == list(range(8))


def test_of_two_who_hold_one_partition_the_later_given_counts():
    """A member that slept through a hand-over is wrong about what it has."""
    shares = plan({"x": Claim("a", 1.0, {0: 3}), "y": Claim("b", 1.0, {0: 5})}, 1)
    assert shares["y"].partitions == [0]


def test_what_a_claim_says_beyond_the_partitions_is_ignored():
    """Numbers of another system do no harm."""
    shares = plan({"x": Claim("a", 1.0, {99: 1, -1: 1}, [77])}, 4)
    assert shares["x"].partitions == [0, 1, 2, 3]


def test_any_history_ends_as_evenly_as_the_ring_does():
    """300 random joins, leaves and deaths, some in the middle of a hand-over: it settles, bounded, every time."""
    rng, group = random.Random(9), Group(64)
    group.join("m")
    for step in range(300):
        names = sorted(group.members)
        if len(names) > 1 and rng.random() < len(names) / 12:
            del group.members[rng.choice(names)]
        else:
            group.join(f"n{step}")
        if rng.random() < 0.3:
            group.rebalance()
            continue
        group.settle()
        assert max(len(m.held) for m in group.members.values()) <= max_partitions(len(group.members), 64)
        assert len(group.owners) == 64


def test_nobody_new_nothing_moves():
    """The plan of a settled group is what everybody has."""
    owners = assign_partitions(["a", "b", "c"], 64)
    claims = {n: Claim(n, 1.0, {p: 1 for p, o in enumerate(owners) if o == n}) for n in "abc"}
    shares = plan(claims, 64)
    assert all(set(shares[n].partitions) == claims[n].held.keys() and not shares[n].leaving for n in "abc")


def test_who_cannot_work_gives_its_partitions_to_those_who_can():
    """And keeps them while nobody can."""
    able, unable = Claim("a", 1.0, dict.fromkeys(range(4), 1)), Claim("b", 1.0, dict.fromkeys(range(4, 8), 1))
    unable.able = False
    shares = plan({"x": able, "y": unable}, 8)
    assert shares["y"].partitions == shares["y"].leaving == [4, 5, 6, 7]
    assert shares["x"].promised == [4, 5, 6, 7]
    able.able = False
    shares = plan({"x": able, "y": unable}, 8)
    assert not shares["x"].leaving
    assert not shares["y"].leaving
    able.able, unable.held = True, {}
    assert plan({"x": able, "y": unable}, 8)["y"].partitions == []


def test_a_claim_survives_the_wire_and_nonsense_is_nothing():
    """What a member says is what the leader reads."""
    member = Membership("a", 2.5)
    member.on_assignment([1, 5], 7)
    member.promised = frozenset({3})
    assert msgspec.msgpack.decode(member.claim(), type=Claim) == Claim("a", 2.5, {1: 7, 5: 7}, [3])
    member.on_share(b"")
    assert member.leaving == frozenset()


def test_a_member_that_was_removed_says_that_it_lives():
    """The owner of each partition that it held hears it, once."""
    group = Group(8)
    for name in "ab":
        group.join(name)
    group.settle()
    lost = sorted(group.members["a"].held)
    away = group.members.pop("a")
    group.rebalance()
    assert group.owners == dict.fromkeys(range(8), "b")
    away.removed()
    group.members["a"] = away
    claims = {name: msgspec.msgpack.decode(member.claim(), type=Claim) for name, member in group.members.items()}
    shares = plan(claims, 8)
    assert (shares["a"].pardoned, sorted(shares["b"].pardoned)) == ([], lost)
    group.rebalance()
    assert msgspec.msgpack.decode(away.claim(), type=Claim).survived == []


def test_a_member_alone_gets_its_partitions_back_pardoned():
    """It was removed and is the whole group."""
    member = Membership("a", 1.0)
    member.on_assignment(range(4), 1)
    member.removed()
    member.on_assignment(range(2), 2)
    member.removed()
    share = plan({"id": msgspec.msgpack.decode(member.claim(), type=Claim)}, 4)["id"]
    member.on_share(msgspec.msgpack.encode(share))
    assert member.pardoned == {0: 1, 1: 1}
    member.on_share(b"")
    assert member.pardoned == {}


def test_each_removal_is_said_until_a_leader_has_answered():
    """A join that fails says nothing to the owners; two members may have held one partition one after the other."""
    first, second = Membership("a", 1.0), Membership("b", 2.0)
    first.on_assignment(range(2), 1)
    first.removed()
    second.on_assignment(range(2), 2)
    second.removed()
    second.held = {1: 3}
    second.removed()
    claims = {name: msgspec.msgpack.decode(one.claim(), type=Claim) for name, one in (("a", first), ("b", second))}
    shares = plan(claims, 2)
    assert sorted(shares["a"].pardoned + shares["b"].pardoned) == [0, 0, 1, 1, 1]
