"""Importance of pages not fetched yet, from the pages fetched so far: OPIC with damping. Pure; one per job.

A fetched page gives its cash, and a little of its own that every page has, to its links in equal parts; what has been
given to a URL that waits is its importance. `give` says where new links belong in the queue and which queued ones have
risen so far (doubled) that they should be queued again with a better order: *a second entry*, the old one stays.
Copies of a URL are numbered, and `is_stale` is asked for each entry that comes out of a queue. Invariants: of the
entries of a URL that of the latest copy counts, also when it is queued again; only URLs given as new are ever said to
rise; a table of `limit` URLs at most (and a quarter), what it forgets it forgets by priority sampling, so that sums
stay right on average; no clock, no chance.

Sources: Abiteboul, Preda and Cobena, Adaptive On-Line Page Importance Computation, 2003; Duffield, Lund and Thorup,
Priority Sampling for Estimation of Arbitrary Subset Sums, 2007.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

import msgspec

LIMIT: Final = 32_768
"""URLs with cash: about 5 MB."""
DAMPING: Final = 0.85
"""Share that is passed on; as in PageRank."""
AVERAGE: Final = 128
STEPS: Final = 16
"""Priority of a URL of average importance, and priorities per doubling: 0-255 is 1/256 to 256 times the average."""
_MASK: Final = (1 << 64) - 1
MAX_COPY: Final = 127
"""The number of a copy has seven bits in an entry."""
_VERSION: Final = 2
_STATE: Final = msgspec.msgpack.Decoder(tuple[int, int, dict[bytes, float], dict[bytes, int]])


class Importance:
    """Cash of URLs by fingerprint: above zero while they wait, below when they were taken or their state is not known.

    A link costs about a microsecond; forgetting costs a sort of the table (some 50 ms) once in `limit` / 4 new URLs.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._cash: dict[bytes, float] = {}
        self._sum = 0.0
        """Of those that wait; with `_count` the average."""
        self._count = 0
        self._copies: dict[bytes, int] = {}
        """The number of the latest copy << 8 | entries of earlier ones that are still in the queue. Kept as long as
        there are such, or the latest may rise once more: a number is not given twice."""
        self.stale = 0
        """Entries in the queue that do not count."""
        self._rounds = 0

    def __len__(self) -> int:
        """URLs with cash."""
        return len(self._cash)

    def priority(self, key: bytes) -> int:
        """Importance of a waiting URL, 0-255; the lowest for one that was forgotten."""
        return self._priority(self._cash.get(key, 0.0))

    def _priority(self, cash: float) -> int:
        if cash <= 0:
            return 0
        octaves = math.log2(cash * self._count / max(self._sum, cash))
        return min(max(round(AVERAGE + STEPS * octaves), 0), 255)

    def give(
        self, parent: bytes, links: bytes, new: Iterable[int], of: int = 0
    ) -> tuple[list[int], list[tuple[int, int]]]:
        """A page was fetched that leads to `links` (16 bytes each); those at `new` are admitted now. `of`: how many
        links the page has in all where these are those of one partition; what the page itself was worth is known
        in its own partition alone, so that links to others get no part of that.

        Returns the priorities of the new ones, in the order of `new`, and (index, priority) of those that have risen:
        if one of them is in a queue, push it once more under the number that `copied` gives.
        """
        keys = [links[at : at + 16] for at in range(0, len(links), 16)]
        had = self._pop(parent)
        if not keys:
            return [], []
        fresh = list(new)
        for i in fresh:
            self._admit(keys[i])
        risen = self._add(keys, DAMPING * (1.0 - DAMPING + had) / (of or len(keys)))
        admitted = set(fresh)
        rises = [i for i in risen if i not in admitted and self.copy_of(keys[i]) < MAX_COPY]
        if len(self._copies) >= self._limit:
            rises = []
        answer = [self.priority(keys[i]) for i in fresh], [(i, self.priority(keys[i])) for i in rises]
        if len(self._cash) > self._limit + self._limit // 4:
            self._forget()
        return answer

    def _admit(self, key: bytes) -> None:
        """A URL begins to wait, with what it was given before."""
        had = self._cash.get(key, 0.0)
        if had <= 0:
            self._cash[key] = -had
            self._count += 1
            self._sum -= had

    def _add(self, keys: list[bytes], part: float) -> list[int]:
        """Give each its part; returns which of those that wait have passed a power of two: n gifts to a URL make log n
        copies of it at most."""
        cash, risen, total = self._cash, [], 0.0
        for i, key in enumerate(keys):
            before = cash.get(key)
            if before is None or before < 0:
                cash[key] = (before or 0.0) - part
                continue
            after = cash[key] = before + part
            total += part
            if before > 0 and math.frexp(after)[1] > math.frexp(before)[1]:
                risen.append(i)
        self._sum += total
        return risen

    def take(self, key: bytes) -> None:
        """The entry of this URL that counts has come out of its queue: the URL does not wait any more."""
        waiting = self._cash.get(key, 0.0)
        if waiting > 0:
            self._sum -= waiting
            self._count -= 1
            self._cash[key] = -waiting
        if key in self._copies and not self._copies[key] & 255:
            del self._copies[key]

    def copy_of(self, key: bytes) -> int:
        """Number of the copy of this URL that counts; 0 as long as there is one alone."""
        return self._copies.get(key, 0) >> 8

    def copied(self, key: bytes) -> int:
        """The URL gets one entry more, and that counts from now on: its number."""
        known = self._copies.get(key, 0)
        self._copies[key] = ((known >> 8) + 1) << 8 | (known & 255) + 1
        self.stale += 1
        return (known >> 8) + 1

    def is_stale(self, key: bytes, copy: int) -> bool:
        """Whether an entry is one that counts no more."""
        known = self._copies.get(key)
        return known is not None and known >> 8 != copy

    def dropped(self, key: bytes) -> None:
        """A stale entry of this URL is out of its queue."""
        self.stale -= 1
        self._copies[key] -= 1
        if not self._copies[key] & 255 and self._cash.get(key, 0.0) <= 0:
            del self._copies[key]

    def _pop(self, key: bytes) -> float:
        cash = self._cash.pop(key, 0.0)
        if cash > 0:
            self._sum -= cash
            self._count -= 1
        return abs(cash)

    def _forget(self) -> None:
        """Keep `limit` URLs. Each gets the rank cash / u, u uniform; the largest ranks stay, and each is worth at least
        the largest rank that went: on average nothing is lost and nobody is favoured."""
        self._rounds += 1
        ranks = sorted(((abs(c) / _uniform(key, self._rounds), key) for key, c in self._cash.items()), reverse=True)
        threshold = ranks[self._limit][0]
        kept = {key: self._cash[key] for _, key in ranks[: self._limit]}
        self._cash = {key: math.copysign(max(abs(c), threshold), c) for key, c in kept.items()}
        waiting = [c for c in self._cash.values() if c > 0]
        self._sum, self._count = math.fsum(waiting), len(waiting)

    def pack(self) -> bytes:
        """The whole state. O(size)."""
        return msgspec.msgpack.encode((_VERSION, self._rounds, self._cash, self._copies))

    def unpack(self, packed: bytes) -> None:
        """Take over what `pack` gave; ValueError when it cannot be that, and nothing is changed."""
        try:
            version, rounds, cash, copies = _STATE.decode(packed)
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise ValueError(f"state of importance is damaged: {error}") from None
        if version != _VERSION:
            raise ValueError(
                f"state of importance has version {version}, this program reads {_VERSION}; resume with the program "
                "version that wrote it"
            )
        self._rounds, self._cash, self._copies = rounds, cash, copies
        self.stale = sum(copy & 255 for copy in copies.values())
        waiting = [c for c in cash.values() if c > 0]
        self._sum, self._count = math.fsum(waiting), len(waiting)

    def check(self) -> None:
        """Raise AssertionError when an invariant does not hold."""
        waiting = [c for c in self._cash.values() if c > 0]
        assert self._count == len(waiting), f"{self._count} counted, {len(waiting)} waiting"
        assert math.isclose(self._sum, math.fsum(waiting), rel_tol=1e-6, abs_tol=1e-6), "sum of what waits"
        assert len(self._cash) <= self._limit + self._limit // 4, f"{len(self._cash)} URLs"
        assert all(0 <= known & 255 <= known >> 8 for known in self._copies.values()), "copies of a URL"
        assert self.stale == sum(known & 255 for known in self._copies.values()), f"{self.stale} stale entries"


def _uniform(key: bytes, salt: int) -> float:
    """A number in (0, 1] from key and salt (the mixer of SplitMix64)."""
    x = int.from_bytes(key[8:16], "little") + salt * 0x9E3779B97F4A7C15 & _MASK
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & _MASK
    return ((x ^ x >> 31) + 1) / (_MASK + 2)
