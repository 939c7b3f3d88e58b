"""A bounded set of recent 64-bit hashes: an 8-way set-associative LRU cache.

Invariant: at most `limit` slots; no false positives (apart from equal 64-bit hashes). Hashes that return often stay. It
starts with one bucket and doubles as it fills, because most hosts have only a page or two.
"""

from __future__ import annotations

import sys
from array import array
from typing import Final

_WAYS: Final = 8
_FIRST: Final = _WAYS


class RecentHashSet:
    """`add` is O(1) amortised, below a microsecond; a slot has 8 bytes."""

    __slots__ = ("_filled", "_limit", "_slots")

    def __init__(self, limit: int) -> None:
        """`limit` is the maximum of slots, a power of two from 8."""
        if limit < _FIRST or limit & (limit - 1):
            raise ValueError(f"limit must be a power of two from {_FIRST}, got {limit}")
        self._limit = limit
        self._slots = array("Q")
        self._filled = 0

    def __contains__(self, key: int) -> bool:
        if not self._slots:
            return False
        key = key or 1
        at = self._bucket(key)
        return key in self._slots[at : at + _WAYS]

    def __len__(self) -> int:
        return self._filled

    def _bucket(self, key: int) -> int:
        return key % (len(self._slots) // _WAYS) * _WAYS

    def add(self, key: int) -> bool:
        """Add an unsigned 64-bit hash; True when it was not there."""
        # At a third full, one bucket in a thousand overflows.
        if 3 * self._filled >= len(self._slots) and len(self._slots) < self._limit:
            self._grow()
        key = key or 1  # an empty slot is zero
        at = key % (len(self._slots) // _WAYS) * _WAYS
        bucket = self._slots[at : at + _WAYS]
        if bucket[0] == key:
            return False
        new = key not in bucket
        if new:
            self._filled += not bucket.pop()
        else:
            bucket.remove(key)
        bucket.insert(0, key)
        self._slots[at : at + _WAYS] = bucket
        return new

    def _grow(self) -> None:
        old = self._slots
        self._slots = slots = array("Q", bytes(8 * max(_FIRST, 2 * len(old))))
        self._filled = 0
        buckets = len(slots) // _WAYS
        # In reverse: within a bucket the most recent hash comes first, and the last one added becomes the first.
        for key in reversed(old):
            if key:
                at = key % buckets * _WAYS
                bucket = slots[at : at + _WAYS]
                self._filled += not bucket.pop()
                bucket.insert(0, key)
                slots[at : at + _WAYS] = bucket

    def pack(self) -> bytes:
        """The slots, little-endian."""
        return _little(self._slots).tobytes()

    def restore(self, packed: bytes) -> None:
        """Apply the bytes of `pack`; ValueError when they are damaged."""
        size = len(packed) // 8
        if len(packed) % 8 or size > self._limit or size & (size - 1) or 0 < size < _FIRST:
            raise ValueError(f"a hash set of {len(packed)} bytes")
        copy = RecentHashSet(self._limit)
        copy._slots = _little(array("Q", packed))
        copy._filled = size - copy._slots.count(0)
        if not copy._in_right_buckets():
            raise ValueError("a hash set with a hash in a wrong bucket")
        self._slots, self._filled = copy._slots, copy._filled

    def _in_right_buckets(self) -> bool:
        return all(not key or self._bucket(key) == at - at % _WAYS for at, key in enumerate(self._slots))

    def check(self) -> None:
        """Raise AssertionError when an invariant does not hold."""
        assert self._in_right_buckets(), "a hash is in a wrong bucket"
        assert self._filled == sum(1 for key in self._slots if key), "slots and their count differ"
        assert len(self._slots) <= self._limit, f"{len(self._slots)} slots"


def _little(slots: array[int]) -> array[int]:
    """Between this machine's byte order and little-endian."""
    if sys.byteorder == "little":
        return slots
    swapped = slots[:]
    swapped.byteswap()
    return swapped
