"""The log is the only truth: after a crash at any point a new scheduler goes on, nothing lost, nothing twice."""

from __future__ import annotations

import asyncio
import errno
import os
import random
import shutil
import struct

import pytest
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.documents.job_schema import Politeness, Scope
from nephila.kernel.messages import FrontierCommit, FrontierSnapshot, Outcome, Seed
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.runtime.errors import UserError
from nephila.kernel.topics import JOBS, SEEDS
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.durability.commit_log import _HEADER, CommitLog, _encode, frame, read_snapshot, write_snapshot
from nephila.scheduler.durability.snapshots import snapshots
from nephila.scheduler.standalone import Scheduler

from tests.jobs import crawl_job
from tests.queue_rows import queue_row
from tests.scheduler.invariants import check
from tests.scheduler.world import Answer, World, chain, site


async def crash_and_go_on(tmp_path, world: World, steps: int) -> World:
    """Let `steps` timers fire, then abandon the process and open the directory in a new one."""
    for _ in range(steps):
        if world.done or world.clock.next_due is None:
            break
        world.clock.advance(max(0.0, world.clock.next_due - world.clock.monotonic()))
    rows = dict(world.rows)
    clock = ManualClock(world.clock.now(), world.clock.monotonic() + 1000)
    again = await World(tmp_path, world.web, clock, segment_bytes=world.scheduler.config.segment_bytes).start()
    again.rows = rows | again.rows
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


async def test_hosts_put_away_while_the_log_is_read_keep_their_urls(tmp_path):
    """URLs on their way and those kept aside are in no queue: their hosts are not forgotten under them."""

    def web(request):
        return Answer(status=500) if request.url.endswith("/0") else Answer(took_s=5.0)

    world = await World(tmp_path, web, concurrency=10).start()
    for page in range(2):
        world.crawl(*(f"http://h{i}.test/{page}" for i in range(60)), delay_s=0.01)
        world.run(3.0)
    assert world.scheduler.dispatcher.frontier.delayed.items()
    assert len(world.scheduler.frontier.in_flight.leases)
    world.kill()
    await world.scheduler.close()
    clock = ManualClock(world.clock.now() + 100, world.clock.monotonic() + 100)
    again = await World(tmp_path, lambda request: Answer(), clock, hot_hosts=2).start()
    check(again.scheduler.dispatcher)
    again.run()
    check(again.scheduler.dispatcher)
    assert all(f.url.split("/")[2] == f.host for f in again.fetched)
    assert sum(again.scheduler.ended("t").values()) == 120
    await again.scheduler.close()


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
    with pytest.raises(UserError, match=r"00000001.log is damaged at byte 16"):
        list(CommitLog(tmp_path).recover())
    assert path.read_bytes() == bytes(data)


def real_commits(n: int) -> list[FrontierCommit]:
    """n commits with contents, over four partitions."""
    numbers = [0] * 4
    made = []
    for i in range(n):
        numbers[i % 4] += 1
        url = f"http://a.test/{i}/" + "x" * (i % 40)
        queued = [queue_row("t", bytes([i % 256] * 16), url, "a.test", depth=1)]
        made.append(FrontierCommit(i % 4, 0, numbers[i % 4], queued))
    return made


def damaged_log(directory, change) -> bytes:
    """A log of 40 commits after `change` was made to its bytes; returns them."""
    shutil.rmtree(directory, ignore_errors=True)
    log = CommitLog(directory)
    log.open()
    for commit in real_commits(40):
        log.append([commit])
    log.close()
    path = directory / "00000001.log"
    data = bytearray(path.read_bytes())
    change(data)
    path.write_bytes(data)
    return bytes(data)


