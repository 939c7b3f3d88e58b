"""Since when does the broker answer this program without a gap? Pure, but for `watch_contact`.

While the broker is away nobody can report: a member or a scheduler is silent only for the time in which the broker
answered. A consumer that reads no group always has a request at the broker, which is answered at least every
`compacted.WAIT_S`; a longer gap is an absence.
"""

from __future__ import annotations

import math
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka.protocol.fetch import FetchRequest
from nephila.kernel.runtime.clock import Clock


class BrokerContact:
    """The answers of the broker to one consumer. Times are monotonic. O(1)."""

    def __init__(self, gap_s: float) -> None:
        """`gap_s`: the broker is away when no answer has come for so long."""
        self._gap_s = gap_s
        self._last = -math.inf
        self._since = math.inf

    def on_answer(self, now: float) -> None:
        """The broker has answered without an error."""
        if now > self._last + self._gap_s:
            self._since = now
        self._last = now

    def since(self, now: float) -> float:
        """The first answer after the last gap; `now` while the broker is away."""
        return self._since if now <= self._last + self._gap_s else now


def watch_contact(consumer: AIOKafkaConsumer, clock: Clock, contact: BrokerContact) -> None:
    """Note the answers to the fetch requests of a consumer."""
    send = consumer._client.send

    async def watching(node_id: int, request: Any, **options: Any) -> Any:
        answer = await send(node_id, request, **options)
        if not any(code for _, partitions in answer.topics for _, code, *_ in partitions):
            contact.on_answer(clock.monotonic())
        return answer

    def sending(node_id: int, request: Any, **options: Any) -> Any:
        return (watching if isinstance(request, FetchRequest) else send)(node_id, request, **options)

    consumer._client.send = sending
