"""The MD5 trie on a Python set: the same answers and files as the native one, with more memory per key.

It keeps everything in memory: a budget is taken and does nothing. Ranges cost O(n), as nothing is kept in order.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_left
from collections.abc import Iterator
from os import PathLike

from nephila.native._twin.runs import Runs

_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}", re.ASCII)


def _records(fingerprints: bytes) -> Iterator[bytes]:
    data = bytes(memoryview(fingerprints))
    if len(data) % 16:
        raise ValueError("fingerprints must come in records of 16 bytes")
    return (data[at : at + 16] for at in range(0, len(data), 16))


def _one(fingerprint: object) -> bytes:
    if not isinstance(fingerprint, bytes):
        raise TypeError("a fingerprint is bytes")
    if len(fingerprint) != 16:
        raise ValueError("a fingerprint has 16 bytes")
    return fingerprint


class Trie:
    """A set of 16-byte fingerprints in key order; batches O(1) per fingerprint on average, about 87 bytes each."""

    __slots__ = ("_keys", "_ranges", "_runs", "_touched")

    def __init__(self, directory: str | PathLike[str] = "", name: str = "", budget_bytes: int = 0) -> None:
        self._keys: set[bytes] = set()
        self._touched: set[bytes] = set()
        self._ranges: list[tuple[bytes, bytes]] = []
        self._runs: Runs | None = None
        if not str(directory):
            if budget_bytes:
                raise ValueError("a budget needs a directory for what is beyond it")
            return
        if not _NAME.fullmatch(name):
            raise ValueError(
                f'the name of a trie has 1 to 100 ASCII letters, digits, dots, dashes or underscores, not "{name}"'
            )
        self._runs = Runs(str(directory), name)

    def missing(self, fingerprints: bytes) -> list[int]:
        """Indices of the 16-byte records that are not in the set, in order, each new fingerprint once. O(n)."""
        fresh: dict[bytes, int] = {}
        for index, key in enumerate(_records(fingerprints)):
            if key not in self._keys:
                fresh.setdefault(key, index)
        return list(fresh.values())

    def add(self, fingerprints: bytes) -> int:
        """Add records of 16 bytes; returns how many were new. O(n)."""
        fresh = set(_records(fingerprints)) - self._keys
        self._keys |= fresh
        self._touch(fresh)
        return len(fresh)

    def load(self, fingerprints: bytes) -> int:
        """Add what `dump` gave, or records in any order. O(n)."""
        return self.add(fingerprints)

    def discard(self, fingerprint: bytes) -> bool:
        """Remove one fingerprint; was it there? O(1)."""
        return self._remove({_one(fingerprint)}) == 1

    def discard_many(self, fingerprints: bytes) -> int:
        """Remove records of 16 bytes; returns how many were there. O(n)."""
        return self._remove(set(_records(fingerprints)))

    def discard_prefix(self, prefix: bytes, bits: int | None = None) -> int:
        """Remove those that begin with the first `bits` bits (default: all) of `prefix`; how many?"""
        depth = 8 * len(prefix) if bits is None else bits
        if len(prefix) > 16 or depth < 0 or depth > 8 * len(prefix):
            raise ValueError("a prefix has at most 16 bytes, and no fewer than its bits")
        rest = (1 << (128 - depth)) - 1
        first = int.from_bytes(prefix.ljust(16, b"\0"), "big") & ~rest
        return len(self._take_out(first.to_bytes(16, "big"), (first | rest).to_bytes(16, "big")))

    def _take_out(self, first: bytes, last: bytes) -> set[bytes]:
        taken = {key for key in self._keys if first <= key <= last}
        self._keys -= taken
        if self._runs is not None:
            self._ranges.append((first, last))
        return taken

    def _remove(self, keys: set[bytes]) -> int:
        there = keys & self._keys
        self._keys -= there
        self._touch(there)
        return len(there)

    def _touch(self, keys: set[bytes]) -> None:
        if self._runs is not None:
            self._touched |= keys

    def __contains__(self, fingerprint: object) -> bool:
        return _one(fingerprint) in self._keys

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def nbytes(self) -> int:
        """Bytes of memory in use (estimate)."""
        return sys.getsizeof(self._keys) + len(self._keys) * sys.getsizeof(b"0" * 16)

    def keys(self, start: bytes, limit: int) -> bytes:
        """At most `limit` fingerprints that are not before `start` as byte strings, sorted. O(n log n)."""
        ordered = sorted(self._keys)
        at = bisect_left(ordered, start)
        return b"".join(ordered[at : at + limit])

    def split(self, first: bytes, last: bytes | None = None, name: str = "") -> Trie:
        """Take those from `first` up to but without `last` (None: to the end) out, as a trie of their own."""
        if name and self._runs is None:
            raise ValueError("a trie without a directory has none for another")
        if name and self._runs is not None and name == self._runs.name:
            raise ValueError(f'the name "{name}" is this trie\'s own')
        other = Trie(self._runs.directory, name) if name and self._runs is not None else Trie()
        taken = {key for key in self._keys if first <= key and (last is None or key < last)}
        other.add(b"".join(taken))
        self._remove(taken)
        return other

    def merge(self, other: Trie) -> int:
        """Take all fingerprints of another trie, which is empty then; returns how many were new. O(n)."""
        if other is self:
            raise ValueError("a trie cannot be merged with itself")
        return self.add(b"".join(other._take_out(bytes(16), b"\xff" * 16)))

    def dump(self) -> bytes:
        """All fingerprints, sorted, one after the other. O(n log n)."""
        return b"".join(sorted(self._keys))

    def checkpoint(self) -> bytes:
        """Write what changed since the last one as a sorted run, durably; returns the manifest to keep."""
        if self._runs is None:
            raise ValueError("a trie without a directory has no checkpoints")
        if self._touched or self._ranges:
            self._runs.write(sorted(self._touched & self._keys), sorted(self._touched - self._keys), self._ranges)
            self._touched, self._ranges = set(), []
        return self._runs.manifest(len(self._keys))

    def restore(self, manifest: bytes) -> None:
        """Fill an empty trie with what a manifest names; ValueError, in one line, for a file that is not as it was."""
        if self._runs is None or self._keys or self._touched or self._ranges or self._runs.files:
            raise ValueError("only an empty trie with a directory can be restored")
        self._keys = self._runs.open(manifest)

    def cleanup(self) -> int:
        """Remove the run files of this name that the last manifest does not name; returns how many."""
        return self._runs.cleanup() if self._runs is not None else 0

    def check(self) -> None:
        """ValueError if an invariant does not hold. O(n)."""
        if any(len(key) != 16 for key in self._keys):
            raise ValueError("a key of another length")

    def stats(self) -> tuple[int, int, int, int]:
        """What lies where: regions, regions with keys on disk, keys on disk, runs."""
        return 1, 0, 0, len(self._runs.files) if self._runs is not None else 0
