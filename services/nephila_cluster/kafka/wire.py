"""The wire format: messages as protobuf, batched in envelopes; the content of one Kafka record.

Structs of `kernel.messages` are converted to and from protobuf messages built from their descriptors. Zero fields are
omitted, unknown fields are skipped. An unknown enum value is `UnknownFormat`: it must wait for a newer program.
Invalid bytes raise `PermanentError`. Each type has a format number of its own, in the header `v` of its records: a
reader refuses another number of the type that it reads, so a new release stops only the readers of what changed.
Large messages are zstd frames with a declared size, so that nothing expands beyond `MAX_MESSAGE_BYTES`. Batching and
the claim check are done elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from importlib import resources
from typing import Any

import zstandard
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, EncodeError
from nephila.kernel import messages
from nephila.kernel.messages import Envelope, Frame, FrameEncoding
from nephila.kernel.runtime.errors import PermanentError
from nephila.native import KEY_VERSION

RISES: Mapping[str, int] = {}
"""Message → how often its format number rose: when an older release would misread it, not for new fields. A message
that contains it, and every message for `Envelope` and `Frame`, rises with it."""
MAX_MESSAGE_BYTES: int = 64 << 20
COMPRESS_FROM_BYTES: int = 1024
"""Smaller messages are not compressed."""
ZSTD_LEVEL: int = 1


class UnknownFormat(Exception):
    """The message is in a format that this release does not know."""


Write = Callable[[Any], Any]
Read = Callable[[Any, str], Any]


class Codec:
    """Encodes and decodes one message type. O(size)."""

    def __init__(self, struct: type, proto: Any) -> None:
        self.struct = struct
        self.proto = proto
        self._fields: list[tuple[str, Write | None, Read | None]] = []
        """Name and conversions."""
        self.parts: set[Codec] = set()
        """Codecs of the messages in its fields."""

    def encode(self, message: Any) -> bytes:
        """Raises `PermanentError` for text that protobuf cannot encode, as a lone surrogate."""
        try:
            data: bytes = self.proto(**self.values(message)).SerializeToString()
        except (ValueError, TypeError, EncodeError, UnicodeError) as error:
            raise PermanentError(f"a {self.struct.__name__} cannot be written: {error}") from None
        return data

    def decode(self, data: bytes) -> Any:
        """Raises `PermanentError` or `UnknownFormat`."""
        try:
            proto = self.proto.FromString(data)
        except (DecodeError, UnicodeError) as error:
            raise PermanentError(f"no {self.struct.__name__}: {error}") from None
        return self.build(proto)

    def values(self, message: Any) -> dict[str, Any]:
        """The non-zero fields, as protobuf takes them."""
        fields = {}
        for name, write, _ in self._fields:
            value = getattr(message, name)
            if value:
                fields[name] = write(value) if write is not None else value
        return fields

    def build(self, proto: Any) -> Any:
        """The struct of a protobuf message."""
        return self.struct(
            *[getattr(proto, name) if read is None else read(proto, name) for name, _, read in self._fields]
        )


def _enum_reader(enum: type[IntEnum], repeated: bool) -> Read:
    members = {member.value: member for member in enum}

    def member_of(value: int) -> IntEnum:
        member = members.get(value)
        if member is None:
            raise UnknownFormat(f"{enum.__name__} {value}")
        return member

    if repeated:
        return lambda proto, name: [member_of(value) for value in getattr(proto, name)]
    return lambda proto, name: member_of(getattr(proto, name))


def _message_reader(codec: Codec, repeated: bool) -> Read:
    if repeated:
        return lambda proto, name: [codec.build(item) for item in getattr(proto, name)]
    return lambda proto, name: codec.build(getattr(proto, name)) if proto.HasField(name) else None


def varint(number: int) -> bytes:
    """A number as a protobuf varint (base 128, least significant first)."""
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def _writer(field: FieldDescriptor, codec: Codec | None) -> Write | None:
    repeated = field.is_repeated
    if codec is not None:
        return (lambda items: [codec.values(item) for item in items]) if repeated else codec.values
    if field.type == FieldDescriptor.TYPE_BYTES and not repeated:
        return bytes  # a memoryview within one program
    return None


def _load() -> dict[type, Codec]:
    """A codec for every message, from the generated descriptors."""
    data = resources.files(messages).joinpath("descriptors.binpb").read_bytes()
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(data).file:
        pool.Add(file)
    codecs: dict[str, Codec] = {}

    def codec_of(descriptor: Any) -> Codec:
        if descriptor.full_name not in codecs:
            struct = getattr(messages, descriptor.name)
            codec = codecs[descriptor.full_name] = Codec(struct, message_factory.GetMessageClass(descriptor))
            for field in sorted(descriptor.fields, key=lambda f: f.number):
                inner = codec_of(field.message_type) if field.message_type else None
                read: Any = None
                if inner is not None:
                    read = _message_reader(inner, field.is_repeated)
                    codec.parts.add(inner)
                elif field.enum_type:
                    read = _enum_reader(getattr(messages, field.enum_type.name), field.is_repeated)
                elif field.is_repeated:
                    read = _list
                codec._fields.append((field.name, _writer(field, inner), read))
        return codecs[descriptor.full_name]

    for file in descriptor_pb2.FileDescriptorSet.FromString(data).file:
        for message in file.message_type:
            codec_of(pool.FindMessageTypeByName(f"{file.package}.{message.name}"))
    return {codec.struct: codec for codec in codecs.values()}


def _list(proto: Any, name: str) -> list[Any]:
    return list(getattr(proto, name))


CODECS: dict[type, Codec] = _load()


def format_numbers(rises: Mapping[str, int]) -> dict[type, int]:
    """The format number of each message type: 1, and one more for each rise of the message or of one inside it."""
    around = {CODECS[Envelope], CODECS[Frame]}
    numbers = {}
    for codec in CODECS.values():
        inside, new = set(around), {codec}
        while new:
            inside |= new
            new = {part for one in new for part in one.parts} - inside
        numbers[codec.struct] = 1 + sum(rises.get(one.struct.__name__, 0) for one in inside)
    return numbers


FORMATS: dict[type, int] = format_numbers(RISES)
"""Message type → format number that is written and read."""
_compressor = zstandard.ZstdCompressor(level=ZSTD_LEVEL, write_content_size=True, write_checksum=False)
_decompressor = zstandard.ZstdDecompressor()


def frame_of(struct: type, message: Any) -> Frame:
    """A message as a frame. Raises `PermanentError`."""
    data = CODECS[struct].encode(message)
    if len(data) > MAX_MESSAGE_BYTES:
        raise PermanentError(f"a {struct.__name__} of {len(data)} bytes is too large to travel")
    if len(data) < COMPRESS_FROM_BYTES:
        return Frame(data)
    return Frame(_compressor.compress(data), FrameEncoding.ZSTD)


def message_of(struct: type, frame: Frame) -> Any:
    """The message of a frame with its bytes. Raises `PermanentError` or `UnknownFormat`."""
    data = frame.message
    if frame.encoding is FrameEncoding.ZSTD:
        try:
            size = zstandard.frame_content_size(data)
            if not 0 <= size <= MAX_MESSAGE_BYTES:
                raise PermanentError(f"a frame that declares {size} bytes")
            data = _decompressor.decompress(data, max_output_size=MAX_MESSAGE_BYTES)
        except zstandard.ZstdError as error:
            raise PermanentError(f"no zstd frame: {error}") from None
    return CODECS[struct].decode(data)


_ENVELOPE = CODECS[Envelope]
_FRAME, _MESSAGE, _ENCODING, _CLAIM, _PARTITION = b"\x0a", b"\x0a", b"\x10", b"\x1a", b"\x20"
"""Tags of Envelope.frames and of the fields of a Frame, as in bus.proto."""


def seal(frames: Sequence[Frame]) -> bytes:
    """One record of several frames. Written by hand: copying them into protobuf objects takes three times as long."""
    parts: list[bytes] = []
    for frame in frames:
        fields = [_MESSAGE, varint(len(frame.message)), frame.message] if frame.message else []
        if frame.encoding:
            fields += (_ENCODING, varint(frame.encoding))
        if frame.claim:
            claim = frame.claim.encode()
            fields += (_CLAIM, varint(len(claim)), claim)
        if frame.partition:
            fields += (_PARTITION, varint(frame.partition))
        parts += (_FRAME, varint(sum(map(len, fields))), *fields)
    return b"".join(parts)


def partition_of(frame: Frame, lane: int) -> int:
    """The partition of a message that a record of this lane holds."""
    return frame.partition - 1 if frame.partition else lane


def headers_of(struct: type) -> list[tuple[str, bytes]]:
    """Headers of the records of a message type: its format, and the version of the URL keys in its messages."""
    return [("v", b"%d" % FORMATS[struct]), ("k", _KEYS)]


def unseal(struct: type, data: bytes | None, headers: Sequence[tuple[str, bytes]]) -> list[Frame]:
    """The frames of a record with messages of a type. Raises `UnknownFormat`, or `PermanentError` for invalid bytes:
    those of a foreign program have no headers."""
    numbers = dict(headers)
    here = b"%d" % FORMATS[struct]
    if (version := numbers.get("v", here)) != here:
        raise UnknownFormat(
            f"format {version.decode('ascii', 'replace')} of {struct.__name__}, and this one reads {FORMATS[struct]}"
        )
    frames: list[Frame] = _ENVELOPE.decode(data or b"").frames
    if not frames:
        raise PermanentError("a record without frames")
    if (keys := numbers.get("k", b"none")) != _KEYS:
        raise UnknownFormat(f"URL keys of version {keys.decode('ascii', 'replace')}, not {KEY_VERSION}")
    return frames


_KEYS: bytes = b"%d" % KEY_VERSION
