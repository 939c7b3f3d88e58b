"""Keys as someone who chooses URLs can make them: memory and depth stay bounded, whatever they grind for.

A host name costs 2^32 hashes to aim at a prefix, a URL about 2^40 to aim at 40 bits behind it; these tests hand such
keys over for nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from types import ModuleType

import pytest

from tests.native.conftest import load

RNG = random.Random(9)
HOST = b"\xaa\xbb\xcc\xdd"


def number(bits: int) -> int:
    """A random number of so many bits."""
    return RNG.getrandbits(bits)


def behind(prefix_bits: int) -> bytes:
    """A key that agrees with one certain key in its first bits, and in no more."""
    rest = 128 - prefix_bits
    target = int.from_bytes(HOST * 4, "big")
    return ((target >> rest << rest) ^ (1 << (rest - 1)) ^ (number(rest - 1) if rest > 1 else 0)).to_bytes(16, "big")


SCHEMES: dict[str, Callable[[int], bytes]] = {
    "one host": lambda n: HOST + number(96).to_bytes(12, "big"),
    "40 bits behind the host": lambda n: HOST + b"\0\1\2\3\4" + number(56).to_bytes(7, "big"),
    "80 bits behind the host": lambda n: HOST + bytes(10) + n.to_bytes(2, "big"),
    "one tag": lambda n: number(120).to_bytes(15, "big") + b"x",
    "one tag in one host": lambda n: HOST + number(88).to_bytes(11, "big") + b"x",
    "counted": lambda n: n.to_bytes(16, "big"),
    "counted from the top": lambda n: n.to_bytes(2, "big") + bytes(14),
    "a ladder to 72 bits": lambda n: (
        behind(32 + n % 40) if n % 41 else HOST * 2 + b"\xaa" + number(56).to_bytes(7, "big")
    ),
    "a ladder to the last bit": lambda n: behind(1 + n % 126),
    "pairs of hosts": lambda n: bytes([n >> 8]) + bytes(2) + bytes([n % 2]) + number(96).to_bytes(12, "big"),
}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_chosen_keys_are_keys_like_any(core: ModuleType, scheme: str) -> None:
    """Right answers and sound structure for each pattern, in and out again."""
    keys = list(dict.fromkeys(SCHEMES[scheme](n) for n in range(4000)))
    trie = core.Trie()
    for start in range(0, len(keys), 50):
        trie.add(b"".join(keys[start : start + 50]))
    trie.check()
    assert trie.dump() == b"".join(sorted(keys))
    assert trie.missing(b"".join(keys)) == []
    for start in range(0, len(keys), 400):
        assert trie.discard_many(b"".join(keys[start : start + 400])) == len(keys[start : start + 400])
        trie.check()
    assert len(trie) == 0


@pytest.mark.parametrize("scheme", SCHEMES)
def test_chosen_keys_cost_little_memory(scheme: str) -> None:
    """At most 40 bytes a key and a small constant, where random keys have 17 to 24."""
    trie = load("rust").Trie()
    keys = {SCHEMES[scheme](n) for n in range(20_000)}
    for key in keys:
        trie.add(key)
    assert trie.nbytes < 4096 + 40 * len(keys)


def test_a_ladder_of_full_leaves() -> None:
    """The worst that grinding can build: each bit level just full enough to split, so that every split leaves one key
    alone. Memory stays within a few times that of random keys, and the depth within the bits of a key."""
    trie = load("rust").Trie()
    keys = [behind(bit) for bit in range(32, 128)] + [HOST * 3 + HOST[:2] + n.to_bytes(2, "big") for n in range(1000)]
    for key in keys:
        trie.add(key)
    trie.check()
    assert trie.missing(b"".join(keys)) == []
    assert trie.nbytes < 4096 + 60 * len(keys)
