"""The seen set: what is new, what is known, and that it stays right under random operations."""

from __future__ import annotations

import random
from hashlib import md5
from types import ModuleType

import pytest


def key(number: int) -> bytes:
    """A fingerprint as a crawl has them: few hosts, many URLs."""
    return md5(b"%d" % (number % 7)).digest()[:4] + md5(b"%d" % number).digest()[:12]


def test_missing_and_add(core: ModuleType) -> None:
    """missing reports new records once and in order; add says how many were new."""
    seen = core.Trie()
    a, b, c = key(1), key(2), key(3)
    assert seen.missing(c + a + c + b + a) == [0, 1, 3]
    assert seen.add(a + b + a) == 2
    assert seen.missing(c + a + c) == [0]
    assert (len(seen), a in seen, c in seen) == (2, True, False)
    assert (seen.discard(a), seen.discard(a), len(seen)) == (True, False, 1)
    assert seen.missing(b"") == []


def test_zero_is_a_key_like_any(core: ModuleType) -> None:
    """The fingerprint of sixteen zero bytes is stored, found and removed."""
    seen, zero = core.Trie(), bytes(16)
    assert (zero in seen, seen.add(zero + zero), zero in seen, len(seen)) == (False, 1, True, 1)
    assert (seen.dump(), seen.discard(zero), len(seen)) == (zero, True, 0)


def test_dump_and_load(core: ModuleType) -> None:
    """A dump is sorted and loads into an equal set."""
    keys = [key(n) for n in range(1000)]
    seen, other = core.Trie(), core.Trie()
    seen.add(b"".join(keys))
    assert seen.dump() == b"".join(sorted(keys))
    other.load(seen.dump())
    assert other.dump() == seen.dump()


def test_wrong_lengths(core: ModuleType) -> None:
    """Buffers that are no whole records are refused."""
    seen = core.Trie()
    for call in (seen.add, seen.missing, seen.load):
        with pytest.raises(ValueError, match="records of 16 bytes"):
            call(b"x" * 17)
    for call in (seen.discard, seen.__contains__):
        with pytest.raises(ValueError, match="16 bytes"):
            call(b"x")


@pytest.mark.parametrize("hostile", [False, True])
def test_random_operations(core: ModuleType, hostile: bool) -> None:
    """Against a Python set: thousands of random adds and removes, with keys that differ in few bits, too."""
    rng = random.Random(7)
    make = (lambda n: bytes(8) + n.to_bytes(8, "big")) if hostile else key
    seen, model = core.Trie(), set()
    for _ in range(4000):
        batch = [make(rng.randrange(3000)) for _ in range(rng.randrange(6))]
        joined = b"".join(batch)
        fresh = [i for i, k in enumerate(batch) if k not in model and k not in batch[:i]]
        assert seen.missing(joined) == fresh
        if rng.random() < 0.6:
            assert seen.add(joined) == len(fresh)
            model.update(batch)
        else:
            assert [seen.discard(k) for k in dict.fromkeys(batch)] == [k in model for k in dict.fromkeys(batch)]
            model.difference_update(batch)
        assert len(seen) == len(model)
    assert seen.dump() == b"".join(sorted(model))


def test_native_memory() -> None:
    """The native set stays under 26 bytes a key while it grows."""
    core = pytest.importorskip("nephila.native._core", reason="the Rust core is not built here: no cargo at install")
    seen = core.Trie()
    for start in range(0, 60_000, 500):
        seen.add(b"".join(key(n) for n in range(start, start + 500)))
        if start >= 2000:
            assert seen.nbytes / len(seen) < 26
