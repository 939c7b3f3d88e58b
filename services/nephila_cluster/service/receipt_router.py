"""The bus of a storage: receipts are published on the partitions of their URLs.

Records of several partitions travel in one lane, so the partition of a delivery says nothing of its URL.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import msgspec
from nephila.kernel.bus.contract import Receipt, all_of
from nephila.kernel.bus.wrapper import BusWrapper, Outlet
from nephila.kernel.layout import Layout
from nephila.kernel.messages import Receipt as Durable
from nephila.kernel.topics import RECEIPTS, Topic


class ReceiptRouter(BusWrapper):
    """Splits receipts by partition. O(receipts)."""

    def __init__(self, bus: Outlet, layout: Callable[[], Layout]) -> None:
        """`layout`: the present one."""
        super().__init__(bus)
        self._layout = layout

    def publish(self, topic: Topic, partition: int, message: Any) -> Receipt:
        if topic is not RECEIPTS:
            return super().publish(topic, partition, message)
        layout = self._layout()
        parts: dict[int, list[Durable]] = defaultdict(list)
        for receipt in message.receipts:
            parts[layout.of(receipt.url_key)].append(receipt)
        return all_of(
            [
                self._bus.publish(RECEIPTS, number, msgspec.structs.replace(message, receipts=part))
                for number, part in parts.items()
            ]
        )
