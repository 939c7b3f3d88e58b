"""A queued URL as one bytes object: fingerprint, counters, URL. The host store keeps it as it is and never looks inside
beyond the fingerprint; an object with attributes for each of ten million would not fit beside anything else.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from nephila.kernel.messages import QueuedUrl

_PACK = struct.Struct("<16sIIHBBB")
_HEAD = _PACK.size
SEED = 1
TOO_MANY, TOO_LONG = 254, 255
"""Hops of a sitemap that is not fetched any more: its host has too many, or it ends too long a row of them."""
COPY_SHIFT = 1
"""Above it in flags: which of a URL's copies the entry is (see `importance`)."""


_make = tuple.__new__
"""Half of what the constructor of a named tuple takes."""


class Entry(NamedTuple):
    """A queued URL, unpacked. `attempts` counts tries already made of fetch `fetch_no`; `flags`: SEED and copy."""

    url_key: bytes
    depth: int
    fetch_no: int
    attempts: int
    hops: int
    flags: int
    priority: int
    url: str


def pack(
    url_key: bytes,
    depth: int,
    url: bytes,
    fetch_no: int = 1,
    attempts: int = 0,
    hops: int = 0,
    flags: int = 0,
    priority: int = 0,
) -> bytes:
    """One queued URL; counters are clamped to their fields."""
    return _PACK.pack(url_key, depth, fetch_no, min(attempts, 65535), min(hops, 255), flags, priority) + url


def repack(entry: Entry, attempts: int) -> bytes:
    """The entry as queued again after `attempts` tries of its fetch."""
    url = entry.url.encode()
    return pack(entry.url_key, entry.depth, url, entry.fetch_no, attempts, entry.hops, entry.flags, entry.priority)


def unpack(packed: bytes) -> Entry:
    """The inverse of `pack`."""
    return _make(Entry, (*_PACK.unpack_from(packed), packed[_HEAD:].decode()))


def pack_queued(queued: QueuedUrl, copy: int = 0) -> bytes:
    """The packed form of a logged URL."""
    return pack(
        queued.url_key,
        queued.depth,
        queued.url.encode(),
        queued.fetch_no,
        queued.attempts,
        queued.hops,
        copy << COPY_SHIFT | (SEED if queued.seed else 0),
        queued.priority,
    )


def queued_of(
    entry: Entry, job: str, host: str, attempts: int, head: bool = True, not_before: float = 0.0
) -> QueuedUrl:
    """The logged form of an entry that waits after `attempts` tries; `not_before` in seconds since 1970 UTC."""
    return QueuedUrl(
        job,
        entry.url_key,
        entry.url,
        host,
        entry.depth,
        entry.hops,
        entry.fetch_no,
        attempts,
        head,
        bool(entry.flags & SEED),
        not_before,
        entry.priority,
    )


def host_of(url: str) -> str:
    """Host key of a WHATWG href: its authority without userinfo (a default port is never written in one)."""
    return url[url.index("://") + 3 :].partition("/")[0].rpartition("@")[2]
