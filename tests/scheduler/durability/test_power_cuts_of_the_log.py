"""A power cut: what was synced is there, what was not is fetched again."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from nephila.kernel.messages import FrontierCommit, FrontierSnapshot, Outcome, Record
from nephila.kernel.runtime.clock import ManualClock
from nephila.scheduler.durability.commit_log import CommitLog
from nephila.scheduler.durability.file_log import SyncState

from tests.power_cut import Disk, order
from tests.scheduler.world import World, chain

NATIVE = ("*.run", "*.hosts")
"""Files that the native core writes and syncs."""


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    """The directory of the test on a disk that loses what was not synced."""
    directory = tmp_path / "run"
    directory.mkdir()
    return Disk(directory, monkeypatch, NATIVE)


def commits(first: int, count: int) -> list[FrontierCommit]:
    """Commits of one partition."""
    return [FrontierCommit(partition=1, epoch=1, sequence=first + i) for i in range(count)]


def recovered(directory: Path) -> list[int]:
    """Sequences of the commits that a new log reads, and of its snapshot with a minus sign."""
    return [
        found.sequence if isinstance(found, FrontierCommit) else -found.next_job
        for found in CommitLog(directory).recover()
    ]


def test_synced_commits_survive(tmp_path: Path, disk: Disk) -> None:
    """Commits before the last sync are there, in order; those after it are not."""
    log = CommitLog(disk.root)
    log.open()
    log.append(commits(1, 3))
    log.sync()
    log.append(commits(4, 2))
    assert recovered(disk.cut(tmp_path / "left")) == [1, 2, 3]


def test_a_closed_log_is_whole(tmp_path: Path, disk: Disk) -> None:
    """close() syncs."""
    log = CommitLog(disk.root)
    log.open()
    log.append(commits(1, 3))
    log.close()
    assert recovered(disk.cut(tmp_path / "left")) == [1, 2, 3]


def test_a_log_of_which_nothing_was_synced_begins_anew(tmp_path: Path, disk: Disk) -> None:
    """The name of the first segment is durable, its header may not be: that is no damage."""
    log = CommitLog(disk.root)
    log.open()
    log.append(commits(1, 3))
    left = disk.cut(tmp_path / "left")
    assert [path.name for path in left.iterdir()] == ["00000001.log"]
    assert recovered(left) == []


def test_a_power_cut_at_each_sync_of_a_snapshot_loses_no_synced_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the snapshot is in place the old files are read, and after it the new ones."""
    seen = set()
    for at in range(1, 20):
        directory = tmp_path / str(at)
        directory.mkdir()
        with monkeypatch.context() as patch:
            disk = Disk(directory, patch, NATIVE)
            log = CommitLog(directory)
            log.open()
            log.append(commits(1, 3))
            before = len(disk.calls)
            whole = stop_after(disk, before + at, lambda log=log: log.snapshot([FrontierSnapshot(next_job=3)]))
            found = recovered(disk.cut(tmp_path / f"{at}-left"))
            assert found in ([1, 2, 3], [-3])
            seen.add(tuple(found))
        if whole:
            assert found == [-3]
            break
    assert seen == {(1, 2, 3), (-3,)}


class PowerCut(BaseException):
    """The process ends here."""


def stop_after(disk: Disk, calls: int, work: Callable[[], object]) -> bool:
    """Run `work` up to its sync number `calls`; whether it ended before that."""

    class Calls(list):  # type: ignore[type-arg]
        def append(self, call: str) -> None:
            if len(self) >= calls:
                raise PowerCut
            super().append(call)

    disk.calls = Calls(disk.calls)
    try:
        work()
    except PowerCut:
        return False
    finally:
        disk.calls = list(disk.calls)
    return True


def test_a_snapshot_is_synced_before_its_name_and_its_name_before_the_old_files_go(tmp_path: Path, disk: Disk) -> None:
    """Log, snapshot, directory: in this order."""
    log = CommitLog(disk.root)
    log.open()
    log.append(commits(1, 3))
    disk.calls.clear()
    log.snapshot([FrontierSnapshot(next_job=3)])
    assert order(disk.calls, "00000001.log", "00000002.tmp", ".", ".")
    log.close()


@pytest.mark.parametrize("segment_bytes", [1 << 26, 2_000], ids=["log only", "with snapshots"])
@pytest.mark.parametrize("seed", range(3))
async def test_a_crawl_with_power_cuts_ends_with_every_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, segment_bytes: int, seed: int
) -> None:
    """What the log lost is fetched again; rows are the same 40, and each restart continues where the last sync was."""
    rng = random.Random(seed)
    rows: dict[bytes, Record] = {}
    clock, directory = ManualClock(), tmp_path / "0"
    directory.mkdir()
    for number in range(10):
        disk = Disk(directory, monkeypatch, NATIVE)
        world = await start(directory, clock, segment_bytes, rows)
        if not world.scheduler.frontier.jobs:
            world.crawl("http://a.test/0", delay_s=0.5)
        for _ in range(rng.randrange(4, 20)):
            if world.clock.next_due is not None:
                world.clock.advance(max(0.0, world.clock.next_due - world.clock.monotonic()))
        directory = disk.cut(tmp_path / str(number + 1))
        await world.scheduler.close()
        clock = ManualClock(world.clock.now(), world.clock.monotonic() + 1000)
    world = await start(directory, clock, segment_bytes, rows)
    world.run()
    assert world.done
    assert len(rows) == 40
    assert world.scheduler.ended("t") == {Outcome.STORED: 40}
    await world.scheduler.close()


async def start(directory: Path, clock: ManualClock, segment_bytes: int, rows: dict[bytes, Record]) -> World:
    """A crawl whose log is synced in the loop, once per interval; `rows`: the durable ones."""
    world = World(directory, chain(40), clock, segment_bytes=segment_bytes)
    world.rows = rows
    scheduler = world.scheduler

    def sync() -> None:
        scheduler.log.sync()
        scheduler.files.state = SyncState.SYNCED

    scheduler.files.start_sync = sync  # type: ignore[method-assign]
    return await world.start()
