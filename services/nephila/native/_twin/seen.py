"""The seen set on a Python set: the same answers as the native one, with more memory per key."""

from __future__ import annotations

import sys
from collections.abc import Iterator


def _records(fingerprints: bytes) -> Iterator[bytes]:
    if len(fingerprints) % 16:
        raise ValueError("fingerprints must come in records of 16 bytes")
    data = bytes(fingerprints)
    return (data[at : at + 16] for at in range(0, len(data), 16))


def _one(fingerprint: bytes) -> bytes:
    if len(fingerprint) != 16:
        raise ValueError("a fingerprint has 16 bytes")
    return bytes(fingerprint)


class SeenSet:
    """A set of 16-byte fingerprints; every operation O(1) per fingerprint on average, about 87 bytes each."""

    __slots__ = ("_keys",)

    def __init__(self) -> None:
        self._keys: set[bytes] = set()

    def missing(self, fingerprints: bytes) -> list[int]:
        """Indices of the 16-byte records that are not in the set, in order, each new fingerprint once. O(n)."""
        fresh: dict[bytes, int] = {}
        for index, key in enumerate(_records(fingerprints)):
            if key not in self._keys:
                fresh.setdefault(key, index)
        return list(fresh.values())

    def add(self, fingerprints: bytes) -> int:
        """Add records of 16 bytes; returns how many were new. O(n)."""
        before = len(self._keys)
        self._keys.update(_records(fingerprints))
        return len(self._keys) - before

    def discard(self, fingerprint: bytes) -> bool:
        """Remove one fingerprint; was it there? O(1)."""
        key = _one(fingerprint)
        there = key in self._keys
        self._keys.discard(key)
        return there

    def __contains__(self, fingerprint: object) -> bool:
        if not isinstance(fingerprint, bytes):
            raise TypeError("a fingerprint is bytes")
        return _one(fingerprint) in self._keys

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def nbytes(self) -> int:
        """Bytes of memory in use (estimate)."""
        return sys.getsizeof(self._keys) + len(self._keys) * sys.getsizeof(b"0" * 16)

    def dump(self) -> bytes:
        """All fingerprints, sorted, one after the other. O(n log n)."""
        return b"".join(sorted(self._keys))

    def load(self, fingerprints: bytes) -> None:
        """Add what `dump` gave, in any order. O(n)."""
        self.add(fingerprints)
