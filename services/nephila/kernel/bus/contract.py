"""The bus contract: what `publish`, `receipt`, `ack` and `credits` mean wherever the services run.

- `publish()` returns a `Receipt` that resolves when the bus has taken responsibility for the message (one program:
every group that reads the topic has acked it; Kafka: acks=all). - A handler is called with one `Delivery` at a time
and returns at once; it may go on in a task. It acks when everything derived from the message has been taken:
`delivery.ack_after(receipts)`. It never waits for a receipt. - At most `credits` deliveries of a subscription are
unacked; what is published beyond waits in the bus. - A handler that raises `TemporaryError` sees the message again
after its delay. Any other exception, or more than `max_attempts` deliveries, makes it a dead letter: published on
`dead`, handed to `on_dead`, then acked.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Mapping
from typing import Any, Protocol

from nephila.kernel.topics import Topic


class Receipt:
    """Resolves once responsibility for a published message has been taken. Cheaper than a Future: no loop involved."""

    __slots__ = ("_callbacks", "_waiting")

    def __init__(self, waiting: int = 1) -> None:
        self._waiting = waiting
        self._callbacks: list[Callable[[], None]] | None = None

    @property
    def done(self) -> bool:
        """True once resolved."""
        return self._waiting <= 0

    def add_done_callback(self, callback: Callable[[], None]) -> None:
        """Call back once resolved; at once when it already is."""
        if self._waiting <= 0:
            callback()
        elif self._callbacks is None:
            self._callbacks = [callback]
        else:
            self._callbacks.append(callback)

    def resolve_one(self) -> None:
        """One of the parties waited for has answered."""
        self._waiting -= 1
        if self._waiting == 0 and self._callbacks:
            callbacks, self._callbacks = self._callbacks, None
            for callback in callbacks:
                callback()

    def __await__(self) -> Generator[Any, None, None]:
        if self._waiting > 0:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.add_done_callback(lambda: None if future.done() else future.set_result(None))
            yield from future


def all_of(receipts: Iterable[Receipt]) -> Receipt:
    """One that resolves with the last of these."""
    pending = [receipt for receipt in receipts if receipt._waiting > 0]
    gate = Receipt(len(pending))
    for receipt in pending:
        receipt.add_done_callback(gate.resolve_one)
    return gate


class Delivery:
    """One message handed to one group; acked exactly once (a second ack is ignored). `attempts` above 1: a handler
    has put it off before."""

    __slots__ = ("_on_ack", "attempts", "message", "partition")

    def __init__(self, message: Any, partition: int, on_ack: Callable[[], None], attempts: int = 1) -> None:
        self.message = message
        self.partition = partition
        self.attempts = attempts
        self._on_ack: Callable[[], None] | None = on_ack

    @property
    def acked(self) -> bool:
        """True once acked."""
        return self._on_ack is None

    def ack(self) -> None:
        """The effect of the message is durable or has been taken over by others."""
        on_ack = self._on_ack
        if on_ack is not None:
            self._on_ack = None
            self.message = None
            on_ack()

    def ack_after(self, receipts: Iterable[Receipt]) -> None:
        """Ack once all receipts have resolved."""
        all_of(receipts).add_done_callback(self.ack)


Handler = Callable[[Delivery], None]
DeadHandler = Callable[[Any, BaseException], Iterable[Receipt]]


class Bus(Protocol):
    """What a service sees of the transport."""

    def publish(self, topic: Topic, partition: int, message: Any) -> Receipt:
        """Send a message; never blocks. The receipt resolves when responsibility for it has been taken. Over a broker
        it raises `PermanentError` for what cannot travel (half a character, too large without a blob store)."""

    def subscribe(
        self, topic: Topic, group: str, handler: Handler, *, credits: int, on_dead: DeadHandler | None = None
    ) -> None:
        """Read a topic as a group. `on_dead` ends what a dead letter leaves open; its receipts are waited for."""

    def dead_letter(
        self, topic: Topic, service: str, partition: int, message: Any, error: BaseException | str, attempts: int
    ) -> Receipt:
        """Publish the dead letter of a message, with the message itself where it can be published again from there."""

    @property
    def unacked(self) -> int:
        """Deliveries not acked yet, queued ones included; 0 means the bus is quiet."""


LogRecords = tuple[int, list[tuple[int, Any]]]
"""A partition, and (offset, message) of what was read of it, in order."""


EndOffsets = Any
"""How far logs went when it was asked: the bus' own, for it alone to read."""


class LogReader(Protocol):
    """What a bus with logs has beyond the contract of all buses."""

    @property
    def member(self) -> str:
        """The stable name of this program among the members of its service."""

    def may_emit(self, group: str) -> bool:
        """False when the broker may have given this member's partitions to others in the meantime."""

    def last_offset(self, topic: Topic, partition: int) -> int:
        """Of the record that the broker took last of this partition from here; -1: of none. A receipt's message lies
        at or below it once the receipt has resolved."""

    async def bounds(self, topic: Topic, partitions: Iterable[int]) -> dict[int, tuple[int, int]]:
        """Partition → (offset of the oldest record that is left, offset that the next one will have). Raises
        `TemporaryError`."""

    def read(self, topic: Topic, ranges: Mapping[int, tuple[int, int]]) -> AsyncIterator[LogRecords]:
        """Everything with offsets from the first up to and without the second of each partition's pair. Raises
        `TemporaryError`, and `UserError` for what cannot be read."""

    async def end_offsets(self, topics: Iterable[Topic]) -> EndOffsets:
        """Where all partitions of these topics end by now. Raises `TemporaryError`."""

    async def has_read_to(self, group: str, ends: EndOffsets) -> bool:
        """Whether all members of a group together have dealt with everything before these ends. Raises
        `TemporaryError`."""

    async def fully_read(self, group: str, topic: Topic, partitions: Iterable[int]) -> frozenset[int]:
        """Those partitions of which members of a group, of whichever program, have read all there was when this was
        asked. Raises `TemporaryError`."""

    async def delete_before(self, topic: Topic, offsets: Mapping[int, int]) -> None:
        """Let the broker delete what lies below these offsets. Raises `TemporaryError`."""
