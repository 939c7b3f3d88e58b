"""The life of a partition at one owner: every event in every state."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from nephila.kernel.bus.contract import Delivery
from nephila.kernel.messages import CrawlJob, Politeness, Scope, ScopeMode, Seed
from nephila.kernel.net.address_limits import AddressLimits
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.topics import FRONTIER, REQUESTS
from nephila.native import parse_url, partition_of
from nephila.scheduler.cluster.addresses.shared_pace import SharedAddressQueue
from nephila.scheduler.cluster.commit_pipeline import SchedulerCounters
from nephila.scheduler.cluster.partition import OwnerState, PartitionOwner
from nephila.scheduler.cluster.snapshot_store import SnapshotStore
from nephila.scheduler.cluster.takeover import claim
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.frontier.host_state import TurnOutput

from tests.fake_kafka import PARTITIONS, FakeKafka, FakeKafkaBus

PARTITION = 1
URLS = [
    url
    for url in (f"http://h{number}.test/" for number in range(40))
    if partition_of(parse_url(url).fingerprint, PARTITIONS) == PARTITION
]
JOB = CrawlJob("t", "t", 1, [], Scope(ScopeMode.ANY, max_depth=-1), Politeness(1.0, 1, True))


class Host:
    """An `OwnerHost` without a loop: turns come from the test."""

    def wake(self, owner: PartitionOwner) -> None:
        owner.due = not owner.lost

    def fatal(self, error: BaseException) -> None:
        raise error

    def anchored(self, owner: PartitionOwner, uid: str, place: str) -> None:
        pass


class Rig:
    """An owner with one queued URL, in a state."""

    def __init__(self, directory: Path, state: OwnerState) -> None:
        self.clock = ManualClock()
        self.broker = FakeKafka()
        self.bus = FakeKafkaBus(self.broker, self.clock, "me", held=())
        self.acked: list[str] = []
        config = SchedulerConfig(directory=str(directory), partitions=PARTITIONS, snapshot_bytes=1 << 20)
        limits = AddressLimits(0, 0.0, ())
        queue = SharedAddressQueue(limits, self.clock.monotonic(), ("me", 1), PARTITIONS, {})
        files = SnapshotStore(directory, PARTITION, PARTITIONS, None, 0)
        self.owner = PartitionOwner(config, files, self.bus, self.clock, queue, SchedulerCounters(), Host())
        self.state = state

    async def begin(self) -> None:
        """Restored, with a URL in its queue."""
        owner = self.owner
        owner.store.prepare()
        epochs = await claim(self.bus, [PARTITION], 0.0, 0.0)
        owner.begin(epochs[PARTITION], TurnOutput())
        self.seed(URLS[0])
        owner.turn()
        assert self.acked == [URLS[0]]
        self.acked.clear()
        for state in (OwnerState.ANNOUNCING, OwnerState.SERVING, OwnerState.DRAINING, OwnerState.LOST):
            if self.state is OwnerState.LOADING:
                break
            if state is OwnerState.LOST:
                owner.drop()
            else:
                owner.enter(state)
            if state is self.state:
                break
        assert owner.state is self.state
        self.commits = self.count(FRONTIER)

    def seed(self, url: str) -> None:
        delivery = Delivery(Seed("t", url), PARTITION, lambda: self.acked.append(url))
        self.owner.seed(delivery, self.owner.job("t", JOB))

    def count(self, topic: object) -> int:
        return len(self.broker.logs[topic.name, PARTITION])  # type: ignore[attr-defined]

    def observed(self) -> str:
        """The state, what was published and acked, and whether a turn or a snapshot is due."""
        owner = self.owner
        parts = [owner.state.value]
        parts += [f"commits={self.count(FRONTIER) - self.commits}"] * (self.count(FRONTIER) > self.commits)
        parts += [f"requests={self.count(REQUESTS)}"] * bool(self.count(REQUESTS))
        parts += [f"acked={len(self.acked)}"] * bool(self.acked)
        parts += ["snapshot"] * owner.wants_snapshot + ["due"] * owner.due
        return " ".join(parts)


# ---- events


def enter(state: OwnerState) -> Callable[[Rig], None]:
    def event(rig: Rig) -> None:
        rig.owner.enter(state)

    event.__name__ = f"enter_{state.value}"
    return event


def turn(rig: Rig) -> None:
    rig.owner.turn()


def seed_and_turn(rig: Rig) -> None:
    rig.seed(URLS[1])
    rig.owner.turn()


def log_grows(rig: Rig) -> None:
    rig.owner.log_bytes = (1 << 20) + 1


def snapshot_is_old(rig: Rig) -> None:
    rig.owner.log_bytes = 1
    rig.clock.advance(rig.owner.config.snapshot_age_s + 1)
    rig.owner.check_snapshot_age()


def drop(rig: Rig) -> None:
    rig.owner.drop()


EVENTS = (*map(enter, OwnerState), turn, seed_and_turn, log_grows, snapshot_is_old, drop)

EXPECTED = """
enter_loading
    loading    raises
    announcing raises
    serving    raises
    draining   raises
    lost       raises