def test_no_flipped_bit_drops_later_commits(tmp_path):
    """Of any length, checksum or payload: refused, with nothing changed. Only the last commit may be a torn tail."""
    last = len(frame(_encode(real_commits(40)[-1])))
    size = len(damaged_log(tmp_path / "f", lambda data: None))
    for place in [*range(16, 124), size - last - 1, size - last, size - 1]:

        def flip(data, at=place):
            data[at] ^= 1 << at % 8

        data = damaged_log(tmp_path / "f", flip)
        if place >= size - last:
            assert list(CommitLog(tmp_path / "f").recover()) == real_commits(40)[:-1]
            assert (tmp_path / "f" / f"00000001.log.cut-{size - last}").read_bytes() == data[-last:]
        else:
            with pytest.raises(UserError, match=r"00000001.log is damaged at byte") as caught:
                list(CommitLog(tmp_path / "f").recover())
            assert f"or remove {tmp_path / 'f'}: --resume then begins at the seeds" in str(caught.value)
            assert (tmp_path / "f" / "00000001.log").read_bytes() == data


@pytest.mark.parametrize("block", [(16, 40), (200, 512), (300, 8)])
def test_a_zeroed_block_is_refused(tmp_path, block):
    """Zeros before whole commits are damage, not the tail of a power cut."""
    at, size = block

    def zero(data):
        data[at : at + size] = bytes(size)

    data = damaged_log(tmp_path / "f", zero)
    with pytest.raises(UserError, match=r"is damaged at byte .* commits from byte .* are whole"):
        list(CommitLog(tmp_path / "f").recover())
    assert (tmp_path / "f" / "00000001.log").read_bytes() == data


def test_a_torn_frame_is_kept_as_a_file(tmp_path):
    """What is cut off is not lost: only zeros are."""
    data = damaged_log(tmp_path / "f", lambda data: None)
    path = tmp_path / "f" / "00000001.log"
    path.write_bytes(data[:-5])
    assert len(list(CommitLog(tmp_path / "f").recover())) == 39
    (kept,) = (tmp_path / "f").glob("*.cut-*")
    assert path.read_bytes() + kept.read_bytes() == data[:-5]
    assert len(list(CommitLog(tmp_path / "f").recover())) == 39


def test_a_frame_longer_than_the_file_is_cut_though_its_checksum_fits_the_rest(tmp_path):
    """The length of the last frame was damaged: what follows it would be written into the middle of that frame."""

    def lengthen(data):
        last = len(frame(_encode(real_commits(40)[-1])))
        data[-last] += 1

    damaged_log(tmp_path / "f", lengthen)
    log = CommitLog(tmp_path / "f")
    assert list(log.recover()) == real_commits(40)[:-1]
    log.open()
    log.append([FrontierCommit(0, 0, 99)])
    log.close()
    assert list(CommitLog(tmp_path / "f").recover())[-1] == FrontierCommit(0, 0, 99)


def test_a_torn_tail_that_ends_in_the_numbers_of_a_commit_is_cut(tmp_path):
    """Remains of older data behind the break may look like the beginning of a commit."""
    written(tmp_path)
    path = tmp_path / "00000001.log"
    size = path.stat().st_size
    with path.open("ab") as file:
        file.write(b"broken" + struct.pack("<II", 4, 0) + b"\x93\x00\x00\x06")
    assert list(CommitLog(tmp_path).recover()) == commits(5)
    assert path.stat().st_size == size


def test_zeros_in_a_snapshot_are_not_its_end(tmp_path):
    """The end mark is zeros as well: it counts only where the file ends."""
    path = tmp_path / "00000002.snapshot"
    with path.open("wb") as file:
        write_snapshot(file, [FrontierSnapshot(next_job=i) for i in range(3)])
    data = bytearray(path.read_bytes())
    first = len(frame(_encode(FrontierSnapshot(next_job=0))))
    second = len(_HEADER) + first
    data[second : second + first] = bytes(first)
    path.write_bytes(data)
    with pytest.raises(UserError, match=rf"00000002.snapshot is damaged at byte {second}"):
        list(read_snapshot(path))


def test_a_segment_missing_behind_its_snapshot_is_refused(tmp_path):
    """A snapshot never comes without the segment that goes on from it."""
    log = written(tmp_path)
    log.open()
    log.snapshot([])
    log.close()
    (tmp_path / "00000002.log").unlink()
    with pytest.raises(UserError, match=r"00000002.log is missing"):
        list(CommitLog(tmp_path).recover())


