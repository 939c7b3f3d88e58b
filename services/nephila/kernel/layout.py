"""The layout: which partition a fingerprint belongs to, while the number of partitions grows.

A system begins with `base` partitions, numbered by the top bits of the fingerprint. Each further bit splits every
partition p of n: fingerprints with bit 0 stay in p, those with bit 1 are in p + n. So a partition keeps its number, its
records and its share of the others, and always is one arc of the MD5 circle. Pure.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache

import msgspec

LAYOUT = "partitions"
"""Key in the topic `settings` of a system that has grown, or is about to. Its value is a `LayoutSetting`."""
MAX_COUNT = 1 << 16


class LayoutSetting(msgspec.Struct, frozen=True):
    """The layout of a system, as its members learn it."""

    base: int
    """Number of partitions at the creation of the system: the number in the settings of all services."""
    count: int
    """Number of partitions now."""
    topics: int
    """Number of partitions of the topics; above `count` while a growth is being prepared."""


class Layout:
    """An immutable layout; `layout_of` returns the same object for the same numbers."""

    __slots__ = ("_bytes", "_numbers", "_shift", "base", "bits", "count")

    def __init__(self, base: int, count: int) -> None:
        """Raises `ValueError` unless both are powers of two up to 65,536 and count is not below base."""
        for number in (base, count):
            if number < 1 or number & (number - 1) or number > MAX_COUNT:
                raise ValueError(f"partitions must be a power of two up to {MAX_COUNT:,}, not {number}")
        if count < base:
            raise ValueError(f"{count} partitions are fewer than the {base} at the creation of the system")
        self.base = base
        self.count = count
        self.bits = count.bit_length() - 1
        self._shift = 32 - self.bits
        self._numbers = _numbers(base, count)
        self._bytes: list[int] | bytes | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and (self.base, self.count) == (other.base, other.count)

    def __hash__(self) -> int:
        return hash((self.base, self.count))

    def __repr__(self) -> str:
        return f"Layout({self.base}, {self.count})"

    def of(self, fingerprint: bytes) -> int:
        """The partition of a fingerprint, or of the MD5 of a host. O(1)."""
        return self._numbers[int.from_bytes(fingerprint[:4], "big") >> self._shift]

    def of_many(self, fingerprints: bytes) -> Sequence[int]:
        """The partition of each of these fingerprints of 16 bytes. O(fingerprints)."""
        if self.bits > 8:
            numbers, shift = self._numbers, self._shift
            return [numbers[top >> shift] for (top,) in struct.iter_unpack(">I12x", fingerprints)]
        if self._bytes is None:
            self._bytes = bytes(self._numbers[byte >> 8 - self.bits] for byte in range(256))
        assert isinstance(self._bytes, bytes)
        return fingerprints[::16].translate(self._bytes)

    def arc(self, partition: int) -> int:
        """The top `bits` bits of all fingerprints of a partition."""
        low = self.base.bit_length() - 1
        prefix, rest = partition & (self.base - 1), partition >> low
        for _ in range(self.bits - low):
            prefix, rest = prefix << 1 | rest & 1, rest >> 1
        return prefix

    def lineage(self, partition: int) -> tuple[int, ...]:
        """The partition, then those that its fingerprints may have been in before, the latest first."""
        partitions = [partition]
        half = self.count // 2
        while half >= self.base:
            if partition >= half:
                partition -= half
                partitions.append(partition)
            half //= 2
        return tuple(partitions)

    def sets(self, most: int) -> list[range]:
        """All partitions in at most so many sets (a power of two): those that a partition was split from are in its
        set, and so are all of its lane, in a topic with as many lanes or more."""
        count = min(most, self.base)
        return [range(first, self.count, count) for first in range(count)]

    def children(self, partition: int) -> tuple[int, ...]:
        """Partitions that are split from this one, each by one bit, the oldest first: those that have it as the second
        number of their lineage. O(bits)."""
        sizes = (self.base << bit for bit in range((self.count // self.base).bit_length() - 1))
        return tuple(partition + size for size in sizes if partition < size)


@lru_cache(maxsize=64)
def layout_of(base: int, count: int = 0) -> Layout:
    """The layout with these numbers; 0: the system has not grown. Raises `ValueError`, see `Layout`."""
    return Layout(base, count or base)


def _numbers(base: int, count: int) -> list[int]:
    """Partition by the top bits of the fingerprint. O(count)."""
    numbers = list(range(base))
    size = base
    while size < count:
        numbers = [number for low in numbers for number in (low, low + size)]
        size *= 2
    return numbers
