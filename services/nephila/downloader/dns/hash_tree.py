"""The DNS cache: a hash tree over the MD5 of the host name. Pure: instants are passed in.

An inner node has 16 children, selected by the next four bits of the hash. A leaf holds the units of a few names,
ordered by weight (uses), so that names in frequent use are found first. A leaf with more than `LEAF_UNITS` units
becomes an inner node, as long as hash bits are left. A unit stores the answer for a name and its times:

    answer ........ refresh_at ................. expires_at .............................. stale_until
           fresh    fresh; a use starts a        served only while the name server fails
                    look-up in the background    (RFC 8767)

The tree holds at most `size` names. For a further name the lightest unit of a few sampled leaves is evicted; an expired
unit has no weight. A new answer halves the weight, so that a name that was in use long ago becomes light.
"""

from __future__ import annotations

import random
from bisect import insort
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

try:  # hashlib's MD5 is OpenSSL's, which takes five times as long for a name
    from _md5 import md5  # type: ignore[import-not-found]
except ImportError:  # a Python built without it
    from hashlib import md5

V = TypeVar("V")

LEAF_UNITS = 8
MERGE_UNITS = 4
"""An inner node whose leaves hold no more units than this becomes a leaf again."""
HASH_BITS = 60
SAMPLED_LEAVES = 8
REFRESH_FRACTION = 0.8
"""Part of its time to live after which a use starts a new look-up."""
_from_bytes = int.from_bytes


class TreeUnit(Generic[V]):
    __slots__ = ("answer", "expires_at", "host", "refresh_at", "stale_until", "weight")

    def __init__(self, host: str) -> None:
        self.host = host
        self.weight = 1
        """Uses, halved with each answer."""
        self.answer: V
        self.refresh_at = 0.0
        """From when on a use starts a look-up in the background."""
        self.expires_at = 0.0
        self.stale_until = 0.0
        """Until when the answer may be served while the name server fails; not after `expires_at`: never."""


class _Node(list[Any]):
    """An inner node: 16 children, each None, a leaf (a list of units) or an inner node."""

    __slots__ = ()


