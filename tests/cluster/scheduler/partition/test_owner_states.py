"""The life of a partition at one owner: every event in every state, with files and with a topic."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from nephila.scheduler.partition.owner_state import NEXT_STATES, OwnerState

from tests.cluster.scheduler.partition.partition_rig import RIGS, URLS, FileRig, PartitionRig, TopicRig
from tests.scheduler.expected_states import by_event
from tools.state_diagrams import partition_states

PATHS = {
    OwnerState.LOADING: (),
    OwnerState.ANNOUNCING: (OwnerState.ANNOUNCING,),
    OwnerState.SERVING: (OwnerState.ANNOUNCING, OwnerState.SERVING),
    OwnerState.HELD: (OwnerState.HELD,),
    OwnerState.DRAINING: (OwnerState.SERVING, OwnerState.DRAINING),
    OwnerState.LOST: (OwnerState.SERVING, OwnerState.DRAINING, OwnerState.LOST),
}


async def begin(rig: PartitionRig, state: OwnerState) -> None:
    """A partition with a URL in its queue, in a state."""
    await rig.open()
    rig.deliver(URLS[0])
    rig.owner.turn()
    assert rig.acked == [URLS[0]]
    rig.acked.clear()
    for step in PATHS[state]:
        rig.owner.drop() if step is OwnerState.LOST else rig.owner.enter(step)
    assert rig.owner.state is state


def observed(rig: PartitionRig, before: int) -> str:
    """The state, what was published and acked, and whether a turn or a snapshot is due."""
    owner = rig.owner
    parts, commits, requests = [owner.state.value], len(rig.commits()) - before, len(rig.requests())
    parts += [f"commits={commits}"] * bool(commits) + [f"requests={requests}"] * bool(requests)
    parts += [f"acked={len(rig.acked)}"] * bool(rig.acked)
    parts += ["snapshot"] * owner.wants_snapshot + ["due"] * owner.due
    return " ".join(parts)


# ---- events


def enter(state: OwnerState) -> Callable[[PartitionRig], None]:
    def event(rig: PartitionRig) -> None:
        rig.owner.enter(state)

    event.__name__ = f"enter_{state.value}"
    return event


def turn(rig: PartitionRig) -> None:
    rig.owner.turn()


def seed_and_turn(rig: PartitionRig) -> None:
    rig.deliver(URLS[1])
    rig.owner.turn()


def log_grows(rig: PartitionRig) -> None:
    rig.grow()


def snapshot_is_old(rig: PartitionRig) -> None:
    rig.clock.advance(rig.owner.frontier.config.snapshot_age_s + 1)
    rig.owner.check_snapshot_age()


def drop(rig: PartitionRig) -> None:
    rig.owner.drop()


def hold(rig: PartitionRig) -> None:
    rig.owner.hold(True)


def release(rig: PartitionRig) -> None:
    rig.owner.hold(False)


EVENTS = (*map(enter, OwnerState), turn, seed_and_turn, hold, release, log_grows, drop)

EXPECTED = """
enter_loading
    loading    raises
    announcing raises
    serving    raises
    held       raises
    draining   raises
    lost       raises
enter_announcing
    loading    announcing
    announcing raises
    serving    raises
    held       raises
    draining   raises
    lost       raises
enter_serving
    loading    serving
    announcing serving
    serving    raises
    held       serving
    draining   raises
    lost       raises
enter_held
    loading    held
    announcing raises
    serving    held
    held       raises
    draining   raises
    lost       raises
enter_draining
    loading    draining
    announcing draining
    serving    draining
    held       draining
    draining   draining
    lost       raises
enter_lost
    loading    lost
    announcing lost
    serving    lost
    held       lost
    draining   lost
    lost       raises
turn
    loading    loading
    announcing announcing
    serving    serving commits=1 requests=1
    held       held
    draining   draining
    lost       lost
seed_and_turn
    loading    loading commits=1 acked=1
    announcing announcing commits=1 acked=1
    serving    serving commits=1 requests=2 acked=1
    held       held commits=1 acked=1
    draining   draining commits=1 acked=1
    lost       lost
hold
    loading    held
    announcing announcing
    serving    held
    held       held
    draining   draining
    lost       lost
release
    loading    loading
    announcing announcing
    serving    serving
    held       serving due
    draining   draining
    lost       lost
