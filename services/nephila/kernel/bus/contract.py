"""The bus contract: what `publish`, `receipt`, `ack` and `credits` mean in every deployment.

- `publish()` returns a `Receipt`. It resolves when the bus is responsible for the message: in one program when every
group that reads the topic has acked it, with Kafka when acks=all is confirmed.

- A handler gets one `Delivery` at a time and returns at once; it may continue in a task. It acks when everything
derived from the message is published: `delivery.ack_after(receipts)`. It never waits for a receipt.

- At most `credits` deliveries of a subscription are unacked; further messages wait in the bus.

- After `TemporaryError` the message is delivered again after the error's delay. After any other exception, or after
`max_attempts` deliveries, it is a dead letter: published on `dead`, passed to `on_dead`, then acked.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Mapping
from typing import Any, Protocol

import msgspec

from nephila.kernel.layout import Layout
from nephila.kernel.topics import Topic


class Receipt(msgspec.Struct, eq=False):
    """Resolves when the bus is responsible for a message. Cheaper than a Future: it needs no event loop. A struct: one
    is made for each message, and its `__init__` is no Python code."""

    _waiting: int = 1
    """Parties that have not confirmed."""
    _following: list[Follower] = []

    @property
    def done(self) -> bool:
        return self._waiting <= 0

    def add_done_callback(self, callback: Callable[[], None]) -> None:
        """Call back when resolved; at once if it already is."""
        if self._waiting <= 0:
            callback()
        else:
            self._following.append(callback)

    def resolve_one(self) -> None:
        """One of the awaited parties has confirmed."""
        settle([self])

    def __await__(self) -> Generator[Any, None, None]:
        if self._waiting > 0:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.add_done_callback(lambda: None if future.done() else future.set_result(None))
            yield from future


def all_of(receipts: Iterable[Receipt]) -> Receipt:
    """A receipt that resolves with the last of these."""
    gate = Receipt(0)
    for receipt in receipts:
        if receipt._waiting > 0:
            gate._waiting += 1
            receipt._following.append(gate)
    return gate


class Crediting(Protocol):
    """Who has lent the credit of a delivery."""

    credit: int
    bus: Any
    waiting: Any

    def drain(self) -> None:
        """Deliver waiting messages while there is credit."""


class Delivery(msgspec.Struct, eq=False):
    """One message for one group, to be acked once; a second ack is ignored. `attempts` > 1: an earlier delivery failed
    temporarily. An ack calls `_on_ack`, or returns the credit to `_crediting` and confirms `_receipt`: five are made
    per page, so without a closure."""

    message: Any
    partition: int
    _on_ack: Callable[[], None] | None
    attempts: int = 1
    _crediting: Crediting | None = None
    _receipt: Receipt | None = None

    @property
    def acked(self) -> bool:
        return self._on_ack is None and self._crediting is None

    def ack(self) -> None:
        """The effect of the message is durable, or others are responsible for it."""
        settle([self])

    def ack_after(self, receipts: Iterable[Receipt]) -> None:
        """Ack once all receipts have resolved."""
        first = gate = None
        for receipt in receipts:
            if receipt._waiting <= 0:
                continue
            if first is None:
                first = receipt
                continue
            if gate is None:
                gate = Receipt(1, [self])
                first._following.append(gate)
            gate._waiting += 1
            receipt._following.append(gate)
        if first is None:
            settle([self])
        elif gate is None:
            first._following.append(self)


Follower = Receipt | Delivery | Callable[[], None]
"""What happens when a receipt resolves: one party of another receipt has confirmed, a delivery is acked, or a call."""


def settle(ended: list[Follower]) -> None:
    """Ack these deliveries, confirm one party of these receipts, call the others; then all that follows from it.

    One loop for all: an ack resolves a receipt, which acks a delivery, and so on. A turn of the scheduler, a flush of
    storage ends hundreds of deliveries. The list grows meanwhile and belongs to this call.
    """
    for follower in ended:
        if isinstance(follower, Delivery):
            crediting, receipt = follower._crediting, follower._receipt
            if crediting is None or receipt is None:
                if follower._on_ack is not None:
                    on_ack, follower._on_ack, follower.message = follower._on_ack, None, None
                    on_ack()
                continue
            follower._crediting = follower.message = None
            crediting.credit += 1
            bus = crediting.bus
            bus.unacked -= 1
        elif isinstance(follower, Receipt):
            crediting, receipt = None, follower
        else:
            follower()
            continue
        receipt._waiting -= 1
        following = receipt._following
        if following and not receipt._waiting:
            ended += following
            following.clear()
        if crediting is not None:
            if crediting.waiting:
                crediting.drain()
            if not bus.unacked and bus.on_quiet is not None:
                bus.on_quiet()


Handler = Callable[[Delivery], None]
DeadHandler = Callable[[Any, BaseException], Iterable[Receipt]]


class Bus(Protocol):
    """The transport as a service sees it."""

    def publish(self, topic: Topic, partition: int, message: Any) -> Receipt:
        """Send a message; never blocks. Over a broker it raises `PermanentError` for a message that cannot be sent (a
        lone surrogate, too large without a blob store)."""

    def subscribe(
        self, topic: Topic, group: str, handler: Handler, *, credits: int, on_dead: DeadHandler | None = None
    ) -> None:
        """Read a topic as a group. `on_dead` finishes what a dead letter leaves open; the bus awaits its receipts."""

    def set_credits(self, topic: Topic, group: str, credits: int) -> None:
        """Change the credits of a subscription, at least 1. Messages beyond lower credits wait in the bus; a broker's
        partitions are paused while too many wait."""

    def dead_letter(
        self, topic: Topic, service: str, partition: int, message: Any, error: BaseException | str, attempts: int
    ) -> Receipt:
        """Publish a message as a dead letter, with its bytes where it can be replayed from them."""

    @property
    def unacked(self) -> int:
        """Deliveries that are not acked, waiting ones included; 0: the bus is idle."""


LogRecords = tuple[int, list[tuple[int, Any]]]
"""A partition, and (offset, message) of what was read from it, in order."""


EndOffsets = Any
"""Ends of logs at the time of the call; opaque to the caller."""


class RangeReader(Protocol):
    """The calls of `LogReader` that `newest` needs."""

    async def bounds(self, topic: Topic, partitions: Iterable[int]) -> dict[int, tuple[int, int]]: ...

    def read(self, topic: Topic, ranges: Mapping[int, tuple[int, int]]) -> AsyncIterator[LogRecords]: ...


async def newest(reader: RangeReader, topic: Topic) -> dict[Any, Any]:
    """Key → the newest message of a compacted topic at the call. O(records of the topic). Raises as `read`."""
    state: dict[Any, Any] = {}
    async for _, records in reader.read(topic, await reader.bounds(topic, [0])):
        state.update((getattr(message, topic.key), message) for _, message in records)
    return state


class LogReader(Protocol):
    """A bus over a log offers more: offsets, reading a log again, deleting its beginning."""

    @property
    def member(self) -> str:
        """Stable name of this program among the members of its service."""

    @property
    def answering_since(self) -> float:
        """Monotonic time since when the compacted topics are read without a gap; the present time while they cannot be
        read. Before it, the silence of another member proves nothing."""

    @property
    def layout(self) -> Layout:
        """The partitions of keyed topics now. Messages on partitions of an earlier layout are forwarded."""

    def watch_layout(self, on_change: Callable[[], None]) -> None:
        """Call back when the number of partitions has grown; only before the bus is started."""

    def may_emit(self, group: str) -> bool:
        """False when the broker may have assigned this member's partitions to others."""

    def last_offset(self, topic: Topic, partition: int) -> int:
        """Offset of the last record of the partition that the broker took from this program; -1: none. When a receipt
        has resolved, its message is at or below this offset."""

    def lanes(self, topic: Topic, partitions: Iterable[int]) -> dict[int, int]:
        """Partition → its lane: partitions of one lane have the same offsets, and are read together."""

    async def bounds(self, topic: Topic, partitions: Iterable[int]) -> dict[int, tuple[int, int]]:
        """Partition → (offset of the oldest record, offset of the next record). Raises `TemporaryError`."""

    def read(self, topic: Topic, ranges: Mapping[int, tuple[int, int]]) -> AsyncIterator[LogRecords]:
        """All records from the first offset of each pair up to, and without, the second; of a compacted topic those
        that are left. Raises `TemporaryError`, and `UserError` for an unreadable record."""

    async def end_offsets(self, topics: Iterable[Topic]) -> EndOffsets:
        """Present ends of all partitions of these topics. Raises `TemporaryError`."""

    async def has_read_to(self, group: str, ends: EndOffsets) -> bool:
        """Whether the members of a group together have processed everything before these ends. Raises
        `TemporaryError`."""

    async def read_up_to(self, group: str, topic: Topic, ends: Mapping[int, int]) -> frozenset[int]:
        """Of these partitions with offsets, those of which a group, in any program, has read everything before the
        offset. Raises `TemporaryError`."""

    async def committed(self, group: str, topic: Topic, partitions: Iterable[int]) -> dict[int, int]:
        """Partition → offset up to which a group, in any program, has processed it; without those of which it has
        committed nothing. Raises `TemporaryError`."""

    async def delete_before(self, topic: Topic, offsets: Mapping[int, int]) -> None:
        """Let the broker delete records below these offsets. Raises `TemporaryError`."""


class Beat(Protocol):
    """The common instants at which the members of a system write and read, where no host waits."""

    def set_least_delay(self, delay_s: float) -> None:
        """The least delay between two fetches of a host has changed; 0 without jobs."""

    @property
    def lead_s(self) -> float:
        """How long before its dial a request may be published; 0 without a beat."""

    def way_s(self, wait_s: float) -> float:
        """Seconds for which the messages of a fetch are on their way: its request, published now for a dial `wait_s`
        from now or later, and its outcome, on average. 0 without a beat."""

    def next(self, when: float) -> float:
        """The first instant at or after this one (monotonic) at which hosts are leased; `when` without a beat."""


class LogBus(Bus, LogReader, Protocol):
    """A bus over a log, with all that it offers."""

    @property
    def beat(self) -> Beat:
        """The beat of this member."""

    def set_patient(self, group: str, patient: bool) -> None:
        """State whether no host waits for the messages of a group at present: they may be read in larger batches."""