def test_another_version_is_refused(tmp_path):
    """A log of a later format is left alone."""
    written(tmp_path)
    path = tmp_path / "00000001.log"
    data = bytearray(path.read_bytes())
    data[8] = 9
    path.write_bytes(data)
    with pytest.raises(UserError, match="frontier format 9, this program reads 1"):
        list(CommitLog(tmp_path).recover())


def test_other_url_keys_are_refused(tmp_path):
    """A log whose fingerprints another KEY_VERSION made is left alone; so is a snapshot."""
    log = written(tmp_path)
    log.open()
    log.snapshot([])
    log.close()
    for name in ("00000002.log", "00000002.snapshot"):
        path = tmp_path / name
        data = path.read_bytes()
        path.write_bytes(data[:12] + b"\x07" + data[13:])
        with pytest.raises(UserError, match=f"{name} has URL keys of version 7, this program makes version"):
            list(CommitLog(tmp_path).recover())
        path.write_bytes(data)
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
        patch.setattr("nephila.scheduler.durability.commit_log.os.write", lambda fd, data: next(answers)(fd, data))
        with pytest.raises(UserError, match=r"disk full .* --resume"):
            log.append([FrontierCommit(0, 0, 3)])
    assert (tmp_path / "00000001.log").stat().st_size == size
    log.append([FrontierCommit(0, 0, 3)])
    log.close()
    assert [c.sequence for c in CommitLog(tmp_path).recover()] == [1, 2, 3]


def _no_space(fd, data):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_zeros_behind_the_last_frame_are_a_torn_tail(tmp_path):
    """A power cut may leave a file longer than what was written, filled with zeros: they read as no commit."""
    written(tmp_path)
    path = tmp_path / "00000001.log"
    size = path.stat().st_size
    with path.open("ab") as file:
        file.write(bytes(100))
    log = CommitLog(tmp_path)
    assert list(log.recover()) == commits(5)
    assert path.stat().st_size == size


def test_a_missing_first_segment_is_refused(tmp_path):
    """Neither the first segment of all nor the one a snapshot goes on with may be missing without a word."""
    written(tmp_path)
    (tmp_path / "00000001.log").rename(tmp_path / "00000002.log")
    with pytest.raises(UserError, match=r"00000001.log is missing"):
        list(CommitLog(tmp_path).recover())
    log = CommitLog(tmp_path)
    log.open()
    log.snapshot([])
    log.close()
    (tmp_path / "00000003.log").rename(tmp_path / "00000004.log")
    with pytest.raises(UserError, match=r"00000003.log is missing"):
        list(CommitLog(tmp_path).recover())


@pytest.mark.parametrize("kills", [1, 2], ids=["a kill", "another one after a snapshot"])
async def test_max_pages_is_exact_after_a_kill(tmp_path, kills):
    """What was under way at a kill may be in the table already: its place in the budget goes to nobody else."""
    links = [f"http://h{i}.test/" for i in range(20)]
    web = site({url: [] for url in links})
    world = await World(tmp_path, web).start()
    world.crawl(*links[:3], scope=Scope(max_depth=-1, max_pages=3))
    world.hold_receipts = True
    world.run(5)
    assert len(world.rows) == 3
    world = await crash_and_go_on(tmp_path, world, 0)
    if kills == 2:
        rows, world = world.rows, World(tmp_path, web, world.clock)
        world.scheduler.recover()
        world.scheduler.log.open()
        world.scheduler.snapshot()
        world = await World(tmp_path, web, world.clock).start()
        world.rows = rows
    world.crawl(*links, scope=Scope(max_depth=-1, max_pages=3))
    check(world.scheduler.dispatcher)
    world.run(500)
    assert sorted(r.url for r in world.rows.values()) == links[:3]
    assert world.scheduler.ended("t") == {Outcome.STORED: 3}
    await world.scheduler.close()


async def test_a_machine_that_was_booted_waits_for_no_old_clock(tmp_path):
    """Monotonic time begins anew: what a snapshot says of a host in the old one's seconds delays nothing."""
    world = await World(tmp_path, chain(9), ManualClock(monotonic=1e6)).start()
    world.crawl("http://a.test/0", delay_s=1.0)
    world.run(2.5)
    world.scheduler.snapshot()
    again = await World(tmp_path, world.web, ManualClock(world.clock.now(), 5.0)).start()
    again.rows = world.rows
    check(again.scheduler.dispatcher)
    again.run(30)
    assert again.done
    assert len(again.rows) == 9
    await again.scheduler.close()


