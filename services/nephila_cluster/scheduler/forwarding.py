"""Messages that a partition gets for URLs of another one: they were sent by the layout before a split.

They are published on the partition of their URL, and acked when the broker has them there. Seeds and links go on one by
one in the admission of URLs. A message may be forwarded several times, and never back: layouts only grow.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import msgspec
from nephila.kernel.bus.contract import Bus, Delivery, Receipt
from nephila.kernel.messages import FetchOutcome, Outlinks, Receipts
from nephila.kernel.messages import Receipt as Durable
from nephila.kernel.topics import OUTCOMES, OUTLINKS, RECEIPTS, Topic
from nephila.scheduler.partition.owner import PartitionOwner


class Forwarding:
    """Checks deliveries before their partition takes them. O(URLs of the message)."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self.forwarded = 0
        """Messages, or parts of them, published again."""

    def outcome(self, owner: PartitionOwner, delivery: Delivery) -> bool:
        """Whether the outcome is of another partition, and was forwarded."""
        outcome: FetchOutcome = delivery.message
        if not owner.frontier.is_other_partition(outcome.url_key):
            return False
        self._publish(OUTCOMES, owner, outcome.url_key, outcome).add_done_callback(delivery.ack)
        return True

    def outlinks(self, owner: PartitionOwner, delivery: Delivery) -> bool:
        """Whether no link is of this partition, or the next pages of a list are of another one, and all were forwarded.
        Single links of other partitions are forwarded as seeds."""
        links: Outlinks = delivery.message
        is_other = owner.frontier.is_other_partition
        if links.next_pages is not None and links.next_pages.fingerprints:
            first = links.next_pages.fingerprints[:16]
            if not is_other(first):
                return False
        else:
            first = links.fingerprints[:16]
            if not first or not is_other(first) or not _all_other(owner, links.fingerprints):
                return False
        self._publish(OUTLINKS, owner, first, links).add_done_callback(delivery.ack)
        return True

    def receipts(self, owner: PartitionOwner, delivery: Delivery, take: Callable[[Delivery], None]) -> None:
        """Forward the receipts of other partitions; `take` gets a delivery of the others."""
        batch: Receipts = delivery.message
        layout = owner.layout
        if not any(owner.frontier.is_other_partition(receipt.url_key) for receipt in batch.receipts):
            take(delivery)
            return
        parts: dict[int, list[Durable]] = defaultdict(list)
        for receipt in batch.receipts:
            parts[layout.of(receipt.url_key)].append(receipt)
        acks = Receipt(len(parts))
        acks.add_done_callback(delivery.ack)
        for number, part in parts.items():
            message = msgspec.structs.replace(batch, receipts=part)
            if number == owner.number:
                take(Delivery(message, number, acks.resolve_one, delivery.attempts))
            else:
                self.forwarded += 1
                self._bus.publish(RECEIPTS, number, message).add_done_callback(acks.resolve_one)

    def _publish(self, topic: Topic, owner: PartitionOwner, url_key: bytes, message: object) -> Receipt:
        self.forwarded += 1
        return self._bus.publish(topic, owner.layout.of(url_key), message)


def _all_other(owner: PartitionOwner, fingerprints: bytes) -> bool:
    return all(number != owner.number for number in owner.layout.of_many(fingerprints))