enter_announcing
    loading    announcing
    announcing raises
    serving    raises
    draining   raises
    lost       raises
enter_serving
    loading    serving
    announcing serving
    serving    raises
    draining   raises
    lost       raises
enter_draining
    loading    draining
    announcing draining
    serving    draining
    draining   draining
    lost       raises
enter_lost
    loading    lost
    announcing lost
    serving    lost
    draining   lost
    lost       raises
turn
    loading    loading
    announcing announcing
    serving    serving commits=1 requests=1
    draining   draining
    lost       lost
seed_and_turn
    loading    loading commits=1 acked=1
    announcing announcing commits=1 acked=1
    serving    serving commits=1 requests=2 acked=1
    draining   draining commits=1 acked=1
    lost       lost
log_grows
    loading    loading
    announcing announcing
    serving    serving snapshot
    draining   draining
    lost       lost
snapshot_is_old
    loading    loading due
    announcing announcing due
    serving    serving snapshot due
    draining   draining due
    lost       lost
drop
    loading    lost
    announcing lost
    serving    lost
    draining   lost
    lost       raises
"""


def expected() -> dict[str, dict[str, str]]:
    """Event → state → what is observed."""
    found: dict[str, dict[str, str]] = {}
    for line in EXPECTED.strip().splitlines():
        if line[0] != " ":
            rows = found[line] = {}
        else:
            state, text = line.split(maxsplit=1)
            rows[state] = text
    return found


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.__name__)
async def test_every_event_in_every_state_of_a_partition(tmp_path: Path, event: Callable[[Rig], None]) -> None:
    """Only a serving partition dispatches and takes snapshots; a lost one publishes and acks nothing more. A forbidden
    transition raises and leaves the state."""
    found = {}
    for state in OwnerState:
        rig = Rig(tmp_path / state.value, state)
        await rig.begin()
        rig.owner.due = False
        if expected()[event.__name__][state.value] == "raises":
            with pytest.raises(RuntimeError, match=f"partition 1: .* cannot follow {state.value}"):
                event(rig)
            assert rig.observed() == state.value
            found[state.value] = "raises"
        else:
            event(rig)
            found[state.value] = rig.observed()
    assert found == expected()[event.__name__]


async def test_a_partition_that_is_handed_on_waits_for_its_last_messages(tmp_path: Path) -> None:
    """`finish` returns when everything accepted is published and acked, or when the partition is lost."""
    rig = Rig(tmp_path, OwnerState.SERVING)
    await rig.begin()
    rig.bus.slow = True
    rig.seed(URLS[1])
    finish = asyncio.create_task(rig.owner.finish())
    await asyncio.sleep(0)
    assert rig.owner.state is OwnerState.DRAINING
    rig.owner.turn()
    await asyncio.sleep(0)
    assert (finish.done(), rig.acked) == (False, [])
    rig.bus.take()
    rig.owner.advance()
    await asyncio.wait_for(finish, 10)
    assert (rig.acked, rig.count(REQUESTS)) == ([URLS[1]], 0)


async def test_a_partition_that_is_lost_while_it_is_handed_on_waits_for_nothing(tmp_path: Path) -> None:
    """Its messages stay in the pipeline; the next owner gets the inputs again."""
    rig = Rig(tmp_path, OwnerState.SERVING)
    await rig.begin()
    rig.bus.slow = True
    rig.seed(URLS[1])
    finish = asyncio.create_task(rig.owner.finish())
    await asyncio.sleep(0)
    rig.owner.drop()
    await asyncio.wait_for(finish, 10)
    rig.bus.take()
    rig.owner.advance()
    assert (rig.acked, rig.count(REQUESTS)) == ([], 0)


async def test_a_partition_that_is_lost_before_it_is_handed_on_has_nothing_to_finish(tmp_path: Path) -> None:
    """The bus may lose it between the decision to revoke and the revocation."""
    rig = Rig(tmp_path, OwnerState.LOST)
    await rig.begin()
    await asyncio.wait_for(rig.owner.finish(), 10)
    assert rig.owner.state is OwnerState.LOST
