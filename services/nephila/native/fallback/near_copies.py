"""Simhash of a text, and the index of simhashes, as in the core; the index compares with every entry."""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import Final

_SHINGLE: Final = 3
_LEAST_TOKENS: Final = 16
_K1: Final = 0x9E3779B97F4A7C15
_K2: Final = 0xC2B2AE3D27D4EB4F
_K3: Final = 0x165667B19E3779F9
_ALL: Final = (1 << 64) - 1
_SINGLE: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fff\u3040-\ua4cf\uf900-\ufaff\uff66-\uff9f"
    "\U0001b000-\U0001b2ff\U00020000-\U0003ffff"
)
_SEPARATORS: Final = (
    "\u0000-\u002f\u003a-\u0040\u005b-\u0060\u007b-\u00bf\u2000-\u2bff\u3000-\u303f\ue000-\uf8ff\ufe00-\ufe6f\ufeff"
    "\uff00-\uff0f\uff1a-\uff20\ufff0-\uffff"
)
_TOKEN: Final = re.compile(f"[{_SINGLE}]|[^{_SINGLE}{_SEPARATORS}]+")
_IS_SINGLE: Final = re.compile(f"[{_SINGLE}]")
_LOWER: Final = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_MOST: Final = 3


def simhash(text: bytes) -> int:
    """Simhash of UTF-8 text; 0 for a text of fewer than 16 tokens. O(n)."""
    tokens = [_token(word) for word in _TOKEN.findall(text.decode("utf-8", "replace").translate(_LOWER))]
    if len(tokens) < _LEAST_TOKENS:
        return 0
    counts = [0] * 64
    shingles = 0
    for first, second, third in zip(tokens, tokens[1:], tokens[2:], strict=False):
        shingles += 1
        hash = _mixed((first * _K3 & _ALL) ^ _rotated(second, 23) ^ third)
        for bit in range(64):
            counts[bit] += hash >> bit & 1
    return sum(1 << bit for bit in range(64) if counts[bit] * 2 > shingles)


def _token(token: str) -> int:
    if _IS_SINGLE.match(token):
        return _chained(0, ord(token) << 32)
    data, hash = token.encode(), 0
    whole = len(data) - len(data) % 8
    for at in range(0, whole, 8):
        hash = _chained(hash, int.from_bytes(data[at : at + 8], "big"))
    return _chained(_chained(hash, int.from_bytes(data[whole:], "big")), len(data))


def _chained(hash: int, part: int) -> int:
    return _rotated((hash ^ part) * _K1 & _ALL, 31)


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _ALL


def _mixed(hash: int) -> int:
    hash ^= hash >> 32
    hash = hash * _K1 & _ALL
    hash ^= hash >> 29
    hash = hash * _K2 & _ALL
    return hash ^ hash >> 32


class NearCopyIndex:
    """Simhashes of pages, at most `entries`; the oldest leaves. A look-up is O(entries)."""

    def __init__(self, entries: int) -> None:
        if not 0 < entries <= 1 << 31:
            raise ValueError(f"entries must be 1 to {1 << 31}, not {entries}")
        self._entries = entries
        self._found: OrderedDict[tuple[int, int], None] = OrderedDict()

    def add(self, simhash: int, page: int) -> None:
        """Add the simhash of a page; `page`: the top 20 bits of its fingerprint. An equal entry becomes the newest."""
        self._found.pop((simhash, page), None)
        self._found[simhash, page] = None
        if len(self._found) > self._entries:
            self._found.popitem(last=False)

    def near(self, simhash: int, distance: int) -> list[tuple[int, int]]:
        """(distance, page) of entries within `distance` bits, nearest first; ValueError above 3."""
        if distance > _MOST:
            raise ValueError(f"the distance is at most {_MOST}, not {distance}")
        nearest: dict[int, int] = {}
        for away, page in sorted(((entry ^ simhash).bit_count(), page) for entry, page in self._found):
            if away <= distance:
                nearest.setdefault(page, away)
        return [(away, page) for page, away in nearest.items()]

    def __len__(self) -> int:
        return len(self._found)

    @property
    def nbytes(self) -> int:
        """Memory in bytes, about."""
        return len(self._found) * 200
