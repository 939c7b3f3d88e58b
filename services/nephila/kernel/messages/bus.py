"""Generated from proto/nephila/v1/bus.proto by tools/protogen.py; do not edit."""

from enum import IntEnum

import msgspec



class FrameEncoding(IntEnum):
    """How the bytes of a frame are written."""

    UNSPECIFIED = 0
    ZSTD = 1


class Frame(msgspec.Struct, array_like=True, gc=False):
    """One message of the topic's type."""

    # The message; empty when it is in the blob store because of its size.
    message: bytes = b""
    encoding: FrameEncoding = FrameEncoding.UNSPECIFIED
    # Name of the object in the blob store, in the encoding above.
    claim: str = ""
    # The partition of the message plus one, where the record is in a lane with another number; else 0.
    partition: int = 0


class Envelope(msgspec.Struct, array_like=True, gc=False):
    """The content of one record of a Kafka topic: messages that were published to one partition within a few
    milliseconds, in order. The record's header "v" is the format's version.
    """

    frames: list[Frame] = msgspec.field(default_factory=list)
