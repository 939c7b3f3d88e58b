"""A queued URL as one bytes object: fingerprint, counters, context, URL.

The host store keeps the bytes and reads nothing beyond the fingerprint. Ten million objects with attributes would not
fit in memory beside anything else. A URL without a context costs no byte for it.
"""

import struct
from collections.abc import Iterator, Sequence
from operator import attrgetter, itemgetter
from typing import Annotated, Any, Final, NamedTuple, cast, get_args, get_type_hints

import msgspec

from nephila.kernel.messages import Context, QueuedUrl, Render, Seed, UrlState
from nephila.kernel.requisites import level_of
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
    The log has the fields of the same names; `flags` are `seed` and `render` there."""

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
        yield min(value, (1 << 8 * struct.calcsize(code)) - 1) if name in ("attempts", "hops") else value


def unpack(packed: bytes) -> Entry:
    if packed[_FLAGS_AT] & _HAS_CONTEXT:
        start = _HEAD + _CONTEXT_HEAD.size
        end = start + _CONTEXT_HEAD.unpack_from(packed, _HEAD)[0]
        fields = list(_PACK.unpack_from(packed))
        fields[_FLAGS] &= ~_HAS_CONTEXT
        return _make(Entry, (*fields, packed[end:].decode(), packed[start:end]))
    return _make(Entry, (*_PACK.unpack_from(packed), packed[_HEAD:].decode(), b""))


_GIVEN: Final = ("job", "host", "head", "not_before", "seed", "render", "context")
"""What a message has beside the fields of an entry, or in another form."""
_in_log_order: Final = itemgetter(
    *(
        len(Entry._fields) + _GIVEN.index(name) if name in _GIVEN else Entry._fields.index(name)
        for name in QueuedUrl.__struct_fields__
    )
)


def queued_of(entry: Entry, job: str, host: str, head: bool = True, not_before: float = 0.0) -> QueuedUrl:
    """The logged form of an entry; `not_before` in seconds since 1970 UTC."""
    further = job, host, head, not_before, bool(entry.flags & SEED), entry.render, unpack_context(entry.context)
    return QueuedUrl(*_in_log_order((*entry, *further)))


_SHARED: Final[dict[type, list[str]]] = {
    message: [name for name in Entry._fields if name in message.__struct_fields__ and name not in _GIVEN]
    for message in (QueuedUrl, Seed, UrlState)
}
"""The fields that a message and an entry have in the same form."""


def _reader(message: type) -> tuple[Any, Any]:
    """A getter of the shared fields, and one that puts them, the defaults, flags and context in the order of an
    entry."""
    names = _SHARED[message]
    values = [*names, *(f"default {name}" for name in Entry._fields), "flags", "context"]
    order = [values.index(name if name in values else f"default {name}") for name in Entry._fields]
    return attrgetter(*names), itemgetter(*order)


_READERS: Final = {message: _reader(message) for message in _SHARED}
_DEFAULTS: Final = (b"", *Entry._field_defaults.values())


def entry_of(message: QueuedUrl | Seed | UrlState) -> Entry:
    """The entry of a URL in a message; fields that the message does not have are as in a new entry."""
    get, in_order = _READERS[type(message)]
    flags = (SEED if message.seed else 0) | message.render << RENDER_SHIFT
    entry: Entry = _make(Entry, in_order((*get(message), *_DEFAULTS, flags, pack_context(message.context))))
    return entry


_plain: Final = attrgetter(*("seed" if name == "flags" else name for name in Entry._fields[:_PACKED]))
"""The packed fields of a logged URL without context and rendering: its flags are SEED or 0, as `seed` is."""


def pack_queued(queued: QueuedUrl) -> bytes:
    """The packed form of a logged URL. A restart packs hundreds of thousands: most take a third of the time."""
    if queued.context is None and not queued.render:
        try:
            return _PACK.pack(*_plain(queued)) + queued.url.encode()
        except struct.error:
            pass  # a counter to clamp
    return pack(entry_of(queued))


def fill(seed: Seed, entry: Entry) -> None:
    """Set the fields of a URL for another partition from its entry."""
    for name in _SHARED[Seed]:
        setattr(seed, name, getattr(entry, name))
    seed.seed, seed.render, seed.context = bool(entry.flags & SEED), entry.render, unpack_context(entry.context)


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
