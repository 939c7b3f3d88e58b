"""Clocks that jump, and files of a frontier that are damaged, foreign or gone: recovered, or refused in one line."""

from __future__ import annotations

import errno
import itertools
import os
from pathlib import Path

import pytest
from nephila.kernel.documents.job_schema import Recrawl
from nephila.kernel.messages import Outcome
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.runtime.errors import UserError

from tests.scheduler.invariants import check
from tests.scheduler.world import World, chain, site

HOUR = 3600.0


@pytest.mark.parametrize("jump", [-HOUR, HOUR])
@pytest.mark.parametrize("restart", [False, True], ids=["running", "restarted"])
async def test_a_wall_clock_that_jumps_costs_no_hour_and_no_manners(tmp_path: Path, jump: float, restart: bool) -> None:
    """In the middle of a crawl that is also fetched again: within a run no gap is too short, nothing waits long."""
    world = await World(tmp_path, chain(12)).start()
    world.crawl("http://a.test/0", delay_s=2.0, recrawl=Recrawl(every="600s"))
    world.clock.advance(9.0)
    world.clock.jump(jump)
    fetched = list(world.fetched)
    if restart:
        world.kill()
        rows, clock = world.rows, ManualClock(world.clock.now(), world.clock.monotonic())
        world = await World(tmp_path, world.web, clock).start()
        world.rows = rows
    world.clock.advance(60.0)
    check(world.scheduler.dispatcher)
    assert len(world.rows) == 12
    count = len(world.fetched)
    world.clock.advance(700.0 if jump < 0 else 600.0)
    assert len(world.fetched) > count, "pages are still fetched again"
    if not restart:
        for before, after in itertools.pairwise(world.fetched):
            assert after.start - before.end >= 2.0
    elif jump < 0:
        assert world.fetched[0].start - fetched[-1].end >= 2.0
    await world.scheduler.close()


@pytest.mark.parametrize("base", [5.0, 10_000.0 - HOUR, 10_000.0 + HOUR])
async def test_a_monotonic_clock_that_begins_anew(tmp_path: Path, base: float) -> None:
    """Another machine, or the same after a boot: the crawl goes on at once and at its pace."""
    world = await World(tmp_path, chain(12), ManualClock(monotonic=10_000.0), segment_bytes=500).start()
    world.crawl("http://a.test/0", delay_s=2.0)
    world.clock.advance(9.0)
    rows = world.rows
    again = await World(tmp_path, world.web, ManualClock(world.clock.now(), base), segment_bytes=500).start()
    again.rows = rows
    again.clock.advance(40.0)
    assert again.done
    assert len(again.rows) == 12
    await again.scheduler.close()


async def test_a_loop_that_stood_still_for_an_hour(tmp_path: Path) -> None:
    """A laptop that slept: leases of that time are taken back, everything is fetched, the pace is kept."""
    world = await World(tmp_path, chain(6)).start()
    world.crawl("http://a.test/0", delay_s=2.0)
    world.clock.advance(3.05)
    world.clock._move_to(world.clock.monotonic() + HOUR)
    world.run()
    check(world.scheduler.dispatcher)
    assert world.done
    assert world.scheduler.ended("t") == {Outcome.STORED: 6}
    for before, after in itertools.pairwise(world.fetched):
        assert after.start - before.end >= 2.0
    await world.scheduler.close()


async def with_files(tmp_path: Path) -> World:
    """A crawl with a snapshot, files of queues, hosts and seen URLs, and a log behind it; its program is gone."""
    links = [f"http://h{i}.test/{j}" for i in range(20) for j in range(20)]
    world = await World(tmp_path, site({"http://a.test/": links} | {link: [] for link in links})).start()
    world.crawl("http://a.test/", *links, delay_s=1.0)
    world.run(3.0)
    world.scheduler.snapshot()
    world.run(2.0)
    await world.scheduler.close()
    return world


def damaged(path: Path) -> bytes:
    """Flip a bit in the middle of a file; returns what it was."""
    data = path.read_bytes()
    changed = bytearray(data)
    changed[len(data) // 2] ^= 16
    path.write_bytes(changed)
    return data


def files_of(directory: Path) -> list[Path]:
    """Snapshots, and the files they name."""
    return sorted(path for path in directory.iterdir() if path.suffix in (".run", ".snapshot"))


async def opened(tmp_path: Path, world: World) -> World:
    """A new program reads everything that is there."""
    again = await World(tmp_path, world.web, ManualClock(world.clock.now(), 5.0)).start()
    frontier = again.scheduler.frontier
    for job in frontier.jobs.values():
        for number in frontier.store.hosts_of(job.number):
            frontier.store.items(number, job.number)
    return again


async def test_each_file_of_a_frontier_is_missed_and_checked(tmp_path: Path) -> None:
    """A file that is gone or damaged is named in one line with the remedy; with it back everything is there."""
    world = await with_files(tmp_path)
    files = files_of(tmp_path)
    assert len([path for path in files if path.suffix == ".run"]) >= 2
    for path in files:
        data = path.read_bytes()
        if path.suffix == ".run":
            path.unlink()
            with pytest.raises((UserError, ValueError), match=path.name) as caught:
                await opened(tmp_path, world)
            assert isinstance(caught.value, UserError)
            assert "\n" not in str(caught.value)
            path.write_bytes(data)
        damaged(path)
        with pytest.raises((UserError, ValueError, OSError), match=path.name) as caught:
            await opened(tmp_path, world)
        assert "\n" not in str(caught.value)
        path.write_bytes(data)
    again = await opened(tmp_path, world)
    again.rows = world.rows
    again.run()
    assert again.done
    assert len(again.rows) == 401
    await again.scheduler.close()


async def test_a_snapshot_of_another_version_is_refused(tmp_path: Path) -> None:
    """It is named, and left as it is."""
    world = await with_files(tmp_path)
    path = next(path for path in files_of(tmp_path) if path.suffix == ".snapshot")
    data = bytearray(path.read_bytes())
    data[8] = 9
    path.write_bytes(data)
    with pytest.raises(UserError, match=rf"{path.name} was written in frontier format 9, .* program version"):
        await opened(tmp_path, world)
    assert path.read_bytes() == bytes(data)


async def test_a_disk_that_fills_while_the_log_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program stops with one line; nothing that it published is lost, and the next one goes on."""
    world = await World(tmp_path, chain(30)).start()
    world.crawl("http://a.test/0", delay_s=0.5)
    world.run(5.0)
    errors: list[BaseException] = []
    world.scheduler.on_fatal = errors.append
    rows = len(world.rows)

    def full(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("nephila.scheduler.durability.commit_log.os.write", full)
        world.run(20.0)
    assert len(errors) == 1
    assert isinstance(errors[0], UserError)
    assert "disk full" in str(errors[0])
    assert "--resume" in str(errors[0])
    assert rows <= len(world.rows) < 30
    world.kill()
    again = await World(tmp_path, world.web, ManualClock(world.clock.now(), 5.0)).start()
    again.rows = world.rows
    again.run()
    assert again.scheduler.ended("t") == {Outcome.STORED: 30}
    await again.scheduler.close()
