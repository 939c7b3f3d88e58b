"""Seen: the URL-seen test of one job. A view of the commit log, never a truth of its own."""

from __future__ import annotations

from typing import Protocol

from nephila.native import SeenSet


class Seen(Protocol):
    """A set of 16-byte fingerprints, asked in batches: one buffer per page instead of one call per link."""

    def missing(self, fingerprints: bytes) -> list[int]:
        """Indices of the records in the buffer that are not in the set, each fingerprint once."""

    def add(self, fingerprints: bytes) -> int:
        """Insert the records of the buffer; returns how many were new."""

    def discard(self, fingerprint: bytes) -> bool:
        """Take one fingerprint out; True when it was there."""

    def dump(self) -> bytes:
        """All fingerprints, sorted, end to end."""

    def __contains__(self, fingerprint: bytes) -> bool: ...

    def __len__(self) -> int: ...


def new_seen() -> Seen:
    """The in-memory set; the trie with its disk tier takes this place behind the same protocol."""
    return SeenSet()


def slice_prefix(dump: bytes, partition: int, partitions: int) -> bytes:
    """The part of a sorted dump that belongs to a partition (top log2 P bits). O(log n) plus the copy."""
    bits = partitions.bit_length() - 1

    def lower(first: int) -> int:
        if first >= partitions:
            return len(dump)
        bound = (first << (32 - bits)).to_bytes(4, "big")
        low, high = 0, len(dump) // 16
        while low < high:
            middle = (low + high) // 2
            if dump[16 * middle : 16 * middle + 4] < bound:
                low = middle + 1
            else:
                high = middle
        return 16 * low

    return dump[lower(partition) : lower(partition + 1)]
