"""The ring: every partition has a member, loads are bounded, and few partitions move."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nephila_cluster.kafka.group.ring import assign_partitions, max_partitions

NAMES = st.sets(st.text(min_size=1, max_size=12), min_size=1, max_size=20)


def moved(before: list[str], after: list[str]) -> list[int]:
    """Partitions whose member changed."""
    return [p for p, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]


@given(names=NAMES, bits=st.integers(0, 8))
@settings(deadline=None, max_examples=60)
def test_every_partition_has_a_member_and_loads_are_bounded(names, bits):
    """No member exceeds the bound, for any names."""
    owners = assign_partitions(sorted(names), 1 << bits)
    assert len(owners) == 1 << bits
    assert set(owners) <= names
    assert max(Counter(owners).values()) <= max_partitions(len(names), 1 << bits)


@given(names=NAMES, seed=st.integers(0, 1000))
@settings(deadline=None, max_examples=40)
def test_with_nothing_held_only_the_names_count(names, seed):
    """The result does not depend on the order of the members."""
    shuffled = sorted(names)
    random.Random(seed).shuffle(shuffled)
    assert assign_partitions(shuffled, 64) == assign_partitions(sorted(names), 64)


@given(names=NAMES, bits=st.integers(0, 8))
@settings(deadline=None, max_examples=40)
def test_the_same_members_again_move_nothing(names, bits):
    """A rebalance without joins and leaves moves nothing, unless a member had no partition."""
    first = assign_partitions(sorted(names), 1 << bits)
    second = assign_partitions(sorted(names), 1 << bits, dict(enumerate(first)))
    assert set(first) < names or second == first
    assert assign_partitions(sorted(names), 1 << bits, dict(enumerate(second))) == second


@pytest.mark.parametrize("count", [1, 2, 3, 7, 16])
def test_a_newcomer_gets_its_share_and_nothing_else_moves(count):
    """All moved partitions go to the new member, and no more than its share."""
    names = [f"downloader-{i}" for i in range(count)]
    before = assign_partitions(names, 256)
    after = assign_partitions([*names, "new"], 256, dict(enumerate(before)))
    gone = moved(before, after)
    assert {after[p] for p in gone} == {"new"}
    assert len(gone) == 256 // (count + 1)


@pytest.mark.parametrize("count", [2, 3, 8, 16])
def test_a_leaver_moves_only_its_own_partitions(count):
    """Only the partitions of the leaver move."""
    names = [f"downloader-{i}" for i in range(count)]
    before = assign_partitions(names, 256)
    for leaver in names:
        after = assign_partitions([name for name in names if name != leaver], 256, dict(enumerate(before)))
        assert {before[p] for p in moved(before, after)} == {leaver}


def test_a_long_history_keeps_the_bounds():
    """500 joins and leaves, sometimes two at once: loads stay bounded, and remaining members exchange only what the
    bound takes from a full one."""
    rng = random.Random(5)
    names = ["m0", "m1"]
    owners = assign_partitions(names, 512)
    exchanged = total = 0
    for step in range(500):
        before, held = set(names), dict(enumerate(owners))
        for _ in range(rng.choice((1, 1, 1, 2))):
            if len(names) > 2 and rng.random() < len(names) / 32:
                names.remove(rng.choice(names))
            else:
                names.append(f"n{step}-{rng.randrange(10**6)}")
        after = assign_partitions(names, 512, held)
        assert max(Counter(after).values()) <= max_partitions(len(names), 512)
        for p in moved(owners, after):
            total += 1
            exchanged += owners[p] in names and after[p] in before
        owners = after
    assert total > 10_000
    assert exchanged <= total // 100


def test_everybody_joins_at_once():
    """From two members to ten at once: all new members get about the same share."""
    names = ["a", "b"]
    held = dict(enumerate(assign_partitions(names, 64)))
    loads = Counter(assign_partitions([*names, *"cdefghij"], 64, held))
    assert max(loads.values()) <= max_partitions(10, 64)
    assert min(loads.values()) >= 5


def test_a_third_of_the_members_leaves_and_returns():
    """New members take what the bound frees and what others have in excess, up to their share."""
    names = [f"m{i}" for i in range(90)]
    left = assign_partitions(names[30:], 1024, dict(enumerate(assign_partitions(names, 1024))))
    back = assign_partitions(names, 1024, dict(enumerate(left)))
    loads = Counter(back)
    assert set(names[:30]) <= {back[p] for p in moved(left, back)}
    assert all(1024 // 90 - 1 <= loads[name] <= 1024 // 90 for name in names[:30])


def test_more_members_than_partitions():
    """Some members have no partition; each partition has one member."""
    owners = assign_partitions([str(i) for i in range(9)], 4)
    assert len(set(owners)) == 4


def test_what_is_held_by_the_dead_or_beyond_the_end_is_ignored():
    """Unknown names and partition numbers are ignored."""
    assert assign_partitions(["a"], 2, {0: "dead", 7: "a", -1: "a"}) == ["a", "a"]


@pytest.mark.parametrize(("names", "partitions"), [([], 4), (["a", "a"], 4), (["a"], 0)])
def test_invalid_arguments_are_refused(names, partitions):
    """No members, a duplicate name, no partitions."""
    with pytest.raises(ValueError, match="ring needs"):
        assign_partitions(names, partitions)
