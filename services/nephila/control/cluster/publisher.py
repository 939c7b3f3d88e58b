"""Publishing for a person who waits: what the broker refuses or does not confirm is one line."""

from __future__ import annotations

import asyncio
from typing import Any

from nephila.kernel.bus.contract import Bus, Receipt, all_of
from nephila.kernel.runtime.errors import NotReadyError, PermanentError, UsageError
from nephila.kernel.topics import Topic

TAKEN_S = 20.0
"""For the broker's answer to what was published."""


class Publisher:
    """Messages to the topics of a system."""

    def __init__(self, bus: Bus, place: str) -> None:
        """`place`: HOST:PORT of the broker, for errors."""
        self._bus = bus
        self._place = place

    def publish(self, topic: Topic, partition: int, message: Any) -> Receipt:
        """Raises `UsageError` for a message that is too large."""
        try:
            return self._bus.publish(topic, partition, message)
        except PermanentError as error:
            raise UsageError(str(error)) from None

    async def taken(self, *receipts: Receipt) -> None:
        """Return when the broker has what was published. Raises `NotReadyError` after TAKEN_S."""
        try:
            await asyncio.wait_for(_done(all_of(receipts)), TAKEN_S)
        except TimeoutError:
            raise NotReadyError(
                f"the broker at {self._place} has not confirmed this for {TAKEN_S:g} s, and may still take it; when it "
                "answers again see nephila jobs list, and repeat the command"
            ) from None


async def _done(receipt: Receipt) -> None:
    await receipt
