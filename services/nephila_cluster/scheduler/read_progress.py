"""Whether a group has read what a topic held at one instant, by the offsets that it has committed at the broker.

A lane of many partitions is rarely read to its end: something has always come since. So the ends are looked up once,
and the group gets time to reach them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

from nephila.kernel.bus.contract import LogReader
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.waits import sleep
from nephila.kernel.topics import Topic

POLL_S, POLLS = 5.0, 12
"""How often, and how many times, committed offsets are read."""


async def read_partitions(
    bus: LogReader, clock: Clock, group: str, topic: Topic, partitions: Iterable[int]
) -> AsyncIterator[frozenset[int]]:
    """At each poll: of these partitions those of which a group, in any program, has read everything that existed at the
    call. Raises `TemporaryError`."""
    bounds = await bus.bounds(topic, partitions)
    ends = {partition: end for partition, (first, end) in bounds.items() if end > first}
    for poll in range(POLLS):
        if poll:
            await sleep(clock, POLL_S)
        read = await bus.read_up_to(group, topic, ends) if ends else frozenset()
        ends = {partition: end for partition, end in ends.items() if partition not in read}
        yield frozenset(bounds.keys() - ends.keys())
        if not ends:
            return


async def read_by_now(
    bus: LogReader, clock: Clock, group: str, topic: Topic, partitions: Iterable[int]
) -> frozenset[int]:
    """The partitions of `read_partitions` at its last poll. Raises `TemporaryError`."""
    polls = [read async for read in read_partitions(bus, clock, group, topic, partitions)]
    return polls[-1]