@pytest.mark.parametrize("snapshot", [False, True], ids=["log only", "with a snapshot"])
async def test_what_is_on_its_way_keeps_its_host_among_many(tmp_path, snapshot):
    """More hosts than are kept as objects: none is forgotten at a restart while a URL of it is under way."""
    urls = [f"http://h{i}.test/" for i in range(40)]
    web = site({url: [] for url in urls})
    settings = {"hot_hosts": 2, "concurrency": 7, "window": 30}
    world = await World(tmp_path, web, **settings).start()
    world.hold_receipts = True
    world.crawl(*urls, delay_s=0.05)
    world.clock.advance(0.15)
    if snapshot:
        world.scheduler.snapshot()
    world.release(4)
    world.clock.advance(0.05)
    world.release(9)
    world.clock.advance(0.15)
    again = await World(tmp_path, web, ManualClock(world.clock.now() + 60, 5.0), **settings).start()
    check(again.scheduler.dispatcher)
    again.rows = world.rows
    again.run()
    assert again.done
    assert sorted(record.url for record in again.rows.values()) == sorted(urls)
    assert again.scheduler.ended("t") == {Outcome.STORED: 40}
    assert all(f.host == f.url.split("/")[2] for f in again.fetched)
    await again.scheduler.close()


async def test_a_changed_scope_outlives_a_snapshot(tmp_path):
    """What is queued is held against the scope of now even if two runs and a snapshot lie between."""
    links = [f"/{i}" for i in range(30)] + ["/secret"]
    web = site({"/": links, **{link: [] for link in links}})
    world = await World(tmp_path, web).start()
    world.crawl("http://a.test/")
    world.run(3)
    world = await crash_and_go_on(tmp_path, world, 0)
    job = crawl_job(
        "t", "t", 2, [], Scope(exclude=["secret"], max_depth=-1), Politeness(delay="1s", respect_robots=False)
    )
    world.bus.publish(JOBS, 0, job)
    world.clock.run_due()
    world.scheduler.log.snapshot(snapshots(world.scheduler.dispatcher))
    world = await crash_and_go_on(tmp_path, world, 0)
    world.run()
    assert world.outcomes()["http://a.test/secret"] == "dropped(excluded)"
    await world.scheduler.close()


async def test_fetches_are_numbered_on_from_rows_whose_log_is_gone(tmp_path):
    """A job of that name begins with the highest number that a row has, after another restart too."""
    for _ in range(2):
        world = World(tmp_path, chain(3))
        world.scheduler.recover()
        assert (world.scheduler.all_ended is None) is not bool(list(tmp_path.glob("*.log")))
        world.scheduler.begin_after({"t": 7, "other": 1})
        await world.start()
        world.crawl("http://a.test/0", "http://a.test/2")
        world.clock.advance(1.05)
        assert world.fetched[0].fetch_no == 7
        world.kill()
    world.run()
    assert {fetched.fetch_no for fetched in world.fetched} == {7}
    assert world.scheduler.all_ended == {"t": 3}
    await world.scheduler.close()


async def test_a_commit_made_during_an_fsync_is_synced_too(tmp_path):
    """No turn has to come for it: the crawl may rest for hours after its last commit."""
    clock = ManualClock()
    scheduler = Scheduler(SchedulerConfig(directory=str(tmp_path)), LocalBus(clock), clock)
    await scheduler.start()
    synced = []
    scheduler.log.sync = lambda: synced.append(scheduler.log.size)
    scheduler.bus.publish(JOBS, 0, crawl_job("t", "t", 1))
    clock.advance(1.0)
    task = scheduler.files.sync
    scheduler.bus.publish(SEEDS, 0, Seed("t", "http://a.test/"))
    clock.run_due()
    await asyncio.wait([task])
    clock.advance(1.0)
    await asyncio.wait([scheduler.files.sync])
    assert synced[-1] == scheduler.log.size
    await scheduler.close()
