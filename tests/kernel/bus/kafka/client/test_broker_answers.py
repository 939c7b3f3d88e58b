"""The broker's answers are cut out of what comes, whatever the pieces."""

from __future__ import annotations

import asyncio
import random
import struct
from typing import Any

import pytest
from aiokafka.conn import CloseReason
from nephila.kernel.bus.kafka.client.answers import Answers


class Connection:
    """What an answer is handed to."""

    def __init__(self) -> None:
        self._reader: Any = object()
        self.got: list[bytes] = []
        self.closed: list[Any] = []

    def _handle_frame(self, answer: bytes) -> None:
        if answer == b"no answer":
            raise ValueError("a size that cannot be")
        self.got.append(answer)
        if answer == b"the last":
            self.close(CloseReason.OUT_OF_SYNC)

    def close(self, reason: Any, exc: Any = None) -> None:
        """Take nothing more."""
        self.closed.append(reason)
        self._reader = None


@pytest.fixture
async def end_offsets():
    """A protocol and its connection."""
    loop = asyncio.get_running_loop()
    protocol, connection = Answers(loop.create_future(), asyncio.StreamReader(loop=loop), loop=loop), Connection()
    protocol.connection = lambda: connection
    return protocol, connection


def framed(*answers: bytes) -> bytes:
    """As they are sent."""
    return b"".join(struct.pack(">i", len(answer)) + answer for answer in answers)


@pytest.mark.parametrize("most", [1, 3, 50, 5000, 10**6])
async def test_every_answer_comes_whole_and_in_order(ends, most):
    """Pieces of any size, answers of none."""
    protocol, connection = ends
    rng = random.Random(most)
    sent = [rng.randbytes(rng.choice([0, 1, 4, 60, 3000])) for _ in range(60)]
    data = framed(*sent)
    while data:
        size = rng.randrange(1, most + 1)
        protocol.data_received(data[:size])
        data = data[size:]
    assert connection.got == sent
    assert not connection.closed


async def test_an_answer_that_cannot_be_read_ends_the_connection(ends, caplog):
    """What follows it is not believed."""
    protocol, connection = ends
    protocol.data_received(framed(b"first", b"no answer", b"third"))
    protocol.data_received(framed(b"fourth"))
    assert connection.got == [b"first"]
    assert connection.closed == [CloseReason.CONNECTION_BROKEN]
    assert "could not be read" in caplog.text


async def test_nothing_is_handed_over_after_the_connection_was_closed(ends):
    """It closes itself when numbers do not match, in the middle of what came."""
    protocol, connection = ends
    protocol.data_received(framed(b"the last", b"too late"))
    protocol.data_received(framed(b"much too late"))
    assert connection.got == [b"the last"]
    assert connection.closed == [CloseReason.OUT_OF_SYNC]
