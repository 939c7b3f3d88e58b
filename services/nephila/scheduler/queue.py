"""The queue of one host for one job: packed URLs, those at the head first, then by depth, then by arrival.

A queued URL is one bytes object (fingerprint, counters, URL), not an object with attributes: a million of them have to
fit into a laptop's memory beside everything else.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from nephila.kernel.messages import QueuedUrl

_PACK = struct.Struct("<16sIIHBB")
_HEAD = _PACK.size
SEED = 1


class Entry(NamedTuple):
    """A queued URL, unpacked. `attempts` counts tries already made of fetch `fetch_no`; `flags` has SEED."""

    url_key: bytes
    depth: int
    fetch_no: int
    attempts: int
    hops: int
    flags: int
    url: str


def pack(url_key: bytes, depth: int, fetch_no: int, attempts: int, hops: int, flags: int, url: bytes) -> bytes:
    """One queued URL; counters are clamped to their fields."""
    return _PACK.pack(url_key, depth, fetch_no, min(attempts, 65535), min(hops, 255), flags) + url


def repack(entry: Entry, attempts: int) -> bytes:
    """The entry as queued again after `attempts` tries of its fetch."""
    url = entry.url.encode()
    return pack(entry.url_key, entry.depth, entry.fetch_no, attempts, entry.hops, entry.flags, url)


def unpack(packed: bytes) -> Entry:
    """The inverse of `pack`."""
    return Entry(*_PACK.unpack_from(packed), packed[_HEAD:].decode())  # type: ignore[call-arg]


def pack_queued(queued: QueuedUrl) -> bytes:
    """The packed form of a logged URL."""
    flags = SEED if queued.seed else 0
    return pack(queued.url_key, queued.depth, queued.fetch_no, queued.attempts, queued.hops, flags, queued.url.encode())


def unpack_queued(packed: bytes, job: str, host: str, head: bool = False, not_before: float = 0.0) -> QueuedUrl:
    """The logged form of a packed URL."""
    e = unpack(packed)
    return QueuedUrl(
        job, e.url_key, e.url, host, e.depth, e.hops, e.fetch_no, e.attempts, head, bool(e.flags & SEED), not_before
    )


def host_of(url: str) -> str:
    """Host key of a WHATWG href: its authority without userinfo (a default port is never written in one)."""
    return url[url.index("://") + 3 :].partition("/")[0].rpartition("@")[2]


class _Fifo:
    """A list read from a cursor: 70 bytes when small, where a deque takes 600; there is one per host and depth."""

    __slots__ = ("_items", "_next")

    def __init__(self) -> None:
        self._items: list[bytes] = []
        self._next = 0

    def __len__(self) -> int:
        return len(self._items) - self._next

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._items[self._next :])

    def push(self, item: bytes) -> None:
        self._items.append(item)

    def peek(self) -> bytes:
        return self._items[self._next]

    def pop(self) -> bytes:
        item = self._items[self._next]
        self._items[self._next] = b""
        self._next += 1
        if self._next >= 64 and self._next * 2 >= len(self._items):
            del self._items[: self._next]
            self._next = 0
        return item


class JobQueue:
    """Breadth-first order within a host: (head, depth, arrival). Push and pop are O(1) amortised."""

    __slots__ = ("_head", "_levels", "_size")

    def __init__(self) -> None:
        self._head: _Fifo | None = None
        self._levels: dict[int, _Fifo] = {}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def push(self, packed: bytes, depth: int, head: bool = False) -> None:
        """Append; `head` puts it before everything but earlier heads."""
        self._size += 1
        if head:
            if self._head is None:
                self._head = _Fifo()
            self._head.push(packed)
            return
        level = self._levels.get(depth)
        if level is None:
            level = self._levels[depth] = _Fifo()
        level.push(packed)

    def _first(self) -> tuple[_Fifo, int]:
        if self._head is not None and len(self._head):
            return self._head, -1
        depth = min(self._levels)
        return self._levels[depth], depth

    def peek(self) -> bytes:
        """The next URL; IndexError when empty."""
        if not self._size:
            raise IndexError("peek at an empty host queue")
        return self._first()[0].peek()

    def pop(self) -> bytes:
        """Take the next URL out; IndexError when empty."""
        if not self._size:
            raise IndexError("pop from an empty host queue")
        level, depth = self._first()
        packed = level.pop()
        self._size -= 1
        if depth >= 0 and not len(level):
            del self._levels[depth]
        return packed

    def items(self) -> Iterator[tuple[bytes, bool]]:
        """(packed, head) in the order in which they would be popped."""
        if self._head is not None:
            yield from ((packed, True) for packed in self._head)
        for depth in sorted(self._levels):
            yield from ((packed, False) for packed in self._levels[depth])

    def check(self) -> None:
        """Raise AssertionError when an invariant does not hold."""
        total = (len(self._head) if self._head is not None else 0) + sum(len(f) for f in self._levels.values())
        assert total == self._size, f"size {self._size} but {total} items"
        assert all(len(f) for f in self._levels.values()), "an empty level was kept"
