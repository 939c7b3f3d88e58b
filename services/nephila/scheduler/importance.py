"""Importance of pages not fetched yet, from the pages fetched so far: OPIC with damping. Pure; one per job.

A fetched page gives its cash, and a little of its own that every page has, to its links in equal parts; what has been
given to a URL that waits is its importance. `give` says where new links belong in the queue and which queued ones have
risen so far (doubled) that they should be queued again with a better order: *a second entry*, the old one stays. `take`
is asked for each entry that comes out of a queue; it says which of the copies counts. Invariants: exactly one copy of a
URL counts between two `requeued`; only URLs given as new are ever said to rise; a table of `limit` URLs at most (and a
quarter), what it forgets it forgets by priority sampling, so that sums stay right on average; no clock, no chance.

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
_VERSION: Final = 1
_STATE: Final = msgspec.msgpack.Decoder(tuple[int, int, dict[bytes, float], dict[bytes, int]])


class Importance:
    """Cash of URLs by fingerprint: above zero while they wait, below when they were taken or their state is not known.

    A link costs about half a microsecond; forgetting costs a sort of the table once in `limit` / 4 new URLs.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._cash: dict[bytes, float] = {}
        self._sum = 0.0
        """Of those that wait; with `_count` the average."""
        self._count = 0
        self._copies: dict[bytes, int] = {}
        """Entries in the queue beyond one: n while none of them has been taken, -n when n are left that are stale."""
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

    def give(self, parent: bytes, links: bytes, new: Iterable[int]) -> tuple[list[int], list[tuple[int, int]]]:
        """A page was fetched that leads to `links` (16 bytes each); those at `new` are admitted now.

        Returns the priorities of the new ones, in the order of `new`, and (index, priority) of those that wait in a
        queue and are to be pushed a second time.
        """
        count = len(links) // 16
        had = self._pop(parent)
        if not count:
            return [], []
        part = DAMPING * (1.0 - DAMPING + had) / count
        fresh = list(new)
        cash = self._cash
        for i in fresh:
            key = links[16 * i : 16 * i + 16]
            had = cash.get(key, 0.0)
            if had <= 0:
                # It may have been given cash before it was admitted.
                cash[key] = -had
                self._count += 1
                self._sum -= had
        risen = []
        for i in range(count):
            key = links[16 * i : 16 * i + 16]
            before = cash.get(key)
            if before is None or before < 0:
                cash[key] = (before or 0.0) - part
                continue
            after = cash[key] = before + part
            self._sum += part
            # Only at powers of two: n gifts make log n copies at most.
            if before > 0 and math.frexp(after)[1] > math.frexp(before)[1]:
                risen.append(i)
        admitted = set(fresh)
        rises = [i for i in risen if i not in admitted and len(self._copies) < self._limit]
        answer = (
            [self._priority(cash[links[16 * i : 16 * i + 16]]) for i in fresh],
            [(i, self._priority(cash[links[16 * i : 16 * i + 16]])) for i in rises],
        )
        for i in rises:
            key = links[16 * i : 16 * i + 16]
            self._copies[key] = self._copies.get(key, 0) + 1
        if len(cash) > self._limit + self._limit // 4:
            self._forget()
        return answer

    def take(self, key: bytes) -> bool:
        """An entry of this URL came out of a queue: False when it is a copy that counts no more; drop it then."""
        copies = self._copies.get(key)
        if copies is not None and copies < 0:
            if copies == -1:
                del self._copies[key]
            else:
                self._copies[key] = copies + 1
            return False
        if copies is not None:
            self._copies[key] = -copies
        waiting = self._cash.get(key, 0.0)
        if waiting > 0:
            self._sum -= waiting
            self._count -= 1
            self._cash[key] = -waiting
        return True

    def requeued(self, key: bytes) -> None:
        """A URL that was taken goes into the queue again (a retry, a returned lease): one of its entries counts."""
        copies = self._copies.get(key, 0)
        if copies < 0:
            self._copies[key] = -copies

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
            raise ValueError(f"state of importance has version {version}, not {_VERSION}")
        self._rounds, self._cash, self._copies = rounds, cash, copies
        waiting = [c for c in cash.values() if c > 0]
        self._sum, self._count = math.fsum(waiting), len(waiting)

    def check(self) -> None:
        """Raise AssertionError when an invariant does not hold."""
        waiting = [c for c in self._cash.values() if c > 0]
        assert self._count == len(waiting), f"{self._count} counted, {len(waiting)} waiting"
        assert math.isclose(self._sum, math.fsum(waiting), rel_tol=1e-6, abs_tol=1e-6), "sum of what waits"
        assert len(self._cash) <= self._limit + self._limit // 4, f"{len(self._cash)} URLs"
        assert all(self._copies.values()), "a URL with no copy is listed"


def _uniform(key: bytes, salt: int) -> float:
    """A number in (0, 1] from key and salt (the mixer of SplitMix64)."""
    x = int.from_bytes(key[8:16], "little") + salt * 0x9E3779B97F4A7C15 & _MASK
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & _MASK
    return ((x ^ x >> 31) + 1) / (_MASK + 2)
