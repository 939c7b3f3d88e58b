"""Held links: links that the scope of a job or the live limit of depth refuses now. They are admitted when the scope
becomes wider or the limit higher. Pure.

A link one step beyond the largest depth, beyond the live depth, or outside the scope, is kept with its depth and
context, in the log too. So a scope that is widened later leads to the same pages as one that was as wide from the
start, up to a limit. Invariant: no held link is in the job's seen set at the time when it is added; one that was found
on another way since is skipped.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

LIMIT = 100_000
"""Links held by a frontier, over all jobs: about 30 MB. With several partitions each has its share of four times that,
because a program seldom has them all."""
OUTSIDE = 4
"""At most one in so many is outside the scope; the others are only too deep."""
_DEPTH = struct.Struct("<16xI")


class HeldLinks:
    """The held links of one job. Operations are O(1)."""

    def __init__(self) -> None:
        self._links: dict[bytes, bytes] = {}
        """Fingerprint → the link as a packed queue entry."""
        self._outside = 0
        """Links among them that are outside the scope, not only too deep."""
        self.lost = 0
        """Links that were not held because of the limit."""

    def __len__(self) -> int:
        """Links that are held."""
        return len(self._links)

    def __contains__(self, url_key: bytes) -> bool:
        return url_key in self._links

    def has_room(self, outside: bool, limit: int) -> bool:
        """Whether one more link may be held."""
        return len(self._links) < limit and (not outside or self._outside < limit // OUTSIDE)

    def is_new(self, url_key: bytes, depth: int) -> bool:
        """Whether a link is not held yet, or is held with a larger depth."""
        held_depth = self.depth_of(url_key)
        return held_depth is None or depth < held_depth

    def depth_of(self, url_key: bytes) -> int | None:
        """Depth of a held link; None where it is not held."""
        packed = self._links.get(url_key)
        return None if packed is None else _DEPTH.unpack_from(packed)[0]

    def add(self, packed: bytes, outside: bool) -> None:
        """Hold a link, a packed queue entry."""
        url_key = packed[:16]
        if url_key not in self._links:
            self._outside += outside
        self._links[url_key] = packed

    def discard(self, url_key: bytes) -> None:
        """The link was admitted; no effect where it is not held."""
        self._links.pop(url_key, None)

    def recount(self, outside: int) -> None:
        """After a change of the scope: so many of the links are outside it."""
        self._outside = outside

    def packed(self) -> Iterator[bytes]:
        """All held links as packed queue entries."""
        return iter(list(self._links.values()))


def limit_of(jobs: int, partitions: int) -> int:
    """Links that one job may hold in one frontier; `partitions`: frontiers that share the limit."""
    return LIMIT * 4 // max(partitions, 4) // max(jobs, 1)