log_grows
    loading    loading
    announcing announcing
    serving    serving snapshot
    held       held snapshot
    draining   draining
    lost       lost
drop
    loading    lost
    announcing lost
    serving    lost
    held       lost
    draining   lost
    lost       raises
snapshot_is_old
    loading    loading due
    announcing announcing due
    serving    serving snapshot due
    held       held snapshot due
    draining   draining due
    lost       lost
"""


async def check_event(new: Callable[[Path], PartitionRig], directory: Path, event: Callable[..., None]) -> None:
    """An event in every state, beside the table."""
    found = {}
    wanted = by_event(EXPECTED)[event.__name__]
    for state in OwnerState:
        rig = new(directory / state.value)
        await begin(rig, state)
        before, rig.owner.due = len(rig.commits()), False
        if wanted[state.value] == "raises":
            with pytest.raises(RuntimeError, match=rf"partition \d: .* cannot follow {state.value}"):
                event(rig)
            assert observed(rig, before) == state.value
            found[state.value] = "raises"
        else:
            event(rig)
            found[state.value] = observed(rig, before)
        rig.kill()
    assert found == wanted


@pytest.mark.parametrize("new", RIGS)
@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.__name__)
async def test_every_event_in_every_state_of_a_partition(
    tmp_path: Path, new: Callable[[Path], PartitionRig], event: Callable[..., None]
) -> None:
    """Only a serving partition dispatches; a lost one publishes and acks nothing more. A forbidden transition raises
    and leaves the state."""
    await check_event(new, tmp_path, event)


async def test_an_old_snapshot_is_replaced_where_the_log_has_a_retention(tmp_path: Path) -> None:
    """A topic forgets old commits, a file does not."""
    await check_event(TopicRig, tmp_path, snapshot_is_old)
    rig = FileRig(tmp_path / "file")
    await begin(rig, OwnerState.SERVING)
    snapshot_is_old(rig)
    assert not rig.owner.wants_snapshot
    rig.kill()


def test_the_diagram_has_every_transition() -> None:
    """One arrow for each pair of different states in the table."""
    pairs = {(state.value, after.value) for state, states in NEXT_STATES.items() for after in states if state != after}
    arrows = [line.split(" --> ") for line in partition_states() if "[*]" not in line]
    assert {(before, after) for before, after in arrows} == pairs


async def test_a_partition_that_is_handed_on_waits_for_its_last_messages(tmp_path: Path) -> None:
    """`finish` returns when everything accepted is published and acked, or when the partition is lost."""
    rig = TopicRig(tmp_path)
    await begin(rig, OwnerState.SERVING)
    rig.bus.slow = True
    rig.deliver(URLS[1])
    finish = asyncio.create_task(rig.owner.finish())
    await asyncio.sleep(0)
    assert rig.owner.state is OwnerState.DRAINING
    rig.owner.turn()
    await asyncio.sleep(0)
    assert (finish.done(), rig.acked) == (False, [])
    rig.bus.take()
    rig.owner.advance()
    await asyncio.wait_for(finish, 10)
    assert (rig.acked, rig.requests()) == ([URLS[1]], [])


async def test_a_partition_that_is_lost_while_it_is_handed_on_waits_for_nothing(tmp_path: Path) -> None:
    """Its messages stay in the pipeline; the next owner gets the inputs again."""
    rig = TopicRig(tmp_path)
    await begin(rig, OwnerState.SERVING)
    rig.bus.slow = True
    rig.deliver(URLS[1])
    finish = asyncio.create_task(rig.owner.finish())
    await asyncio.sleep(0)
    rig.owner.drop()
    await asyncio.wait_for(finish, 10)
    rig.bus.take()
    rig.owner.advance()
    assert (rig.acked, rig.requests()) == ([], [])


@pytest.mark.parametrize("new", RIGS)
async def test_a_partition_that_is_lost_before_it_is_handed_on_has_nothing_to_finish(
    tmp_path: Path, new: Callable[[Path], PartitionRig]
) -> None:
    """The bus may lose it between the decision to revoke and the revocation."""
    rig = new(tmp_path)
    await begin(rig, OwnerState.LOST)
    await asyncio.wait_for(rig.owner.finish(), 10)
    assert rig.owner.state is OwnerState.LOST
    rig.kill()
