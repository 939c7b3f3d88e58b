"""Messages that may crash members are delivered one at a time, with nothing else in the member's handlers.

When members crash repeatedly at one committed offset (commit_metadata.py), the records behind it are suspects. While
the isolation is active, the group's other partitions pause. Before each suspect the metadata of its offset says which
message is being probed, so that the next member counts a crash. A poison message becomes a dead letter without being
delivered. Invariants: at most one suspect is delivered at a time; at most one partition's metadata names a probe.
A suspect that neither crashes the member nor is acked within `PROBE_TIMEOUT_S` is slow, not poison: its partition
continues as usual.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from aiokafka import TopicPartition

from nephila.kernel.bus.contract import Receipt
from nephila.kernel.bus.kafka.consumer.commit_metadata import HELD, MAX_CRASHES, CommitMetadata
from nephila.kernel.bus.kafka.consumer.kafka_subscription import KafkaSubscription

log = logging.getLogger(__name__)

MAX_SUSPECTS = 64
"""Records behind a position that are tried: more than a member takes of one partition between two commits. If it was
more, two more ends bring the position nearer."""
PROBE_TIMEOUT_S = 10.0


class PoisonMessage(Exception):
    """What a condemned message is reported with."""


@dataclass(slots=True)
class Suspect:
    """One record that waits to be tried."""

    tp: TopicPartition
    reader: KafkaSubscription
    offset: int
    messages: list[Any]
    receipt: Receipt
    """Of the whole record."""
    begun: int = 0
    """Messages that were handed on."""
    dropped: bool = False


class PoisonIsolation:
    """See the module. `write` stores metadata with a partition's offset, durably; False: the partition is not held any
    more. `quiet` returns when no handler has a message."""

    def __init__(
        self,
        write: Callable[[TopicPartition, CommitMetadata], Awaitable[bool]],
        quiet: Callable[[], Awaitable[None]],
        done: Callable[[TopicPartition], None],
        timeout_s: float = PROBE_TIMEOUT_S,
    ) -> None:
        self._write = write
        self._quiet = quiet
        self._done = done
        self._trial_s = timeout_s
        self._isolated: dict[TopicPartition, tuple[CommitMetadata, int]] = {}
        self._suspects: deque[Suspect] = deque()
        self._changed = asyncio.Event()

    @property
    def active(self) -> bool:
        """Whether anything is tried: the rest pauses."""
        return bool(self._isolated)

    def __contains__(self, tp: TopicPartition) -> bool:
        return tp in self._isolated

    def isolate(self, tp: TopicPartition, metadata: CommitMetadata, start: int, end: int) -> None:
        """What lies at `start` and behind it in the log, up to `end` at most, is tried."""
        self._isolated[tp] = metadata, min(start + MAX_SUSPECTS, end)

    def take(self, suspect: Suspect) -> None:
        """A record of an accused partition; in order."""
        self._suspects.append(suspect)
        self._changed.set()

    def drop(self, partitions: frozenset[int]) -> None:
        """These leave or are gone; what was not handed on comes again elsewhere."""
        self._forget(lambda tp: tp.partition in partitions)

    def release(self, tp: TopicPartition) -> None:
        """What comes next of this one cannot be read: nobody need wait for it."""
        self._forget(lambda other: other == tp)

    def _forget(self, which: Callable[[TopicPartition], bool]) -> None:
        self._isolated = {tp: what for tp, what in self._isolated.items() if not which(tp)}
        for suspect in self._suspects:
            if which(suspect.tp):
                suspect.dropped = True
                suspect.reader.bus.unacked -= len(suspect.messages) - suspect.begun
        self._suspects = deque(suspect for suspect in self._suspects if not suspect.dropped)
        self._changed.set()

    async def run(self) -> None:
        """Try all, until nobody is accused."""
        while self._isolated:
            if not self._suspects:
                self._changed.clear()
                await self._changed.wait()
                continue
            suspect = self._suspects[0]
            await self._quiet()
            if not suspect.dropped and await self._probe(suspect):
                await self._end(suspect)

    async def _end(self, suspect: Suspect) -> None:
        """All its messages have come through, or one takes its time."""
        last = suspect.offset + 1 >= self._isolated[suspect.tp][1] or not suspect.receipt.done
        following = self._suspects[1] if len(self._suspects) > 1 else None
        if last or following is None or following.tp != suspect.tp:
            # Else its metadata would go on saying that it is being tried, and the end of the next suspect, of another
            # partition, would count against it.
            metadata = HELD if last else self._isolated[suspect.tp][0].survived()
            if not await self._write(suspect.tp, metadata) and not suspect.dropped:
                self.drop(frozenset({suspect.tp.partition}))
        if suspect.dropped:
            return
        self._suspects.popleft()
        if last:
            self._release(suspect)

    def _release(self, last: Suspect) -> None:
        """The partition goes on as usual: what was kept of it first."""
        del self._isolated[last.tp]
        self._done(last.tp)
        for suspect in [last, *(suspect for suspect in self._suspects if suspect.tp == last.tp)]:
            for message in suspect.messages[suspect.begun :]:
                suspect.reader.offer(suspect.tp.partition, message, suspect.receipt)
        self._suspects = deque(suspect for suspect in self._suspects if suspect.tp != last.tp)

    async def _probe(self, suspect: Suspect) -> bool:
        """True when the record has been dealt with; False when its partition is not ours to judge any more."""
        for index, message in enumerate(suspect.messages):
            if suspect.dropped:
                return False
            metadata = self._isolated[suspect.tp][0].probing(suspect.offset, index)
            if not await self._write(suspect.tp, metadata) or suspect.dropped:
                self.drop(frozenset({suspect.tp.partition}))
                return False
            through = Receipt()
            through.add_done_callback(suspect.receipt.resolve_one)
            suspect.begun += 1
            url = ascii(getattr(message, "url", ""))[1:-1][:300]
            if metadata.solo_crashes >= MAX_CRASHES:
                error = PoisonMessage(f"{metadata.solo_crashes} members ended while this was all they had in hand")
                suspect.reader.dead_letter(suspect.tp.partition, message, through, error, metadata.crashes)
            else:
                log.warning("%s at %d is tried alone: %s", suspect.tp.topic, suspect.offset, url, extra={"url": url})
                suspect.reader.offer(suspect.tp.partition, message, through)
            try:
                async with asyncio.timeout(self._trial_s):
                    await through
            except TimeoutError:
                return not suspect.dropped
        return not suspect.dropped
