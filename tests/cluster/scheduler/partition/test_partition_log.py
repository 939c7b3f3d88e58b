"""The contract of a partition's log, over files and over a topic: commit first, publish after, whatever fails."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from nephila.kernel.messages import FrontierSnapshot
from nephila.kernel.runtime.errors import UserError
from nephila.kernel.topics import REQUESTS
from nephila.scheduler.durability.snapshots import snapshots
from nephila.scheduler.frontier.restart_policy import RestartPolicy
from nephila.scheduler.partition.owner_state import OwnerState

from tests.cluster.scheduler.partition.partition_rig import RIGS, URLS, PartitionRig
from tests.waits import until

New = Callable[[Path], PartitionRig]
both = pytest.mark.parametrize("new", RIGS)


async def serve(rig: PartitionRig) -> None:
    """The partition, serving."""
    await rig.open()
    rig.owner.enter(OwnerState.SERVING)


async def restart(rig: PartitionRig) -> None:
    """A kill, and the next owner."""
    rig.kill()
    await serve(rig)
    rig.check()


def accept(rig: PartitionRig, *urls: str) -> None:
    """Seeds come in, each with a turn, while nothing is dispatched."""
    rig.owner.hold(True)
    for url in urls:
        rig.deliver(url)
        rig.owner.turn()
    rig.owner.hold(False)


@both
async def test_commits_are_replayed_after_a_kill(tmp_path: Path, new: New) -> None:
    """All of them, in order, and the next owner numbers on."""
    rig = new(tmp_path)
    await serve(rig)
    accept(rig, *URLS[:3])
    assert rig.acked == URLS[:3]
    await restart(rig)
    assert rig.queued == 3
    accept(rig, URLS[3])
    assert [commit.sequence for commit in rig.commits()] == [1, 2, 3, 4]
    rig.kill()


@both
async def test_nothing_is_published_before_its_commit_is_in_the_log(tmp_path: Path, new: New) -> None:
    """A request leaves when its lease can be replayed."""
    rig = new(tmp_path)
    await serve(rig)
    publish, leases = rig.bus.publish, []

    def published(topic: Any, partition: int, message: Any) -> Any:
        if topic is REQUESTS:
            logged = {leased.url_key for commit in rig.commits() for leased in commit.leased}
            leases.append(message.url_key in logged)
        return publish(topic, partition, message)

    rig.bus.publish = published
    for url in URLS[:3]:
        rig.deliver(url)
        rig.owner.turn()
    assert leases == [True] * 3
    rig.kill()


@both
async def test_what_the_log_refuses_is_neither_published_nor_acked(tmp_path: Path, new: New) -> None:
    """Its input is delivered again to the next owner, and counts once."""
    rig = new(tmp_path)
    await serve(rig)
    accept(rig, URLS[0])
    rig.refuse()
    rig.deliver(URLS[1])
    with contextlib.suppress(UserError):  # a disk refuses at once, a broker is waited for
        rig.owner.turn()
    assert (rig.acked, rig.requests()) == (URLS[:1], [])
    await restart(rig)
    assert rig.queued == 1
    accept(rig, URLS[1], URLS[1])
    assert rig.queued == 2
    rig.kill()


@both
async def test_a_kill_between_commit_and_publication_loses_nothing(tmp_path: Path, new: New) -> None:
    """The input is delivered again and changes nothing; the request goes out once."""
    rig = new(tmp_path)
    await serve(rig)
    rig.owner.pipeline._emit = lambda batch: None  # type: ignore[method-assign]
    rig.deliver(URLS[0])
    rig.owner.turn()
    assert (rig.acked, rig.requests()) == ([], [])
    await restart(rig)
    rig.deliver(URLS[0])
    rig.owner.turn()
    rig.clock.advance(2.0)
    rig.owner.turn()
    assert (rig.queued, rig.acked) == (1, URLS[:1])
    assert [request.url for request in rig.requests()] == URLS[:1]
    rig.kill()


@both
async def test_a_start_replays_only_what_is_behind_the_snapshot(tmp_path: Path, new: New) -> None:
    """The snapshot has what came before; both together are the state."""
    rig = new(tmp_path)
    await serve(rig)
    accept(rig, *URLS[:4])
    rig.grow()
    accept(rig, URLS[4])
    await until(lambda: rig.owner.snapshots.ready)
    assert (rig.owner.wants_snapshot, rig.owner.snapshots.age_s) == (False, 0.0)
    accept(rig, *URLS[5:7])
    rig.kill()
    await serve(rig)
    assert rig.queued == 7
    assert [commit.sequence for commit in rig.commits()][-2:] == [6, 7]
    rig.check()
    rig.kill()


@both
async def test_a_kill_while_a_snapshot_is_written_loses_nothing(tmp_path: Path, new: New) -> None:
    """Half a snapshot is no snapshot: the one before and the whole log count."""
    rig = new(tmp_path)
    await serve(rig)
    accept(rig, *URLS[:3])

    def half() -> Iterator[FrontierSnapshot]:
        yield from snapshots(rig.owner.dispatcher)
        raise OSError(5, "Input/output error")

    with pytest.raises(UserError):
        rig.owner.snapshots.write(half(), 3)
    await restart(rig)
    assert rig.queued == 3
    rig.kill()


@both
async def test_a_lease_ends_or_continues_as_the_policy_says(tmp_path: Path, new: New) -> None:
    """Where downloaders end with the program, the URL is fetched again with the try counted. Where they do not, the
    next owner waits, and publishes only what may be missing."""
    rig = new(tmp_path)
    await serve(rig)
    rig.deliver(URLS[0])
    rig.owner.turn()
    assert len(rig.requests()) == 1
    await restart(rig)
    for _ in range(3):
        rig.owner.turn()
        rig.clock.advance(2.0)
    # The topic still has the first one.
    attempt = 2 if rig.owner.frontier.restart is RestartPolicy.LEASES_END else 1
    assert [request.attempt for request in rig.requests()] == [attempt]
    rig.check()
    rig.kill()
