"""The ring: assigns partitions to the members of a service, by consistent hashing with bounded loads.

Members are placed on a circle by hashes of their stable names, partitions at equal distances. A partition belongs to
the first member clockwise that is not full (Mirrokni, Thorup, Zadimoghaddam: Consistent Hashing with Bounded Loads,
2016). With the previous assignment as input few partitions move: those of a leaving member go to the next members, a
new member takes its share from the fullest, and none moves between remaining members. Invariant: each partition has one
member, and no member has more than 1.25 times the mean (or the mean rounded up, if that is more). Pure; liveness is
decided elsewhere. Reasons: docs/adr/0014.
"""

from __future__ import annotations

import functools
import hashlib
import heapq
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping

POINTS: int = 100
"""Points of a member on the circle: more points are more even and slower to sort."""
BOUND: float = 1.25
"""Maximum load of a member, as a multiple of the mean."""
_CIRCLE: int = 1 << 64


def assign_partitions(members: Collection[str], partitions: int, held: Mapping[int, str] | None = None) -> list[str]:
    """The member of each partition, by number. `held`: the current or promised member of a partition, as far as known;
    without it the result depends on the names alone. O((members * POINTS + partitions) log(members * POINTS)).

    Raises `ValueError` without members, for a duplicate name, or for fewer than one partition.
    """
    if not members or partitions < 1 or len(set(members)) != len(members):
        raise ValueError(f"the ring needs members with names of their own and a partition, got {members}, {partitions}")
    return _Assignment(members, partitions, held or {}).run()


def max_partitions(members: int, partitions: int) -> int:
    """Maximum number of partitions of one member."""
    return max(int(BOUND * partitions / members), -(-partitions // members))


class _Assignment:
    def __init__(self, members: Collection[str], partitions: int, held: Mapping[int, str]) -> None:
        self.partitions = partitions
        self.points = {name: _points(name) for name in members}
        self.max_partitions = max_partitions(len(members), partitions)
        self.fair_share = partitions // len(members)
        self.owner: list[str | None] = [None] * partitions
        self.load = dict.fromkeys(self.points, 0)
        self.held = {p: name for p, name in held.items() if name in self.points and 0 <= p < partitions}

    def run(self) -> list[str]:
        """Keep what may stay, then assign free partitions, then give new members their share."""
        earlier = set(self.held.values())
        newcomers = [name for name in self.points if name not in earlier] if earlier else []
        for p, name in sorted(self.held.items(), key=self._by_distance):
            if self.load[name] < self.max_partitions:
                self._give(p, name)
        self._assign_free([p for p, name in enumerate(self.owner) if name is None], newcomers)
        if newcomers:
            self._take_shares(sorted(newcomers), earlier)
        return [name for name in self.owner if name is not None]

    def _give(self, p: int, name: str) -> None:
        self.owner[p] = name
        self.load[name] += 1

    def _by_distance(self, item: tuple[int, str]) -> tuple[int, int]:
        """Sort key: partitions nearest to their member are kept first; a full member loses the others."""
        p, name = item
        return self._distance(p, name), p

    def _assign_free(self, free: list[int], newcomers: Collection[str]) -> None:
        """The next member clockwise that is not full. New members come first, so that less is taken from others."""
        wanting = len(newcomers) if self.fair_share else 0
        new = _Circle(self.points, newcomers) if wanting and free else None
        all = None
        for p in free:
            if new is not None and wanting:
                name = next(name for name in new.walk(self._point(p)) if self.load[name] < self.fair_share)
                wanting -= self.load[name] + 1 == self.fair_share
            else:
                all = all or _Circle(self.points, self.points)
                name = next(name for name in all.walk(self._point(p)) if self.load[name] < self.max_partitions)
            self._give(p, name)

    def _take_shares(self, newcomers: list[str], earlier: Collection[str]) -> None:
        """Move partitions from the fullest earlier members to each new member, nearest before it first, until it has
        its share."""
        theirs: dict[str, list[int]] = {name: [] for name in earlier}
        for p, owner in enumerate(self.owner):
            if owner in theirs:
                theirs[owner].append(p)
        fullest = [(-self.load[name], name) for name in theirs]
        heapq.heapify(fullest)
        for newcomer in newcomers:
            while self.load[newcomer] < self.fair_share:
                load, donor = fullest[0]
                if -load <= self.load[newcomer] + 1:
                    break
                p = min(theirs[donor], key=lambda p: (self._distance(p, newcomer), -p))
                theirs[donor].remove(p)
                self.load[donor] -= 1
                self._give(p, newcomer)
                heapq.heapreplace(fullest, (load + 1, donor))

    def _point(self, p: int) -> int:
        return ((2 * p + 1) * _CIRCLE) // (2 * self.partitions)

    def _distance(self, p: int, name: str) -> int:
        """Clockwise distance from a partition to a member's next point."""
        point, points = self._point(p), self.points[name]
        index = bisect_left(points, point)
        return points[index] - point if index < len(points) else points[0] + _CIRCLE - point


class _Circle:
    """Points of some members in order."""

    def __init__(self, points: Mapping[str, list[int]], members: Collection[str]) -> None:
        circle = sorted((point, name) for name in members for point in points[name])
        self._keys = [point for point, _ in circle]
        self._names = [name for _, name in circle]

    def walk(self, point: int) -> Iterator[str]:
        """Members clockwise from a point, with repetitions."""
        start, count = bisect_left(self._keys, point), len(self._names)
        return (self._names[(start + step) % count] for step in range(count))


@functools.lru_cache(maxsize=20_000)
def _points(name: str) -> list[int]:
    """The points of a member, sorted: 8 bytes of MD5 each. Kept, since a leader plans again and again for the same
    names; 4 KB each."""
    digests = (hashlib.md5(f"{name}#{i}".encode(), usedforsecurity=False).digest() for i in range(POINTS))
    return sorted(int.from_bytes(digest[:8], "big") for digest in digests)
