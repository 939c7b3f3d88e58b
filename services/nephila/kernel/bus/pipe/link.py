"""One end of a pipe between two buses: what one bus publishes on some topics is published on the other.

A sent message is acked when the other bus has resolved its receipt, so `ack_after` means the same across processes.
Invariants: messages arrive in the order in which they were sent; a receipt resolves only by the other end's ack.
Messages of one turn of the loop are one write.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from nephila.kernel.bus.contract import Bus, Delivery, Receipt
from nephila.kernel.bus.pipe.protocol import (
    ACKS,
    CONTROL,
    DECODE,
    Control,
    FrameWriter,
    Reader,
    decode_acks,
    decode_control,
)
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.topics import TOPICS, Topic

FRAME_BYTES = 256 << 10
"""A frame of this size is written at once, so that the other end can start on it."""
UNBOUNDED = 1 << 30
"""Credit of forwarded messages: the requests in flight bound them, and a message must never wait for one that depends
on it."""

_TOPICS = len(TOPICS)

Take = Callable[[Topic, int, Any], Receipt]


class Channel:
    """`write` sends bytes in order; `soon` calls back later in this turn of the loop, or after it."""

    def __init__(
        self,
        bus: Bus,
        write: Callable[[bytearray], None],
        soon: Callable[[Callable[[], None]], None],
        on_control: Callable[[Any], None],
        take: Take | None = None,
        later: Callable[[Callable[[], None]], None] | None = None,
    ) -> None:
        """`take` gets arriving messages in place of the bus' `publish`. `later` calls back for messages and acks, in
        place of `soon`: more of them are one write. It is `soon` by default."""
        self._bus = bus
        self._write = write
        self._soon = soon
        self._later = later or soon
        self._on_control = on_control
        self._take: Take = take or bus.publish
        self._frame = FrameWriter()
        self._reader = Reader()
        self._pending: dict[int, Receipt] = {}
        self._number = 0
        self._due = False
        self._open = True

    @property
    def pending(self) -> int:
        """Messages without ack."""
        return len(self._pending)

    def forward(self, topic: Topic, group: str) -> None:
        """Send what is published on this topic."""
        self._bus.subscribe(topic, group, lambda delivery: self.deliver(topic, delivery), credits=UNBOUNDED)

    def deliver(self, topic: Topic, delivery: Delivery) -> None:
        """Send the message of a delivery; the delivery is acked when the other end has taken it."""
        receipt = self.send(topic, delivery.partition, delivery.message)
        delivery.message = None  # the other process has it now
        receipt.add_done_callback(delivery.ack)

    def send(self, topic: Topic, partition: int, message: Any) -> Receipt:
        """Publish a message on the other bus. On a closed link nothing is sent, and the receipt never resolves."""
        receipt = Receipt()
        if self._open:
            self._number += 1
            self._frame.message(topic, self._number, partition, message)
            self._pending[self._number] = receipt
            self._flush_soon()
        return receipt

    def send_control(self, control: Control) -> None:
        """Send a control message, after everything sent before."""
        if self._open:
            self._frame.control(control)
            self._soon(self.flush)

    def flush(self) -> None:
        """Write the collected frames."""
        self._due = False
        if self._open and len(self._frame):
            self._write(self._frame.take())

    def receive(self, data: bytes) -> None:
        """Bytes of the other end. Raises `ValueError` for bytes that are not of this protocol."""
        take, acked = self._take, self._acked
        for kind, number, partition, body in self._reader.feed(data):
            if kind < _TOPICS:
                receipt = take(TOPICS[kind], partition, DECODE[kind](body))
                receipt.add_done_callback(partial(acked, number))
            elif kind == ACKS:
                pending = self._pending
                for ended in decode_acks(body):
                    pending.pop(ended).resolve_one()
            elif kind == CONTROL:
                self._on_control(decode_control(body))
            else:
                raise ValueError(f"an item of kind {kind}")

    def close(self) -> None:
        """Send nothing more; pending messages stay pending."""
        self._open = False

    def _acked(self, number: int) -> None:
        if self._open:
            self._frame.ack(number)
            if not self._due:
                self._flush_soon()

    def _flush_soon(self) -> None:
        if len(self._frame) >= FRAME_BYTES:
            self.flush()
        elif not self._due:
            self._due = True
            self._later(self.flush)


def later(clock: Clock, seconds: float) -> Callable[[Callable[[], None]], None]:
    """Calls back after so many seconds."""
    return lambda callback: _call(clock, seconds, callback)


def _call(clock: Clock, seconds: float, callback: Callable[[], None]) -> None:
    clock.call_at(clock.monotonic() + seconds, callback)
