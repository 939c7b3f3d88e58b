"""The set of fingerprints as a Python set: the calls of the core's MD5 trie, about 87 bytes of memory for each key.

All keys are in memory: a budget has no effect. A checkpoint writes all keys, O(n log n). Ranges cost O(n).
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_left
from os import PathLike

from nephila.native.fallback.files import Checkpoints

_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}", re.ASCII)


def _records(fingerprints: bytes) -> list[bytes]:
    data = bytes(memoryview(fingerprints))
    if len(data) % 16:
        raise ValueError("fingerprints must come in records of 16 bytes")
    return [data[at : at + 16] for at in range(0, len(data), 16)]


def _one(fingerprint: object) -> bytes:
    if not isinstance(fingerprint, bytes):
        raise TypeError("a fingerprint is bytes")
    if len(fingerprint) != 16:
        raise ValueError("a fingerprint has 16 bytes")
    return fingerprint


class Trie:
    """A set of 16-byte fingerprints; batches cost O(1) for each fingerprint."""

    __slots__ = ("_changed", "_files", "_keys", "_manifest", "_name")

    def __init__(self, directory: str | PathLike[str] = "", name: str = "", budget_bytes: int = 0) -> None:
        self._keys: set[bytes] = set()
        self._files: Checkpoints | None = None
        self._name = name
        self._manifest = b""
        self._changed = True
        if not str(directory):
            if budget_bytes:
                raise ValueError("a budget needs a directory for what is beyond it")
            return
        if not _NAME.fullmatch(name):
            raise ValueError(
                f'the name of a trie has 1 to 100 ASCII letters, digits, dots, dashes or underscores, not "{name}"'
            )
        self._files = Checkpoints(str(directory), f"seen-{name}", "run")

    def missing(self, fingerprints: bytes) -> list[int]:
        """Indices of the records that are not in the set, in order, each new fingerprint once. O(n)."""
        fresh: dict[bytes, int] = {}
        for index, key in enumerate(_records(fingerprints)):
            if key not in self._keys:
                fresh.setdefault(key, index)
        return list(fresh.values())

    def add(self, fingerprints: bytes) -> int:
        """Add records of 16 bytes; how many were new. O(n)."""
        before = len(self._keys)
        self._keys.update(_records(fingerprints))
        self._changed |= len(self._keys) != before
        return len(self._keys) - before

    load = add

    def _remove(self, keys: set[bytes]) -> int:
        before = len(self._keys)
        self._keys -= keys
        self._changed |= len(self._keys) != before
        return before - len(self._keys)

    def discard(self, fingerprint: bytes) -> bool:
        """Remove one fingerprint; was it there? O(1)."""
        return self._remove({_one(fingerprint)}) == 1

    def discard_many(self, fingerprints: bytes) -> int:
        """Remove records of 16 bytes; how many were there. O(n)."""
        return self._remove(set(_records(fingerprints)))

    def discard_prefix(self, prefix: bytes, bits: int | None = None) -> int:
        """Remove the keys that begin with the first `bits` bits (default: all) of `prefix`; how many. O(n)."""
        depth = 8 * len(prefix) if bits is None else bits
        if len(prefix) > 16 or depth < 0 or depth > 8 * len(prefix):
            raise ValueError("a prefix has at most 16 bytes, and no fewer than its bits")
        rest = (1 << (128 - depth)) - 1
        first = int.from_bytes(prefix.ljust(16, b"\0"), "big") & ~rest
        low, high = first.to_bytes(16, "big"), (first | rest).to_bytes(16, "big")
        return self._remove({key for key in self._keys if low <= key <= high})

    def __contains__(self, fingerprint: object) -> bool:
        return _one(fingerprint) in self._keys

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def nbytes(self) -> int:
        """Bytes of memory in use (estimate)."""
        return sys.getsizeof(self._keys) + len(self._keys) * sys.getsizeof(bytes(16))

    def keys(self, start: bytes, limit: int) -> bytes:
        """At most `limit` fingerprints from `start` on, sorted. O(n log n)."""
        ordered = sorted(self._keys)
        at = bisect_left(ordered, start)
        return b"".join(ordered[at : at + limit])

    def split(self, first: bytes, last: bytes | None = None, name: str = "") -> Trie:
        """Move the keys from `first` up to, but without, `last` (None: to the end) to a new trie."""
        if name and self._files is None:
            raise ValueError("a trie without a directory has none for another")
        if name and name == self._name:
            raise ValueError(f'the name "{name}" is this trie\'s own')
        other = Trie(self._files.directory, name) if name and self._files is not None else Trie()
        taken = {key for key in self._keys if first <= key and (last is None or key < last)}
        other.add(b"".join(taken))
        self._remove(taken)
        return other

    def merge(self, other: Trie) -> int:
        """Move all keys of another trie to this one; how many were new. O(n)."""
        if other is self:
            raise ValueError("a trie cannot be merged with itself")
        new = self.add(other.dump())
        other._remove(set(other._keys))
        return new

    def dump(self) -> bytes:
        """All fingerprints, sorted. O(n log n)."""
        return b"".join(sorted(self._keys))

    def checkpoint(self) -> bytes:
        """Write all keys durably if they changed; the manifest to keep. OSError when the disk refuses."""
        if self._files is None:
            raise ValueError("a trie without a directory has no checkpoints")
        if self._changed:
            self._manifest = self._files.write(self.dump())
            self._changed = False
        return self._manifest

    def restore(self, manifest: bytes) -> None:
        """Fill an empty trie with the keys that a manifest names; ValueError, in one line, for damage."""
        if self._files is None or self._keys or self._manifest:
            raise ValueError("only an empty trie with a directory can be restored")
        self._keys = set(_records(self._files.read(manifest, bytes)))
        self._manifest, self._changed = manifest, False

    def cleanup(self) -> int:
        """Delete the files of this name that the last manifest does not name; how many."""
        return self._files.cleanup() if self._files is not None else 0

    def check(self) -> None:
        """ValueError if an invariant does not hold. O(n)."""
        if any(len(key) != 16 for key in self._keys):
            raise ValueError("a key of another length")

    def stats(self) -> tuple[int, int, int, int]:
        """Regions, regions with keys on disk, keys on disk, files."""
        return 1, 0, 0, int(bool(self._manifest))
