"""A queued URL as one bytes object: fingerprint, counters, context, URL.

The host store keeps the bytes and reads nothing beyond the fingerprint. Ten million objects with attributes would not
fit in memory beside anything else. A URL without a context costs no byte for it.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final, NamedTuple, cast, get_args, get_type_hints

import msgspec

from nephila.kernel.messages import Context, QueuedUrl, Render, UrlState
from nephila.kernel.pages.requisites import level_of
from nephila.kernel.runtime.errors import PermanentError

SEED: Final = 1
_HAS_CONTEXT: Final = 2
RENDER_SHIFT: Final = 2
"""Bits 2 and 3 of the flags hold the URL's `Render`."""
_RENDERINGS: Final = tuple(Render)
"""By number: a call of the enum costs six times as much."""
MAX_CONTEXT_BYTES: Final = 16 * 1024
"""Limit of a packed context."""
RECORD_ONLY, TOP_OF_PAGE, TOP_OF_LEVEL, TOO_MANY, TOO_LONG = 251, 252, 253, 254, 255
"""Values of `hops` of a URL that is not fetched: a link that is recorded, a link beyond those that are taken of its
page or of its level, a sitemap of a host with too many, the end of a chain of sitemaps that is too long."""

_make = tuple.__new__
"""Half the cost of the constructor of a named tuple."""
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Context).decode
_decode_rows = msgspec.msgpack.Decoder(list[QueuedUrl]).decode
_NO_BYTES: Final = msgspec.Raw(b"")
_NOTHING: Final = Context()


class Entry(NamedTuple):
    """A queued URL, unpacked: the one table of its fields. Those with a format of `struct` are packed in this order.
    Log, snapshots and messages between partitions have the packed form."""

    url_key: Annotated[bytes, "16s"]
    depth: Annotated[int, "I"] = 0
    fetch_no: Annotated[int, "I"] = 1
    attempts: Annotated[int, "H"] = 0
    """Tries already made of fetch `fetch_no`."""
    hops: Annotated[int, "B"] = 0
    flags: Annotated[int, "B"] = 0
    """SEED and the rendering."""
    priority: Annotated[int, "B"] = 0
    url: str = ""
    context: bytes = b""
    """As `pack_context` made it."""

    @property
    def render(self) -> Render:
        """Rendering of this URL; UNSPECIFIED: the value of the job."""
        return _RENDERINGS[self.flags >> RENDER_SHIFT & 3]


_FORMATS: Final = [get_args(hint)[1] for hint in get_type_hints(Entry, include_extras=True).values() if get_args(hint)]
_PACK: Final = struct.Struct("<" + "".join(_FORMATS))
_HEAD: Final = _PACK.size
_PACKED: Final = len(_FORMATS)
_FLAGS: Final = Entry._fields.index("flags")
_FLAGS_AT: Final = struct.calcsize("<" + "".join(_FORMATS[:_FLAGS]))
_CONTEXT_HEAD: Final = struct.Struct("<H")
packed_fields: Final = _PACK.unpack_from
"""The fields of a packed entry in the order of `Entry`, without URL and context: a restart reads those of each URL."""


def pack_context(context: Context | None) -> bytes:
    """The packed form of a context; empty when no field is set. Raises `PermanentError` when it is too large."""
    if context is None or context == _NOTHING:
        return b""
    packed: bytes = _encode(context)
    if len(packed) > MAX_CONTEXT_BYTES:
        raise PermanentError(f"a context has at most {MAX_CONTEXT_BYTES:,} bytes, not {len(packed):,}")
    return packed


def unpack_context(packed: bytes) -> Context | None:
    return _decode(packed) if packed else None


def is_requisite(packed: bytes) -> bool:
    """Whether the URL of this packed context is a requisite."""
    return bool(packed) and level_of(_decode(packed)) > 0


def entry_flags(seed: bool, render: Render = Render.UNSPECIFIED) -> int:
    return (SEED if seed else 0) | render << RENDER_SHIFT


def pack(entry: Entry) -> bytes:
    """One queued URL; counters are clamped to their fields."""
    return pack_fields(entry.url.encode(), entry.context, *entry[:_PACKED])


def pack_fields(url: bytes, context: bytes, *fields: Any) -> bytes:
    """`pack` without an entry, for the links of a page; `fields`: the packed ones, in the order of `Entry`."""
    if context:
        fields = *fields[:_FLAGS], fields[_FLAGS] | _HAS_CONTEXT, *fields[_FLAGS + 1 :]
        url = _CONTEXT_HEAD.pack(len(context)) + context + url
    try:
        return _PACK.pack(*fields) + url
    except struct.error:
        return _PACK.pack(*_clamped(fields)) + url


def _clamped(fields: Sequence[Any]) -> Iterator[Any]:
    for name, code, value in zip(Entry._fields, _FORMATS, fields, strict=False):
        yield min(value, (1 << 8 * struct.calcsize(code)) - 1) if name in ("depth", "attempts", "hops") else value


def unpack(packed: bytes) -> Entry:
    if packed[_FLAGS_AT] & _HAS_CONTEXT:
        start = _HEAD + _CONTEXT_HEAD.size
        end = start + _CONTEXT_HEAD.unpack_from(packed, _HEAD)[0]
        fields = list(_PACK.unpack_from(packed))
        fields[_FLAGS] &= ~_HAS_CONTEXT
        return _make(Entry, (*fields, packed[end:].decode(), packed[start:end]))
    return _make(Entry, (*_PACK.unpack_from(packed), packed[_HEAD:].decode(), b""))


def entry_of(state: UrlState) -> Entry:
    """The entry of a URL that was fetched before."""
    flags, context = entry_flags(state.seed, state.render), pack_context(state.context)
    return Entry(state.url_key, state.depth, state.fetch_no, flags=flags, url=state.url, context=context)


def fill(state: UrlState, entry: Entry) -> UrlState:
    """Give a state what an entry has of the URL; the number of its last fetch stays."""
    state.url_key, state.url, state.depth, state.seed = entry.url_key, entry.url, entry.depth, bool(entry.flags & SEED)
    state.context, state.render = unpack_context(entry.context), entry.render
    return state


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
