"""Messages that may be what ends members are tried one at a time, with nothing else in the member's hands.

A position at which members ended again and again (notes.py) has what does it close behind it. While the court sits the
group's other partitions pause; before each message the note of its position says that it is being tried, so that its
next end is counted wherever that partition is opened then; a guilty one ends as a dead letter without being delivered.
Invariants: at most one suspect is in hand, and at most one note says that something is being tried. One that neither
ends the member nor is acked within `TRIAL_S` is no killer, and waits for something: its partition goes on as usual.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aiokafka import TopicPartition

from nephila.kernel.bus.contract import Receipt
from nephila.kernel.bus.kafka.commit_metadata import AT_WORK, GUILTY, Note

if TYPE_CHECKING:
    from nephila.kernel.bus.kafka.inbox import KafkaSubscription

log = logging.getLogger(__name__)

SUSPECTS = 64
"""Records behind a position that are tried: more than a member takes of one partition between two commits. If it was
more, two more ends bring the position nearer."""
TRIAL_S = 10.0


class Deadly(Exception):
    """What a condemned message is reported with."""


@dataclass(slots=True)
class Case:
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


class Court:
    """See the module. `write`: puts a note beside the position of a partition, durably; False when it is not ours to
    write any more. `quiet`: returns once the group has nothing in hand."""

    def __init__(
        self,
        write: Callable[[TopicPartition, Note], Awaitable[bool]],
        quiet: Callable[[], Awaitable[None]],
        done: Callable[[TopicPartition], None],
        trial_s: float = TRIAL_S,
    ) -> None:
        self._write = write
        self._quiet = quiet
        self._done = done
        self._trial_s = trial_s
        self._accused: dict[TopicPartition, tuple[Note, int]] = {}
        self._cases: deque[Case] = deque()
        self._changed = asyncio.Event()

    @property
    def sitting(self) -> bool:
        """Whether anything is tried: the rest pauses."""
        return bool(self._accused)

    def __contains__(self, tp: TopicPartition) -> bool:
        return tp in self._accused

    def accuse(self, tp: TopicPartition, note: Note, start: int, end: int) -> None:
        """What lies at `start` and behind it in the log, up to `end` at most, is tried."""
        self._accused[tp] = note, min(start + SUSPECTS, end)

    def take(self, case: Case) -> None:
        """A record of an accused partition; in order."""
        self._cases.append(case)
        self._changed.set()

    def drop(self, partitions: frozenset[int]) -> None:
        """These leave or are gone; what was not handed on comes again elsewhere."""
        self._forget(lambda tp: tp.partition in partitions)

    def spare(self, tp: TopicPartition) -> None:
        """What comes next of this one cannot be read: nobody need wait for it."""
        self._forget(lambda other: other == tp)

    def _forget(self, which: Callable[[TopicPartition], bool]) -> None:
        self._accused = {tp: what for tp, what in self._accused.items() if not which(tp)}
        for case in self._cases:
            if which(case.tp):
                case.dropped = True
                case.reader.bus.unacked -= len(case.messages) - case.begun
        self._cases = deque(case for case in self._cases if not case.dropped)
        self._changed.set()

    async def sit(self) -> None:
        """Try all, until nobody is accused."""
        while self._accused:
            if not self._cases:
                self._changed.clear()
                await self._changed.wait()
                continue
            case = self._cases[0]
            await self._quiet()
            if not case.dropped and await self._try(case):
                await self._end(case)

    async def _end(self, case: Case) -> None:
        """All its messages have come through, or one takes its time."""
        last = case.offset + 1 >= self._accused[case.tp][1] or not case.receipt.done
        following = self._cases[1] if len(self._cases) > 1 else None
        if last or following is None or following.tp != case.tp:
            # Else its note would go on saying that it is being tried, and the end of the next suspect, of another
            # partition, would count against it.
            note = AT_WORK if last else self._accused[case.tp][0].through()
            if not await self._write(case.tp, note) and not case.dropped:
                self.drop(frozenset({case.tp.partition}))
        if case.dropped:
            return
        self._cases.popleft()
        if last:
            self._release(case)

    def _release(self, last: Case) -> None:
        """The partition goes on as usual: what was kept of it first."""
        del self._accused[last.tp]
        self._done(last.tp)
        for case in [last, *(case for case in self._cases if case.tp == last.tp)]:
            for message in case.messages[case.begun :]:
                case.reader.offer(case.tp.partition, message, case.receipt)
        self._cases = deque(case for case in self._cases if case.tp != last.tp)

    async def _try(self, case: Case) -> bool:
        """True when the record has been dealt with; False when its partition is not ours to judge any more."""
        for index, message in enumerate(case.messages):
            if case.dropped:
                return False
            note = self._accused[case.tp][0].trying(case.offset, index)
            if not await self._write(case.tp, note) or case.dropped:
                self.drop(frozenset({case.tp.partition}))
                return False
            through = Receipt()
            through.add_done_callback(case.receipt.resolve_one)
            case.begun += 1
            url = ascii(getattr(message, "url", ""))[1:-1][:300]
            if note.deaths >= GUILTY:
                error = Deadly(f"{note.deaths} members ended while this was all they had in hand")
                case.reader.condemn(case.tp.partition, message, through, error, note.crashes)
            else:
                log.warning("%s at %d is tried alone: %s", case.tp.topic, case.offset, url, extra={"url": url})
                case.reader.offer(case.tp.partition, message, through)
            try:
                async with asyncio.timeout(self._trial_s):
                    await through
            except TimeoutError:
                return not case.dropped
        return not case.dropped
