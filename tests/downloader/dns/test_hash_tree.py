"""The DNS cache against a model, and its order by weight."""

from __future__ import annotations

import random

import pytest
from nephila.downloader.dns import hash_tree
from nephila.downloader.dns.hash_tree import HashTree


class Model:
    """A dict of names with the times and weights that the tree must have."""

    def __init__(self) -> None:
        self.units: dict[str, tuple[int, float, float]] = {}
        """Answer, end of freshness, end of staleness."""
        self.weights: dict[str, int] = {}

    def get(self, host: str, now: float) -> int | None:
        """A fresh answer; a use."""
        if host not in self.units or self.units[host][1] <= now:
            return None
        self.weights[host] += 1
        return self.units[host][0]

    def stale(self, host: str, now: float) -> int | None:
        """A fresh or stale answer."""
        if host not in self.units or max(self.units[host][1:]) <= now:
            return None
        return self.units[host][0]

    def put(self, host: str, answer: int, now: float, ttl_s: float, stale_s: float) -> None:
        """A new answer halves the weight."""
        self.weights[host] = max(self.weights[host] // 2, 1) if host in self.units else 1
        self.units[host] = (answer, now + ttl_s, now + ttl_s + stale_s if stale_s else 0.0)

    def postpone(self, host: str, now: float, wait_s: float) -> None:
        """Only the end of freshness moves."""
        if host in self.units:
            answer, expires_at, stale_until = self.units[host]
            self.units[host] = (answer, max(expires_at, now + wait_s), stale_until)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("size", "bits"), [(1, 60), (40, 60), (300, 60), (300, 8)])
def test_random_operations_match_the_model(seed: int, size: int, bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers, times, weights and the bound; with few hash bits all names of a leaf collide."""
    monkeypatch.setattr(hash_tree, "HASH_BITS", bits)
    rng = random.Random(seed)
    tree: HashTree[int] = HashTree(size, random.Random(seed))
    model, now = Model(), 0.0
    names = [f"h{number}.test" for number in range(size * 2)]
    for step in range(4000):
        now += rng.choice((0.0, 0.1, 5.0))
        host = rng.choice(names[: size // 2 + 1] if rng.random() < 0.7 else names)
        action = rng.random()
        if action < 0.5:
            found = tree.get(host, now)
            assert (found.answer if found else None) == model.get(host, now)
        elif action < 0.6:
            found = tree.stale(host, now)
            assert (found.answer if found else None) == model.stale(host, now)
        elif action < 0.65:
            tree.postpone(host, now, 7.0)
            model.postpone(host, now, 7.0)
        else:
            ttl_s, stale_s = rng.choice((1.0, 50.0, 500.0)), rng.choice((0.0, 100.0))
            tree.put(host, step, now, ttl_s, stale_s)
            model.put(host, step, now, ttl_s, stale_s)
            kept = {unit.host for unit in tree.units()}
            evicted = model.units.keys() - kept
            assert len(evicted) <= 1
            assert host in kept
            for name in evicted:
                del model.units[name]
        assert len(tree) == len(model.units) <= size
        if step % 50 == 0:
            tree.check()
            assert {unit.host: unit.weight for unit in tree.units()} == {h: model.weights[h] for h in model.units}
    tree.check()
    assert tree.evicted > 0


def test_names_in_use_survive_a_flood() -> None:
    """A hundred names that are used stay among thousands that are seen once."""
    tree: HashTree[int] = HashTree(1000, random.Random(1))
    hot = [f"hot{number}.test" for number in range(100)]
    for host in hot:
        tree.put(host, 1, 0.0, 1e6)
    for number in range(20_000):
        tree.put(f"cold{number}.test", 1, 1.0, 1e6)
        tree.get(hot[number % 100], 1.0)
    assert sum(tree.get(host, 1.0) is not None for host in hot) >= 99
    tree.check()


def test_an_expired_name_is_evicted_before_a_fresh_one() -> None:
    """Whatever its weight."""
    tree: HashTree[int] = HashTree(2, random.Random(1))
    tree.put("old.test", 1, 0.0, 10.0)
    for _ in range(9):
        tree.get("old.test", 1.0)
    tree.put("fresh.test", 1, 5.0, 100.0)
    tree.put("new.test", 1, 20.0, 100.0)
    assert {unit.host for unit in tree.units()} == {"fresh.test", "new.test"}


def test_units_in_a_collision_are_ordered_by_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name used most comes first; a new answer lets it fall behind names in use."""
    monkeypatch.setattr(hash_tree, "_hash", lambda host: 7)
    monkeypatch.setattr(hash_tree, "_from_bytes", lambda data, order: 7)
    tree: HashTree[int] = HashTree(100)
    for number in range(20):
        tree.put(f"h{number}.test", number, 0.0, 10.0)
    for number, uses in ((3, 5), (4, 9), (5, 4)):
        for _ in range(uses):
            tree.get(f"h{number}.test", 1.0)
    order = [unit.host for unit in tree.units()][:3]
    assert order == ["h4.test", "h3.test", "h5.test"]
    tree.put("h4.test", 1, 1.0, 10.0)
    tree.put("h4.test", 1, 1.0, 10.0)
    assert [unit.host for unit in tree.units()][:3] == ["h3.test", "h5.test", "h4.test"]


def test_the_tree_shrinks_again() -> None:
    """Inner nodes of names that were evicted become leaves: memory follows the number of names, not their history."""
    tree: HashTree[int] = HashTree(50, random.Random(2))
    for number in range(5000):
        tree.put(f"h{number}.test", 1, float(number), 10.0)
    tree.check()
    assert len(tree) == 50
