"""What goes over the pipe between two processes of one program: items one after the other, in the order they were put.

An item is a head (what it is, its number, partition, length) and a body: a message of a topic in MessagePack, the
numbers of messages that were acked, or a control word. `Frame` collects items until they are written in one go;
`Reader` takes bytes in pieces of any size and gives whole items. Invariant: order is kept, nothing is skipped. Both
ends are one version of one program on one machine: nothing here is a public format, byte order is the machine's.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable
from typing import Any, Union

import msgspec

from nephila.kernel.topics import TOPICS, Topic

HEAD = struct.Struct("=BQHI")
"""Kind (index into the topics, or one of the two below), number, partition, length of the body in bytes."""
_NO_HEAD = bytes(HEAD.size)
ACKS, CONTROL = 254, 255
NUMBERS = {topic: number for number, topic in enumerate(TOPICS)}


class _Control(msgspec.Struct, array_like=True, tag=True):
    """A control control: what the two ends say to each other, not from service to service."""


class Settings(_Control):
    """Main → worker, first of all: the configuration of its services, each as MessagePack."""

    downloader: bytes
    parser: bytes
    pages: bool = False
    """Somebody in the main process reads `pages`: bodies are sent there as well."""


class Ready(_Control):
    """Worker → main: requests may come."""


class Refused(_Control):
    """Worker → main: it cannot begin; one line that says why."""

    text: str
    usage: bool = False
    """The settings make no sense."""


class Drain(_Control):
    """Main → worker: take nothing more, end what is under way within so many seconds."""

    grace_s: float


class Drained(_Control):
    """Worker → main: nothing is under way any more, and all that came of it was sent before this word."""


class Forget(_Control):
    """Main → worker: links of this job that were sent before may be wanted now."""

    job: str


class Ping(_Control):
    """Main → worker: are you there?"""


class Pong(_Control):
    """Worker → main: the loop turns."""


class AddressCheck(_Control):
    """Worker → main: may this attempt begin on an address it was not counted on?"""

    number: int
    job: str
    url_key: bytes
    attempt: int
    address: str


class AddressDecision(_Control):
    """Main → worker: the answer to the question of that number."""

    number: int
    allowed: bool


class RequestSent(_Control):
    """Worker → main: a request has reached a paced address, at that instant of the machine's monotonic clock."""

    address: str
    at: float


Control = Union[  # noqa: UP007
    Settings, Ready, Refused, Drain, Drained, Forget, Ping, Pong, AddressCheck, AddressDecision, RequestSent
]


Item = tuple[int, int, int, memoryview]
"""Kind, number, partition and body of an item, the body not decoded yet."""


class Frame:
    """Items on their way out."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._acks: list[int] = []
        self.ack = self._acks.append
        """Note that the message of this number of the other end was acked; the acks of a frame stand at its end."""
        self._encoder = msgspec.msgpack.Encoder(enc_hook=memoryview)

    def __len__(self) -> int:
        """Bytes collected so far."""
        return len(self._buffer) + 8 * len(self._acks)

    def message(self, topic: Topic, number: int, partition: int, message: Any) -> None:
        """Put a message. Text that UTF-8 cannot hold is replaced: what came so far must not be lost for it."""
        start = len(self._buffer)
        try:
            self._put(NUMBERS[topic], number, partition, message)
        except UnicodeEncodeError:
            del self._buffer[start:]
            self._put(NUMBERS[topic], number, partition, _storable(message))

    def control(self, control: Control) -> None:
        """Put a control word."""
        self._put(CONTROL, 0, 0, control)

    def take(self) -> bytearray:
        """What was collected; the frame is empty then."""
        acks = self._acks
        if acks:
            self._buffer += HEAD.pack(ACKS, 0, 0, 8 * len(acks))
            self._buffer += array("Q", acks).tobytes()
            acks.clear()
        taken, self._buffer = self._buffer, bytearray()
        return taken

    def _put(self, kind: int, number: int, partition: int, body: Any) -> None:
        buffer = self._buffer
        start = len(buffer)
        buffer += _NO_HEAD
        self._encoder.encode_into(body, buffer, -1)
        HEAD.pack_into(buffer, start, kind, number, partition, len(buffer) - start - HEAD.size)


def _storable(message: Any) -> Any:
    """A copy whose texts can be written as UTF-8."""
    texts = {name: getattr(message, name) for name in message.__struct_fields__}
    changed = {name: text.encode("utf-8", "replace").decode() for name, text in texts.items() if isinstance(text, str)}
    return msgspec.structs.replace(message, **changed)


DECODE: tuple[Callable[[Any], Any], ...] = tuple(msgspec.msgpack.Decoder(topic.message).decode for topic in TOPICS)
"""By kind: what makes the message of a body. Raises `msgspec.DecodeError`, a ValueError."""
decode_control: Callable[[Any], Control] = msgspec.msgpack.Decoder(Control).decode


def decode_acks(body: memoryview) -> array[int]:
    """The numbers in the body of an item of acks."""
    numbers = array("Q")
    numbers.frombytes(body)
    return numbers


class Reader:
    """Bytes in, items out."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[Item]:
        """The items that are whole with these bytes, in order."""
        rest, head, size = self._rest, HEAD.unpack_from, HEAD.size
        if rest:
            rest += data
            if len(rest) < size or len(rest) < size + head(rest)[3]:
                return []
            data, self._rest = bytes(rest), bytearray()
        at, end = 0, len(data)
        view = memoryview(data)
        items = []
        while end - at >= size:
            kind, number, partition, length = head(data, at)
            start, stop = at + size, at + size + length
            if stop > end:
                break
            items.append((kind, number, partition, view[start:stop]))
            at = stop
        self._rest += view[at:]
        return items
