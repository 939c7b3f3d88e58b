"""Idle connections: newest first within a key, oldest out first over all."""

from __future__ import annotations

import random

import pytest
from nephila.downloader.http.pool import Pool


def test_newest_first() -> None:
    """The connection used last is warm; the first key that has one counts."""
    pool: Pool[str] = Pool(10, 15.0)
    pool.put("k", "old", 1.0)
    pool.put("k", "new", 2.0)
    assert pool.take(["none", "k"]) == "new"
    assert pool.take(["k"]) == "old"
    assert pool.take(["k"]) is None


def test_oldest_goes() -> None:
    """Beyond its size the pool hands back the one idle longest; a pool of size 0 keeps nothing."""
    pool: Pool[str] = Pool(2, 15.0)
    assert pool.put("a", "1", 1.0) is None
    assert pool.put("b", "2", 2.0) is None
    assert pool.put("c", "3", 3.0) == "1"
    assert Pool[str](0, 15.0).put("a", "1", 1.0) == "1"


def test_expiry() -> None:
    """What has been idle too long is handed out once."""
    pool: Pool[str] = Pool(10, 15.0)
    pool.put("a", "1", 0.0)
    pool.put("a", "2", 10.0)
    assert pool.expired(15.0) == ["1"]
    assert pool.expired(15.0) == []
    assert pool.take("a") == "2"


def test_it_grows_for_hosts_that_return() -> None:
    """Twelve hosts in turn on a pool of five: after some rounds each finds its connection; the limit is not passed."""
    pool: Pool[str] = Pool(5, 15.0, 20)
    now, hits = 0.0, 0
    for _ in range(6):
        hits = 0
        for key in "abcdefghijkl":
            now += 0.1
            hits += pool.take([key]) is not None
            pool.put(key, f"{key} {now}", now)
            pool.check()
    assert hits == 12
    assert pool.size == 12


def test_it_does_not_grow_for_hosts_that_come_once_or_late() -> None:
    """A key that was never here, or comes back when its connection would have expired, shows no want of room."""
    pool: Pool[str] = Pool(2, 15.0, 20)
    for number in range(50):
        assert pool.take([f"host {number}"]) is None
        pool.put(f"host {number}", str(number), float(number))
    assert pool.take(["host 1"]) is None
    assert pool.size == 2
    assert pool.take(["host 45"]) is None
    assert pool.size == 3


def test_it_shrinks_when_connections_stay_idle() -> None:
    """Connections that nobody takes give their room back."""
    pool: Pool[str] = Pool(1, 15.0, 20)
    for key in "abc":
        pool.put(key, key, 1.0)
    assert pool.take(["a"]) is None
    assert pool.take(["b"]) is None
    assert pool.size == 3
    pool.put("a", "a", 2.0)
    assert len(pool.expired(60.0)) == 2
    assert pool.size == 1


@pytest.mark.parametrize("most", [0, 9])
def test_random_use(most: int) -> None:
    """The invariants hold under any order of operations."""
    rng = random.Random(4)
    pool: Pool[int] = Pool(5, 3.0, most)
    out: set[int] = set()
    now = 0.0
    for number in range(5_000):
        now += rng.random()
        action = rng.random()
        key = rng.choice("abc")
        if action < 0.5:
            out.add(number)
            evicted = pool.put(key, number, now)
            if evicted is not None:
                out.discard(evicted)
        elif action < 0.8:
            taken = pool.take([key])
            if taken is not None:
                out.remove(taken)
        elif action < 0.9:
            out.difference_update(pool.expired(now))
        elif out:
            gone = rng.choice(sorted(out))
            out.remove(gone)
            assert any(pool.remove(any_key, gone) for any_key in "abc" if gone in pool._by_key.get(any_key, []))
        pool.check()
        assert len(pool) == len(out)
    assert sorted(pool.drain()) == sorted(out)
    assert len(pool) == 0