class HashTree(Generic[V]):
    """The tree holds at most `size` names. `get` and `put` are O(log names) on average; a full tree samples
    `SAMPLED_LEAVES` more.

    A name costs some 190 bytes at 10^5 names, in addition to its text and its answer.
    """

    def __init__(self, size: int, rng: random.Random | None = None) -> None:
        self._size = max(1, size)
        self._rng = rng or random.Random()
        self._root = _Node([None] * 16)
        self._count = 0
        self.evicted = 0
        """Units evicted for other names."""

    def __len__(self) -> int:
        return self._count

    def get(self, host: str, now: float) -> TreeUnit[V] | None:
        """The unit of a name while it is fresh; this counts as a use."""
        # `_find` is repeated here: each page makes this call.
        bits = _from_bytes(md5(host.encode(), usedforsecurity=False).digest()[:8], "little")
        leaf: Any = self._root[bits & 15]
        while type(leaf) is _Node:
            bits >>= 4
            leaf = leaf[bits & 15]
        if leaf is None:
            return None
        before: TreeUnit[V] | None = None
        for unit in leaf:
            if unit.host == host:
                if unit.expires_at <= now:
                    return None
                unit.weight += 1
                if before is not None and before.weight < unit.weight:
                    _move_up(leaf, unit)
                return unit  # type: ignore[no-any-return]
            before = unit
        return None

    def stale(self, host: str, now: float) -> TreeUnit[V] | None:
        """The unit of a name while its answer, fresh or stale, may be served in spite of a failed look-up."""
        slot = self._find(host)
        if slot is None:
            return None
        unit: TreeUnit[V] = slot[0][slot[1]]
        return unit if now < max(unit.expires_at, unit.stale_until) else None

    def put(self, host: str, answer: V, now: float, ttl_s: float, stale_s: float = 0.0) -> None:
        """Store the answer of a name server: fresh for `ttl_s`, then stale for `stale_s` seconds."""
        slot = self._find(host)
        if slot is not None:
            leaf, index = slot
            unit: TreeUnit[V] = leaf.pop(index)
            unit.weight = max(unit.weight // 2, 1)
            insort(leaf, unit, key=_rank)
        else:
            if self._count >= self._size:
                self._evict(now)
            unit = TreeUnit(host)
            self._insert(unit)
        unit.answer = answer
        unit.refresh_at = now + REFRESH_FRACTION * ttl_s
        unit.expires_at = now + ttl_s
        unit.stale_until = unit.expires_at + stale_s if stale_s else 0.0

    def postpone(self, host: str, now: float, wait_s: float) -> None:
        """Serve the answer of a name for `wait_s` more seconds: its look-up has failed and is not repeated before."""
        slot = self._find(host)
        if slot is not None:
            unit = slot[0][slot[1]]
            unit.expires_at = max(unit.expires_at, now + wait_s)
            unit.refresh_at = now + REFRESH_FRACTION * (unit.expires_at - now)

    # ---- tree

    def _find(self, host: str) -> tuple[list[TreeUnit[V]], int] | None:
        """The leaf of a name and the place of its unit."""
        bits = _hash(host)
        node: Any = self._root[bits & 15]
        while type(node) is _Node:
            bits >>= 4
            node = node[bits & 15]
        if node is not None:
            for index, unit in enumerate(node):
                if unit.host == host:
                    return node, index
        return None

    def _insert(self, unit: TreeUnit[V]) -> None:
        """Add the unit of a new name; O(depth), and a split where the leaf is full."""
        self._count += 1
        bits, depth, node = _hash(unit.host), 1, self._root
        while True:
            child = node[bits & 15]
            if type(child) is _Node:
                node, bits, depth = child, bits >> 4, depth + 1
                continue
            if child is None:
                node[bits & 15] = [unit]
                return
            if len(child) < LEAF_UNITS or depth * 4 >= HASH_BITS:
                insort(child, unit, key=_rank)
                return
            split = node[bits & 15] = _Node([None] * 16)
            for leaf_unit in child:  # in order of weight, so that the new leaves are as well
                at = _hash(leaf_unit.host) >> depth * 4 & 15
                if split[at] is None:
                    split[at] = [leaf_unit]
                else:
                    split[at].append(leaf_unit)

    def _evict(self, now: float) -> None:
        """Remove the lightest unit of some sampled leaves; of equal ones the one that expires first."""
        lightest: TreeUnit[V] | None = None
        key = (0, 0.0)
        for _ in range(SAMPLED_LEAVES):
            for unit in self._sample():
                unit_key = (unit.weight if unit.expires_at > now else 0, unit.expires_at)
                if lightest is None or unit_key < key:
                    lightest, key = unit, unit_key
        assert lightest is not None
        self._remove(lightest.host)
        self.evicted += 1

    def _sample(self) -> list[TreeUnit[V]]:
        """A leaf with at least one unit; each inner node on the way selects a used child at random. The tree is not
        empty."""
        node: Any = self._root
        while type(node) is _Node:
            start = self._rng.getrandbits(4)
            node = next(child for at in range(16) if (child := node[(start + at) & 15]) is not None)
        leaf: list[TreeUnit[V]] = node
        return leaf

    def _remove(self, host: str) -> None:
        bits, node = _hash(host), self._root
        path: list[tuple[_Node, int]] = [(node, bits & 15)]
        while type(child := node[bits & 15]) is _Node:
            node, bits = child, bits >> 4
            path.append((node, bits & 15))
        child[:] = [unit for unit in child if unit.host != host]
        self._count -= 1
        if not child:
            node[bits & 15] = None
        while len(path) > 1:
            node, _ = path.pop()
            if any(type(entry) is _Node for entry in node):
                return
            units = [unit for leaf in node if leaf is not None for unit in leaf]
            if len(units) > MERGE_UNITS:
                return
            parent, at = path[-1]
            parent[at] = sorted(units, key=_rank) or None

    def units(self) -> Iterator[TreeUnit[V]]:
        """All units. O(names)."""
        nodes: list[Any] = [self._root]
        while nodes:
            node = nodes.pop()
            if type(node) is _Node:
                nodes += [child for child in node if child is not None]
            else:
                yield from node

    def check(self) -> None:
        """Raise AssertionError when an invariant is broken. O(names)."""
        count = 0
        stack: list[tuple[Any, int, int]] = [(self._root, 0, 0)]
        while stack:
            node, prefix, depth = stack.pop()
            if type(node) is _Node:
                assert len(node) == 16, "an inner node without 16 children"
                assert depth == 0 or sum(1 for _ in _units_below(node)) > MERGE_UNITS, "an inner node for a few units"
                stack += [
                    (child, prefix | at << depth * 4, depth + 1) for at, child in enumerate(node) if child is not None
                ]
                continue
            count += len(node)
            assert node, "an empty leaf"
            assert len(node) <= LEAF_UNITS or depth * 4 >= HASH_BITS, "a leaf with too many units"
            weights = [unit.weight for unit in node]
            assert weights == sorted(weights, reverse=True), "units not in the order of their weights"
            assert min(weights) >= 1, "a unit without weight"
            assert len({unit.host for unit in node}) == len(node), "a name twice"
            for unit in node:
                assert _hash(unit.host) & ((1 << depth * 4) - 1) == prefix, f"{unit.host} in the wrong leaf"
        assert count == self._count <= self._size, f"{count} units, {self._count} counted, at most {self._size}"


def _units_below(node: Any) -> Iterator[Any]:
    if type(node) is _Node:
        for child in node:
            if child is not None:
                yield from _units_below(child)
    else:
        yield from node


def _move_up(leaf: list[TreeUnit[Any]], unit: TreeUnit[Any]) -> None:
    """Put a unit whose weight has risen before all lighter ones."""
    index = leaf.index(unit)
    while index and leaf[index - 1].weight < unit.weight:
        leaf[index] = leaf[index - 1]
        index -= 1
    leaf[index] = unit


def _rank(unit: TreeUnit[Any]) -> int:
    return -unit.weight


def _hash(host: str) -> int:
    """60 bits of the MD5 of a name; the tree uses four per level, the lowest first."""
    return _from_bytes(md5(host.encode(), usedforsecurity=False).digest()[:8], "little")
