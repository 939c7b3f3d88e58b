"""The broker's answers, cut out of what a connection brings as it comes.

aiokafka reads them from an asyncio stream in a task of its own: each byte is copied three times, an answer wakes the
task twice, and a large one has the socket paused again and again. Here the protocol cuts them itself and hands each
over in the call that brought its end. The stream stays, for the end of a connection is told through it as before.
Invariant: every answer whole, in order, and none after the connection was closed. O(bytes).
"""

from __future__ import annotations

import logging
import struct
import weakref
from typing import Any

import aiokafka.conn
from aiokafka.conn import AIOKafkaConnection, AIOKafkaProtocol, CloseReason

log = logging.getLogger(__name__)

_SIZE = struct.Struct(">i")


class Answers(AIOKafkaProtocol):  # type: ignore[misc]
    """See the module. `connection` is told before the first request is sent."""

    connection: weakref.ref[Any] | None = None

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._parts: list[bytes] = []
        self._have = 0
        self._need = _SIZE.size

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        self._parts.append(data)
        self._have += len(data)
        if self._have < self._need:
            return
        data = b"".join(self._parts) if len(self._parts) > 1 else data
        at, end = 0, len(data)
        while end - at >= _SIZE.size:
            start = at + _SIZE.size
            stop = start + max(_SIZE.unpack_from(data, at)[0], 0)
            if stop > end:
                break
            if not self._handed_over(data[start:stop]):
                self._parts, self._have = [], 0
                return
            at = stop
        self._parts, self._have = [data[at:]] if at < end else [], end - at
        left = end - at >= _SIZE.size
        self._need = _SIZE.size + (_SIZE.unpack_from(data, at)[0] if left else 0)

    def _handed_over(self, answer: bytes) -> bool:
        """False when the connection takes nothing more."""
        connection = self.connection() if self.connection is not None else None
        if connection is None or connection._reader is None:
            return False
        try:
            connection._handle_frame(answer)
        except Exception as error:
            log.exception("an answer of the broker could not be read")
            connection.close(reason=CloseReason.CONNECTION_BROKEN, exc=error)
        return connection._reader is not None


def install() -> None:
    """Once per process, before the first connection; again is no harm."""
    if aiokafka.conn.AIOKafkaProtocol is Answers:
        return
    begin = AIOKafkaConnection._create_reader_task

    def beginning(self: AIOKafkaConnection) -> Any:
        self._protocol.connection = weakref.ref(self)
        return begin(self)

    AIOKafkaConnection._create_reader_task = beginning
    aiokafka.conn.AIOKafkaProtocol = Answers
