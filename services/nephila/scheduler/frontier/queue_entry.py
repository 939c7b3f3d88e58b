"""A queued URL as one bytes object: fingerprint, counters, context, URL.

The host store keeps the bytes and reads nothing beyond the fingerprint. Ten million objects with attributes would not
fit in memory beside anything else. A URL without a context costs no byte for it.
"""

from __future__ import annotations

import struct
from typing import Any, Final, NamedTuple, cast

import msgspec

from nephila.kernel.messages import Context, QueuedUrl, Render
from nephila.kernel.requisites import level_of
from nephila.kernel.runtime.errors import PermanentError

_PACK: Final = struct.Struct("<16sIIHBBB")
_HEAD: Final = _PACK.size
_FLAGS_AT: Final = 27
_CONTEXT_HEAD: Final = struct.Struct("<H")
SEED: Final = 1
_HAS_CONTEXT: Final = 2
RENDER_SHIFT: Final = 2
"""Bits 2 and 3 of the flags hold the URL's `Render`."""
_KEPT_FLAGS: Final = SEED | 3 << RENDER_SHIFT
MAX_CONTEXT_BYTES: Final = 16 * 1024
"""Limit of a packed context."""
TOO_MANY, TOO_LONG = 254, 255
"""Values of `hops` of a sitemap that is not fetched: its host has too many, or its chain of sitemaps is too long."""

_make = tuple.__new__
"""Half the cost of the constructor of a named tuple."""
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Context).decode
_decode_rows = msgspec.msgpack.Decoder(list[QueuedUrl]).decode
_NO_BYTES: Final = msgspec.Raw(b"")
_NOTHING: Final = Context()


class Entry(NamedTuple):
    """A queued URL, unpacked. `attempts` counts the tries already made of fetch `fetch_no`."""

    url_key: bytes
    depth: int
    fetch_no: int
    attempts: int
    hops: int
    flags: int
    """SEED and the rendering."""
    priority: int
    url: str
    context: bytes = b""
    """As `pack_context` made it."""

    @property
    def render(self) -> Render:
        """Rendering of this URL; UNSPECIFIED: the value of the job."""
        return Render(self.flags >> RENDER_SHIFT & 3)


def pack_context(context: Context | None) -> bytes:
    """The packed form of a context; empty when no field is set. Raises `PermanentError` when it is too large."""
    if context is None or context == _NOTHING:
        return b""
    packed: bytes = _encode(context)
    if len(packed) > MAX_CONTEXT_BYTES:
        raise PermanentError(f"a context has at most {MAX_CONTEXT_BYTES:,} bytes, not {len(packed):,}")
    return packed


def unpack_context(packed: bytes) -> Context | None:
    """The inverse of `pack_context`."""
    return _decode(packed) if packed else None


def is_requisite(packed: bytes) -> bool:
    """Whether the URL of this packed context is a requisite."""
    return bool(packed) and level_of(_decode(packed)) > 0


def entry_flags(seed: bool, render: Render = Render.UNSPECIFIED) -> int:
    """The flags of an entry."""
    return (SEED if seed else 0) | render << RENDER_SHIFT


def pack(
    url_key: bytes,
    depth: int,
    url: bytes,
    fetch_no: int = 1,
    attempts: int = 0,
    hops: int = 0,
    flags: int = 0,
    priority: int = 0,
    context: bytes = b"",
) -> bytes:
    """One queued URL; counters are clamped to their fields."""
    if context:
        flags |= _HAS_CONTEXT
        url = _CONTEXT_HEAD.pack(len(context)) + context + url
    return _PACK.pack(url_key, depth, fetch_no, min(attempts, 65535), min(hops, 255), flags, priority) + url


def repack(entry: Entry, attempts: int) -> bytes:
    """The entry as queued again after `attempts` tries of its fetch."""
    url = entry.url.encode()
    flags = entry.flags & _KEPT_FLAGS
    return pack(
        entry.url_key, entry.depth, url, entry.fetch_no, attempts, entry.hops, flags, entry.priority, entry.context
    )


def unpack(packed: bytes) -> Entry:
    """The inverse of `pack`."""
    if packed[_FLAGS_AT] & _HAS_CONTEXT:
        start = _HEAD + _CONTEXT_HEAD.size
        end = start + _CONTEXT_HEAD.unpack_from(packed, _HEAD)[0]
        return _make(Entry, (*_PACK.unpack_from(packed), packed[end:].decode(), packed[start:end]))
    return _make(Entry, (*_PACK.unpack_from(packed), packed[_HEAD:].decode(), b""))


def pack_queued(queued: QueuedUrl) -> bytes:
    """The packed form of a logged URL."""
    return pack(
        queued.url_key,
        queued.depth,
        queued.url.encode(),
        queued.fetch_no,
        queued.attempts,
        queued.hops,
        entry_flags(queued.seed, queued.render),
        queued.priority,
        pack_context(queued.context),
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
        unpack_context(entry.context),
        entry.render,
    )


def packed_rows(rows: bytes, count: int) -> list[QueuedUrl]:
    """Encoded rows for a list of `QueuedUrl` that is only encoded: as many items as rows, the first holds all bytes."""
    items: list[Any] = [_NO_BYTES] * count
    items[0] = msgspec.Raw(rows)
    return cast(list[QueuedUrl], items)


def unpacked_rows(queued: list[QueuedUrl]) -> list[QueuedUrl]:
    """The structs of a list that may have `packed_rows`."""
    return _decode_rows(_encode(queued))


def host_of(url: str) -> str:
    """Host key of a WHATWG href: its authority without userinfo (a default port is never written in one)."""
    return url[url.index("://") + 3 :].partition("/")[0].rpartition("@")[2]
