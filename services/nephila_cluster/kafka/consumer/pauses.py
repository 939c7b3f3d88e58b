"""Which partitions of a consumer are paused: those that must not be read now.

A member has thousands of partitions and polls ten times a second. After a poll only the partitions that were read are
looked at, and all of them when a topic has become full or half empty, or messages are isolated.
"""

from __future__ import annotations

from collections.abc import Collection

from aiokafka import AIOKafkaConsumer, TopicPartition

from nephila_cluster.kafka.client.consumer import seek_back
from nephila_cluster.kafka.consumer.inbox import Inbox


class Pauses:
    """The pauses of one group's consumer; a new consumer begins with `apply`."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox
        self._gates: tuple[bool, ...] = ()

    def after_poll(self, consumer: AIOKafkaConsumer, read: Collection[TopicPartition]) -> None:
        """Pause and resume after these partitions were read. O(partitions read), O(all) when a gate has changed."""
        if self._inbox.isolation.active or self._inbox.gates() != self._gates:
            self.apply(consumer)
        elif _is_assigned(consumer):
            assigned = consumer.assignment()
            if stop := [tp for tp in read if tp in assigned and not self._inbox.open(tp)]:
                consumer.pause(*stop)

    def resume(self, consumer: AIOKafkaConsumer | None) -> None:
        """Read the records again that waited for their partitions."""
        if (offsets := self._inbox.resume()) and consumer is not None:
            seek_back(consumer, offsets)
        self.apply(consumer)

    def apply(self, consumer: AIOKafkaConsumer | None) -> None:
        """Pause partitions that must not be read now, resume the others; None: the consumer is being replaced.
        O(partitions)."""
        if consumer is None or not _is_assigned(consumer):
            return
        paused, assigned = consumer.paused(), consumer.assignment()
        stop = {tp for tp in assigned if not self._inbox.open(tp)}
        if stop - paused:
            consumer.pause(*(stop - paused))
        if paused - stop:
            consumer.resume(*(paused - stop))
        self._gates = self._inbox.gates()


def _is_assigned(consumer: AIOKafkaConsumer) -> bool:
    state = consumer._subscription
    return state.subscription is not None and not state.reassignment_in_progress
