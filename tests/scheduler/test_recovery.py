"""The log is the only truth: after a crash at any point a new scheduler goes on, nothing lost, nothing twice."""

from __future__ import annotations

import errno
import os
import random
import shutil

import pytest
from nephila.kernel.clock import ManualClock
from nephila.kernel.errors import UserError
from nephila.kernel.messages import FrontierCommit, Outcome
from nephila.scheduler.store import CommitLog

from tests.scheduler.world import World, chain


async def crash_and_go_on(tmp_path, world: World, steps: int) -> World:
    """Let `steps` timers fire, then abandon the process and open the directory in a new one."""
    for _ in range(steps):
        if world.done or world.clock.next_due is None:
            break
        world.clock.advance(max(0.0, world.clock.next_due - world.clock.monotonic()))
    rows = dict(world.rows)
    clock = ManualClock(world.clock.now(), world.clock.monotonic() + 1000)
    again = await World(tmp_path, world.web, clock, segment_bytes=world.scheduler.config.segment_bytes).start()
    again.rows = rows
    return again


@pytest.mark.parametrize("segment_bytes", [1 << 26, 2_000], ids=["log only", "with snapshots"])
@pytest.mark.parametrize("seed", range(5))
async def test_twenty_crashes_lose_nothing(tmp_path, seed, segment_bytes):
    """A crawl of 60 pages that is killed again and again ends with the same 60 rows; refetches are bounded."""
    rng = random.Random(seed)
    world = await World(tmp_path, chain(60), segment_bytes=segment_bytes).start()
    world.crawl("http://a.test/0", delay_s=0.5)
    fetched = []
    for _ in range(20):
        world.hold_receipts = rng.random() < 0.3
        fetched.append(world.fetched)
        world = await crash_and_go_on(tmp_path, world, rng.randrange(1, 12))
    world.run()
    assert world.done
    assert len(world.rows) == 60
    assert world.scheduler.ended("t") == {Outcome.STORED: 60}
    total = sum(map(len, fetched)) + len(world.fetched)
    assert total <= 60 + 20 * world.scheduler.config.window
    await world.scheduler.close()


async def test_a_restart_rests_hosts_that_were_being_fetched(tmp_path):
    """When the last fetch ended nobody knows: the host waits one delay from the restart."""
    world = await World(tmp_path, chain(3)).start()
    world.crawl("http://a.test/0", delay_s=5.0)
    world.clock.advance(0.01)
    again = await crash_and_go_on(tmp_path, world, 0)
    started = again.clock.monotonic()
    again.run()
    assert again.fetched[0].start - started >= 5.0
    assert again.fetched[0].attempt == 2
    assert len(again.rows) == 3
    await again.scheduler.close()


async def test_a_finished_crawl_has_nothing_left(tmp_path):
    """Opened again, a finished frontier fetches nothing and knows its counts."""
    world = await World(tmp_path, chain(5)).start()
    world.crawl("http://a.test/0")
    world.run()
    await world.scheduler.close()
    again = await World(tmp_path, chain(5)).start()
    again.crawl("http://a.test/0")
    again.run()
    assert again.fetched == []
    assert again.scheduler.ended("t")[Outcome.STORED] == 5
    await again.scheduler.close()


async def test_order_survives_a_restart(tmp_path):
    """What was queued first is still fetched first."""
    web = chain(1)
    world = await World(tmp_path, web).start()
    world.crawl(*[f"http://a.test/{i}" for i in range(9)])
    again = await crash_and_go_on(tmp_path, world, 0)
    again.run()
    assert [f.url.rsplit("/", 1)[1] for f in again.fetched] == [str(i) for i in range(9)]
    await again.scheduler.close()


def commits(n: int) -> list[FrontierCommit]:
    """n small commits of partition 0."""
    return [FrontierCommit(0, 0, i) for i in range(1, n + 1)]


def written(directory, n: int = 5) -> CommitLog:
    """A closed log of n commits."""
    log = CommitLog(directory)
    log.open()
    for commit in commits(n):
        log.append([commit])
    log.close()
    return log


def test_every_torn_tail_is_cut(tmp_path):
    """Whatever prefix of the file a crash leaves, the whole commits in it come back and the log goes on."""
    written(tmp_path / "whole")
    data = (tmp_path / "whole" / "00000001.log").read_bytes()
    for length in range(len(data)):
        directory = tmp_path / "torn"
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        (directory / "00000001.log").write_bytes(data[:length])
        log = CommitLog(directory)
        found = list(log.recover())
        assert found == commits(5)[: len(found)]
        log.open()
        log.append([FrontierCommit(0, 0, 99)])
        log.close()
        assert [c.sequence for c in CommitLog(directory).recover()] == [*range(1, len(found) + 1), 99]


def test_damage_in_the_middle_is_refused(tmp_path):
    """A flipped bit before valid frames is not the tail of a crash: one line names file and byte."""
    written(tmp_path)
    path = tmp_path / "00000001.log"
    data = bytearray(path.read_bytes())
    data[30] ^= 1
    path.write_bytes(data)
    with pytest.raises(UserError, match=r"00000001.log is damaged at byte 12"):
        list(CommitLog(tmp_path).recover())
    assert path.read_bytes() == bytes(data)


def test_another_version_is_refused(tmp_path):
    """A log of a later format is left alone."""
    written(tmp_path)
    path = tmp_path / "00000001.log"
    data = bytearray(path.read_bytes())
    data[8] = 9
    path.write_bytes(data)
    with pytest.raises(UserError, match="frontier format 9, this program reads 1"):
        list(CommitLog(tmp_path).recover())


def test_a_foreign_file_is_refused(tmp_path):
    """A file that is not ours is named, not overwritten."""
    (tmp_path / "00000001.log").write_bytes(b"hello world, this is text")
    with pytest.raises(UserError, match="not a frontier file"):
        list(CommitLog(tmp_path).recover())


def test_a_missing_segment_is_refused(tmp_path):
    """A gap in the log is never skipped."""
    written(tmp_path)
    (tmp_path / "00000001.log").rename(tmp_path / "00000003.log")
    (tmp_path / "00000001.log").write_bytes((tmp_path / "00000003.log").read_bytes())
    with pytest.raises(UserError, match=r"00000002.log is missing"):
        list(CommitLog(tmp_path).recover())


def test_a_full_disk_leaves_whole_frames(tmp_path, monkeypatch):
    """When the disk refuses a write the half frame is taken back and the line names the remedy."""
    log = CommitLog(tmp_path)
    log.open()
    log.append(commits(2))
    size = log.size
    answers = iter([lambda fd, data: os.pwrite(fd, data[:10], size), _no_space])
    with monkeypatch.context() as patch:
        patch.setattr("nephila.scheduler.store.os.write", lambda fd, data: next(answers)(fd, data))
        with pytest.raises(UserError, match=r"disk full .* --resume"):
            log.append([FrontierCommit(0, 0, 3)])
    assert (tmp_path / "00000001.log").stat().st_size == size
    log.append([FrontierCommit(0, 0, 3)])
    log.close()
    assert [c.sequence for c in CommitLog(tmp_path).recover()] == [1, 2, 3]


def _no_space(fd, data):
    raise OSError(errno.ENOSPC, "No space left on device")
