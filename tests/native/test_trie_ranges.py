"""The trie by ranges: hosts removed, pieces handed over and taken back, keys read in order."""

from __future__ import annotations

import random
from types import ModuleType

import pytest

RNG = random.Random(11)
HOSTS = sorted(RNG.randbytes(4) for _ in range(40))
KEYS = sorted(host + RNG.randbytes(12) for host in HOSTS for _ in range(RNG.choice([1, 5, 70, 900])))


def filled(core: ModuleType) -> object:
    """A trie with all of `KEYS`."""
    trie = core.Trie()
    trie.add(b"".join(RNG.sample(KEYS, len(KEYS))))
    return trie


def test_a_host_is_removed(core: ModuleType) -> None:
    """All URLs below four bytes go, and no others."""
    trie = filled(core)
    host = HOSTS[7]
    gone = [key for key in KEYS if key[:4] == host]
    assert trie.discard_prefix(host) == len(gone)
    assert trie.discard_prefix(host) == 0
    assert trie.dump() == b"".join(key for key in KEYS if key[:4] != host)
    trie.check()


def test_a_prefix_in_bits(core: ModuleType) -> None:
    """A prefix may end inside a byte; what lies behind its bits does not matter."""
    trie = filled(core)
    assert trie.discard_prefix(b"\xff", 1) == sum(key[0] >= 0x80 for key in KEYS)
    assert trie.dump() == b"".join(key for key in KEYS if key[0] < 0x80)
    assert trie.discard_prefix(b"", 0) == sum(key[0] < 0x80 for key in KEYS)


def test_of_two_hosts_with_one_prefix_one_goes(core: ModuleType) -> None:
    """Where two hosts share their four bytes, one is removed URL by URL."""
    trie, prefix = core.Trie(), b"\x12\x34\x56\x78"
    one, other = ([prefix + RNG.randbytes(12) for _ in range(500)] for _ in range(2))
    trie.add(b"".join(one + other))
    assert trie.discard_many(b"".join(one)) == 500
    assert trie.dump() == b"".join(sorted(other))
    trie.check()


@pytest.mark.parametrize(("prefix", "bits"), [(b"ab", 17), (bytes(17), None)])
def test_prefixes_that_are_none(core: ModuleType, prefix: bytes, bits: int | None) -> None:
    """A prefix has at most 16 bytes and all the bits that are asked for."""
    with pytest.raises(ValueError, match="prefix"):
        core.Trie().discard_prefix(prefix, bits)


def test_partitions_double(core: ModuleType) -> None:
    """P to 2P: each half is a trie, and together they are what was."""
    trie = filled(core)
    upper = trie.split(b"\x80")
    quarter = trie.split(b"\x40", b"\x80")
    for part, low, high in ((trie, 0, 0x40), (quarter, 0x40, 0x80), (upper, 0x80, 0x100)):
        part.check()
        assert part.dump() == b"".join(key for key in KEYS if low <= key[0] < high)
    assert trie.merge(upper) + trie.merge(quarter) == sum(key[0] >= 0x40 for key in KEYS)
    assert (len(upper), len(quarter)) == (0, 0)
    trie.check()
    assert trie.dump() == b"".join(KEYS)


def test_a_split_cuts_through_a_host(core: ModuleType) -> None:
    """Bounds are any byte strings, the last one not included."""
    trie = filled(core)
    low, high = KEYS[len(KEYS) // 3], KEYS[len(KEYS) // 2]
    part = trie.split(low, high)
    assert part.dump() == b"".join(key for key in KEYS if low <= key < high)
    assert trie.dump() == b"".join(key for key in KEYS if not low <= key < high)
    assert len(trie.split(high, low)) == 0
    trie.check()
    part.check()


def test_interleaved_ranges_merge(core: ModuleType) -> None:
    """Keys that both have count once; what is merged is as good as what was added."""
    one, other = core.Trie(), core.Trie()
    one.add(b"".join(KEYS[::2]))
    other.add(b"".join(KEYS[::3]))
    assert one.merge(other) == len(set(KEYS[::3]) - set(KEYS[::2]))
    assert one.dump() == b"".join(sorted({*KEYS[::2], *KEYS[::3]}))
    one.check()
    assert one.missing(b"".join(KEYS[::3])) == []
    with pytest.raises(ValueError, match="itself"):
        one.merge(one)


def test_keys_in_order_in_pieces(core: ModuleType) -> None:
    """Going on behind the last key of each piece reads all of them once."""
    trie, start, found = filled(core), b"", []
    while piece := trie.keys(start, 97):
        found.append(piece)
        start = piece[-16:] + b"\0"
    assert b"".join(found) == b"".join(KEYS)
    assert trie.keys(KEYS[5], 2) == KEYS[5] + KEYS[6]
    assert trie.keys(b"", 0) == trie.keys(b"\xff" * 17, 5) == b""
