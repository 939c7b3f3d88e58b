"""The MD5 trie as a set: what is new, what is known, and that it stays right under random operations."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from hashlib import md5
from pathlib import Path
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


def test_any_bytes_like_buffer(core: ModuleType) -> None:
    """A batch may be bytes, a bytearray or a memoryview."""
    seen, keys = core.Trie(), key(1) + key(2) + key(3)
    assert seen.add(bytearray(keys[:16])) == 1
    assert seen.missing(memoryview(keys)) == [1, 2]
    assert seen.discard_many(memoryview(keys)[:32]) == 1


def test_sorted_and_unsorted_loads(core: ModuleType) -> None:
    """A load says how many were new, whatever is there and in whatever order the records come."""
    keys = [key(n) for n in range(3000)]
    seen = core.Trie()
    assert seen.load(b"".join(sorted(keys[:1000]))) == 1000
    assert seen.load(b"".join(sorted(keys[500:2000]))) == 1000
    assert seen.load(b"".join(keys + keys)) == 1000
    seen.check()
    assert seen.dump() == b"".join(sorted(keys))


def test_large_tries_stay_right(core: ModuleType) -> None:
    """Beyond the size at which regions are halved, and back to nothing."""
    rng = random.Random(3)
    host = rng.randbytes(4)
    keys = [rng.randbytes(16) for _ in range(300_000)] + [host + rng.randbytes(12) for _ in range(20_000)]
    seen = core.Trie()
    assert seen.add(b"".join(keys)) == len(keys)
    seen.check()
    assert seen.missing(b"".join(keys[::7])) == []
    assert seen.discard_many(b"".join(keys[:250_000])) == 250_000
    seen.check()
    assert seen.dump() == b"".join(sorted(keys[250_000:]))
    assert seen.discard_prefix(b"") == len(keys) - 250_000
    assert (len(seen), seen.dump()) == (0, b"")


def native() -> ModuleType:
    """The Rust core, for promises of memory."""
    return pytest.importorskip("nephila.native._core", reason="the Rust core is not built here: no cargo at install")


def test_native_memory() -> None:
    """The native trie stays under 22 bytes a key while it grows, and a job of 100 URLs under 4 KB."""
    seen, small = native().Trie(), native().Trie()
    for start in range(0, 60_000, 500):
        seen.add(b"".join(key(n) for n in range(start, start + 500)))
        if start >= 2000:
            assert seen.nbytes / len(seen) < 22
    small.add(b"".join(key(n) for n in range(100)))
    assert small.nbytes < 4096


def test_memory_comes_back() -> None:
    """What is removed does not stay as hollow leaves or holes."""
    seen = native().Trie()
    keys = [key(n) for n in range(50_000)]
    seen.add(b"".join(keys))
    full = seen.nbytes
    seen.discard_many(b"".join(keys[:49_000]))
    assert seen.nbytes < full / 10
    seen.discard_many(b"".join(keys))
    assert seen.nbytes < 4096


def test_large_tries_take_the_memory_of_those_before() -> None:
    """Six large tries, one after the other, need hardly more memory than the first one did."""
    trie_class, statm = native().Trie, Path("/proc/self/statm")
    if not statm.exists():
        pytest.skip("the memory of a process is read from /proc")
    batch, sizes = random.Random(2).randbytes(16 * 400_000), []
    for _ in range(6):
        assert trie_class().add(batch) == 400_000
        sizes.append(int(statm.read_text().split()[1]) * 4096)
    assert sizes[-1] - sizes[0] < 2 * len(batch)


def test_threads_wait_for_each_other() -> None:
    """Calls from several threads at once are answered one after the other."""
    seen, rng = native().Trie(), random.Random(1)
    parts = [b"".join(rng.randbytes(16) for _ in range(3000)) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(seen.add, parts * 3)) == 12_000
    seen.check()
