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


class _Shim:
    def __init__(self):
        self._s = SeenSet()

    def missing(self, f):
        return self._s.missing(f)

    def add(self, f):
        return self._s.add(f)

    def discard(self, f):
        return self._s.discard(f)

    def dump(self):
        return self._s.dump()

    def __contains__(self, f):
        return f in self._s

    def __len__(self):
        return len(self._s)

    def checkpoint(self):
        return self._s.dump()

    def restore(self, m):
        self._s.load(m)

    def cleanup(self):
        pass


def new_seen(directory: str, number: int, *, read_only: bool = False) -> Seen:
    """The seen set of a job; its files lie in `directory` once there is a checkpoint."""
    return _Shim()
