"""Messages that may crash members are delivered one at a time.

When members crash repeatedly at one committed offset (commit_metadata.py), the records behind it are suspects. The
member's other partitions go on. Before each suspect the metadata of its offset says which message is being probed, so
that the next member counts a crash. The suspect of such a crash is accused: the other partitions pause until it has
been probed with nothing else in a handler. A poison message becomes a dead letter without being delivered. Invariants:
at most one suspect is delivered at a time; at most one partition's metadata names a probe; a message becomes poison
only by a crash while it was alone.

Kills from outside must not make a message poison. So a crash counts only within `BLAME_S` of the delivery, and an
accused message is delivered again only after `control_s` without any message: a crash in this time clears it. A member
that the group had removed and that joins again takes its crash back (`pardon`).
A suspect that neither crashes the member nor is acked within `PROBE_TIMEOUT_S` is slow, not poison: its partition
continues as usual. Only topics whose readers end the URL of a dead letter are isolated: a dead letter of another topic
would be a silent loss.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aiokafka import TopicPartition
from nephila.kernel.bus.contract import Receipt
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.waits import sleep, wait

from nephila_cluster.kafka.consumer.commit_metadata import HELD, CommitMetadata
from nephila_cluster.kafka.consumer.kafka_subscription import KafkaSubscription, Routed

log = logging.getLogger(__name__)

MAX_SUSPECTS = 64
"""Records behind an offset that are probed: more than a member takes of a partition between two commits. With more,
two further crashes bring the offset nearer."""
PROBE_TIMEOUT_S = 10.0
BLAME_S = 2.0
"""A crash later than this after the delivery has another cause."""


class PoisonMessage(Exception):
    """The error of a poison message."""


@dataclass(slots=True)
class Suspect:
    """One record that waits to be probed."""

    tp: TopicPartition
    reader: KafkaSubscription
    offset: int
    messages: list[Routed]
    receipt: Receipt
    """Receipt of the whole record."""
    begun: int = 0
    """Messages that were delivered."""
    dropped: bool = False


class PoisonIsolation:
    """`write` stores metadata with a partition's offset, durably; False: the partition is not held any
    more. `quiet` returns when no handler has a message. `done`: called when a partition needs no isolation any more.
    `control_s`: how long a member waits without a message before it probes a suspect that crashed a member.
    """

    def __init__(
        self,
        clock: Clock,
        write: Callable[[TopicPartition, CommitMetadata], Awaitable[bool]],
        quiet: Callable[[], Awaitable[None]],
        done: Callable[[TopicPartition], None],
        control_s: float,
        timeout_s: float = PROBE_TIMEOUT_S,
        blame_s: float = BLAME_S,
    ) -> None:
        self._clock = clock
        self._write = write
        self._quiet = quiet
        self._done = done
        self._timeout_s, self._blame_s, self._control_s = timeout_s, min(blame_s, timeout_s), control_s
        self._isolated: dict[TopicPartition, tuple[CommitMetadata, int]] = {}
        self._suspects: deque[Suspect] = deque()
        self._changed = asyncio.Event()

    @property
    def active(self) -> bool:
        """Whether a partition is isolated."""
        return bool(self._isolated)

    @property
    def exclusive(self) -> bool:
        """Whether a message is accused: all partitions but the isolated ones pause."""
        return any(metadata.solo_crashes for metadata, _ in self._isolated.values())

    @property
    def isolated(self) -> dict[TopicPartition, int]:
        """Isolated partition → crashes in a row at its offset."""
        return {tp: metadata.crashes for tp, (metadata, _) in self._isolated.items()}

    @property
    def trouble(self) -> str:
        """The isolated partitions, in one line; empty when there are none."""
        isolated = self.isolated
        if not isolated:
            return ""
        names = ", ".join(f"{tp.topic}/{tp.partition}" for tp in sorted(isolated)[:5])
        more = f" and {len(isolated) - 5} more" if len(isolated) > 5 else ""
        others = "all other partitions pause" if self.exclusive else "other partitions go on"
        return (
            f"{max(isolated.values())} members ended in a row with {names}{more}: the messages there are delivered one "
            f"at a time, {others}; the logs of these members have the cause (a crash, a lack of memory, kills)"
        )

    def __contains__(self, tp: TopicPartition) -> bool:
        return tp in self._isolated

    def isolate(self, tp: TopicPartition, metadata: CommitMetadata, start: int, end: int) -> None:
        """Probe the records from `start` on, up to `end` at most."""
        self._isolated[tp] = metadata, min(start + MAX_SUSPECTS, end)

    def take(self, suspect: Suspect) -> None:
        """The next record of an isolated partition, in order."""
        self._suspects.append(suspect)
        self._changed.set()

    def drop(self, partitions: frozenset[int]) -> None:
        """These partitions leave or are lost; messages that were not delivered go to the next owner."""
        self._forget(lambda tp: tp.partition in partitions)

    def pardon(self, tp: TopicPartition, times: int = 1) -> None:
        """So many of the members that seemed to have crashed at the offset of this isolated partition live."""
        metadata, end = self._isolated[tp]
        metadata = metadata.pardoned(times)
        if metadata.needs_isolation:
            self._isolated[tp] = metadata, end
        elif any(suspect.tp == tp for suspect in self._suspects):
            self._isolated[tp] = metadata, 0  # the record that is probed now is the last one
        else:
            del self._isolated[tp]
            self._done(tp)
            self._changed.set()

    def release(self, tp: TopicPartition) -> None:
        """The next record of this partition cannot be read: end its isolation."""
        self._forget(lambda other: other == tp)

    def _forget(self, which: Callable[[TopicPartition], bool]) -> None:
        self._isolated = {tp: isolated for tp, isolated in self._isolated.items() if not which(tp)}
        for suspect in self._suspects:
            if which(suspect.tp):
                suspect.dropped = True
                suspect.reader.bus.unacked -= len(suspect.messages) - suspect.begun
        self._suspects = deque(suspect for suspect in self._suspects if not suspect.dropped)
        self._changed.set()

    async def run(self) -> None:
        """Probe all suspects until no partition is isolated."""
        if self.active:
            log.warning("%s", self.trouble)
        while self._isolated:
            if not self._suspects:
                self._changed.clear()
                await self._changed.wait()
                continue
            suspect = self._suspects[0]
            if self.exclusive:
                await self._quiet()
            if not suspect.dropped and await self._probe(suspect):
                await self._end(suspect)

    async def _end(self, suspect: Suspect) -> None:
        """All messages of the record were processed, or one is slow."""
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
            return
        metadata, end = self._isolated[suspect.tp]
        if suspect.offset >= metadata.offset:  # the accused message has been probed
            self._isolated[suspect.tp] = metadata.survived(), end

    def _release(self, last: Suspect) -> None:
        """The partition continues as usual, starting with the records kept here."""
        del self._isolated[last.tp]
        self._done(last.tp)
        for suspect in [last, *(suspect for suspect in self._suspects if suspect.tp == last.tp)]:
            for routed in suspect.messages[suspect.begun :]:
                suspect.reader.offer(suspect.tp.partition, routed, suspect.receipt)
        self._suspects = deque(suspect for suspect in self._suspects if suspect.tp != last.tp)

    async def _probe(self, suspect: Suspect) -> bool:
        """True when the record was processed; False when its partition is not held any more."""
        for index, routed in enumerate(suspect.messages):
            if suspect.dropped:
                return False
            if not await self._control(suspect, index):
                return False
            metadata = self._isolated[suspect.tp][0].probing(suspect.offset, index)
            if not await self._commit(suspect, metadata):
                return False
            through = Receipt()
            through.add_done_callback(suspect.receipt.resolve_one)
            suspect.begun += 1
            url = ascii(getattr(routed.message, "url", ""))[1:-1][:300]
            if metadata.is_poison:
                error = PoisonMessage(f"{metadata.solo_crashes} members ended while this was all they had in hand")
                suspect.reader.dead_letter(*routed, through, error, metadata.crashes)
            else:
                log.warning("%s at %d is probed alone: %s", suspect.tp.topic, suspect.offset, url, extra={"url": url})
                suspect.reader.offer(suspect.tp.partition, routed, through)
            if await self._within(self._blame_s, through):
                continue
            if suspect.dropped or not await self._commit(suspect, self._isolated[suspect.tp][0].survived()):
                return False
            if not await self._within(self._timeout_s - self._blame_s, through):
                break
        return not suspect.dropped

    async def _control(self, suspect: Suspect, index: int) -> bool:
        """Wait without a message before a suspect that crashed a member; False when the partition is not held."""
        metadata = self._isolated[suspect.tp][0].of(suspect.offset, index)
        if not metadata.needs_control:
            return True
        if not await self._commit(suspect, metadata.waiting()):
            return False
        await sleep(self._clock, self._control_s)
        return not suspect.dropped

    async def _commit(self, suspect: Suspect, metadata: CommitMetadata) -> bool:
        """Store metadata with the suspect's partition; False when the partition is not held any more."""
        if await self._write(suspect.tp, metadata) and not suspect.dropped:
            return True
        self.drop(frozenset({suspect.tp.partition}))
        return False

    async def _within(self, limit_s: float, receipt: Receipt) -> bool:
        """Whether the receipt resolves in time."""
        resolved = asyncio.Event()
        receipt.add_done_callback(resolved.set)
        return await wait(self._clock, limit_s, resolved)
