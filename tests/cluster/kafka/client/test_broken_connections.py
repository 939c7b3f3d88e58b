"""A connection whose transport is closed already, as after a freeze: an error of Kafka, which is waited out."""

from __future__ import annotations

from typing import Any

import pytest
from aiokafka.conn import AIOKafkaConnection
from aiokafka.errors import KafkaConnectionError
from nephila_cluster.kafka.client.connections import mend

mend()


class Transport:
    """What uvloop says of one that is closed."""

    closed = 0

    def write(self, data: bytes) -> None:
        """Refuse."""
        raise RuntimeError("unable to perform operation on <TCPTransport closed=True>; the handler is closed")

    def close(self) -> None:
        """Once more."""
        self.closed += 1


class Asked:
    """A request that can be written."""

    def prepare(self, versions: Any) -> Asked:
        """Itself."""
        return self

    def build_request_header(self, correlation_id: int, client_id: str) -> Asked:
        """Itself."""
        return self

    def encode(self) -> bytes:
        """A few bytes."""
        return b"what?"


class Reading:
    """The task that reads answers."""

    def done(self) -> bool:
        """It has ended."""
        return True


async def test_a_closed_transport_is_a_broken_connection():
    """The connection is given up and the caller hears it as any other loss of a broker; what else goes wrong stays."""
    connection, writer, lost = AIOKafkaConnection("127.0.0.1", 9), Transport(), []
    connection._writer, connection._reader, connection._read_task = writer, object(), Reading()
    connection._on_close_cb = lambda _, reason: lost.append(reason)
    with pytest.raises(KafkaConnectionError, match="is closed"):
        connection.send(Asked())
    assert writer.closed == 1
    assert len(lost) == 1
    assert not connection.connected()
    with pytest.raises(KafkaConnectionError, match="No connection"):
        connection.send(Asked())


def test_it_is_mended_once():
    """Every bus of a program may ask for it."""
    before = AIOKafkaConnection.send
    mend()
    assert AIOKafkaConnection.send is before
