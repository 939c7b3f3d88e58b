"""Snapshots of partitions: what is in the blob store, what is in the directory, and what becomes of the log."""

from __future__ import annotations

import asyncio
import random
import shutil

import pytest
from nephila.kernel.layout import layout_of
from nephila.kernel.runtime.errors import TemporaryError, UserError
from nephila.kernel.topics import FRONTIER
from nephila_stores.remote.blobs import DirectoryBlobs

from tests.cluster.scheduler.cluster_rig import PARTITIONS, World, ends, jobs_of, web

HOSTS, PAGES = 6, 9
URLS = HOSTS * (PAGES + 3)


@pytest.fixture
def world(tmp_path):
    """Six sites; a partition's snapshot is taken after a few commits."""
    return World(tmp_path, web(HOSTS, PAGES, more=True), snapshot_bytes=1500)


def used(world: World) -> set[int]:
    """Partitions that have a host."""
    return {world.partition(url) for url in world.site.links}


def begin(world: World) -> None:
    """All sites are told by their first pages."""
    world.submit(*(f"http://h{host}.test/0" for host in range(HOSTS)), robots=True)


async def crawled(world: World, *names: str) -> None:
    """One scheduler after the other, each killed after a part of it."""
    begin(world)
    for i, name in enumerate(names):
        await world.start(name)
        await world.give(name)
        world.check()
        await world.until(URLS * (i + 1) // len(names))
        if i + 1 < len(names):
            world.kill(name)
    world.check()
    assert world.outcomes() == ends(world.site)
    assert len([fetch for fetch in world.fetches if not fetch.url.endswith("/robots.txt")]) == URLS


async def test_the_log_is_cut_behind_a_snapshot_and_another_machine_goes_on(world):
    """Each scheduler has a directory of its own and finds the state in the blob store."""
    await crawled(world, "a", "b", "c")
    assert all(world.broker.first["frontier", p] > 0 for p in used(world))


async def test_a_restart_with_its_disk_fetches_nothing(world, monkeypatch):
    """The directory is as new as the blob store: only manifests are read there."""
    begin(world)
    await world.start("a")
    await world.give("a")
    await world.until(URLS // 2)
    await world.settle()
    world.kill("a")
    read = []
    get = DirectoryBlobs.get
    monkeypatch.setattr(DirectoryBlobs, "get", lambda self, name: read.append(name) or get(self, name))
    await world.start("a")
    await world.give("a")
    assert read
    assert all("/manifests/" in name for name in read), read
    await world.until(URLS)
    world.check()
    assert world.outcomes() == ends(world.site)


async def test_without_a_blob_store_the_log_stays_whole(tmp_path):
    """Snapshots are in the directory; another machine reads the log from its beginning."""
    world = World(tmp_path, web(HOSTS, PAGES, more=True), snapshot_bytes=1500, blobs="")
    await crawled(world, "a", "a", "b")
    assert not any(world.broker.first["frontier", p] for p in range(PARTITIONS))
    assert list((tmp_path / "a" / "p0001").glob("*/snapshot-*"))


async def test_a_bucket_serves_as_a_blob_store(tmp_path, bucket):
    """Over S3's own protocol: the next one, with an empty disk, goes on from the snapshot there."""
    world = World(tmp_path, web(HOSTS, PAGES, more=True), snapshot_bytes=1500, blobs=bucket)
    await crawled(world, "a", "b", "c")
    assert any(world.broker.first["frontier", p] for p in range(PARTITIONS)), "the log was cut behind a snapshot"


@pytest.mark.parametrize("seed", range(4))
async def test_uploads_that_tear_are_invisible(world, seed, monkeypatch):
    """Any object may fail to be written: what was before is found, and the log has not been cut."""
    rng = random.Random(seed)
    put = DirectoryBlobs.put

    def torn(self, name, content):
        if rng.random() < 0.3:
            raise TemporaryError("no room")
        put(self, name, content)

    monkeypatch.setattr(DirectoryBlobs, "put", torn)
    await crawled(world, "a", "b", "c", "d")


async def test_what_older_snapshots_alone_need_is_removed(world):
    """Two manifests and what they name are left of each partition."""
    await crawled(world, "a", "b")
    for p in used(world):
        place = world.root / "blobs" / "frontier" / f"p{p:04d}"
        assert len(list((place / "manifests").iterdir())) <= 2
        assert len([path for path in place.rglob("*") if path.is_file()]) < 20


@pytest.mark.parametrize("seed", range(6))
async def test_kills_with_snapshots_between_any_two_messages(tmp_path, seed):
    """Directories stay or are lost, snapshots are taken all the time, and the broker takes message by message."""
    world = World(tmp_path, web(HOSTS, PAGES, more=True), snapshot_bytes=400)
    world.rng = rng = random.Random(seed)
    begin(world)
    for _ in range(10):
        name = rng.choice("abc")
        if rng.random() < 0.3:
            shutil.rmtree(tmp_path / name, ignore_errors=True)
        await world.start(name)
        await world.give(name)
        world.check()
        for _ in range(rng.randrange(60)):
            world.clock.advance(rng.choice((0.0, 0.0, 0.05, 0.3)))
            world.step()
            if rng.random() < 0.2:
                await world.breathe()
        world.kill(name)
    await world.start("last")
    await world.give("last")
    await world.until(URLS, limit_s=300)
    world.check()
    assert world.outcomes() == ends(world.site)


async def test_a_log_that_was_cut_too_far_is_refused(world):
    """Neither directory nor blob store have what the log has not any more."""
    begin(world)
    await world.start("a")
    await world.give("a")
    await world.until(URLS // 2)
    world.kill("a")
    shutil.rmtree(world.root / "blobs")
    owners = await world.start("b")
    with pytest.raises(UserError, match="no snapshot covers the part before; configure the blob store"):
        await world.refused("b")
    assert not owners.owners


async def test_a_topic_that_was_deleted_is_refused(world):
    """The snapshot is of a log that is not there."""
    begin(world)
    await world.start("a")
    await world.give("a")
    await world.until(URLS // 2)
    world.kill("a")
    for p in range(PARTITIONS):
        del world.broker.logs[FRONTIER.name, p], world.broker.first[FRONTIER.name, p]
    await world.start("b")
    with pytest.raises(UserError, match="the topic was deleted, or its broker lost data"):
        await world.refused("b")


async def test_the_snapshot_of_another_system_is_refused(world, tmp_path):
    """A blob store that belongs to a system with another number of partitions."""
    begin(world)
    await world.start("a")
    await world.give("a")
    await world.until(URLS // 2)
    world.kill("a")
    await world.start("b")
    world.members["b"][0].layout = layout_of(8)
    with pytest.raises(UserError, match=r"of partition \d of 4, not \d of 8; give each system"):
        await world.refused("b")


async def test_a_directory_has_one_scheduler(world):
    """A second one on the same machine says what to do."""
    await world.start("a")
    with pytest.raises(UserError, match=r"a is used by another scheduler; give each scheduler its own directory"):
        await world.start("b", directory=str(world.root / "a"))


async def test_what_is_in_no_snapshot_for_long_gets_into_one(world):
    """The broker keeps its log for a week: a partition to which little happens must not wait for more."""
    begin(world)
    await world.start("a", snapshot_bytes=1 << 20, snapshot_age_s=3600.0)
    await world.give("a")
    await world.until(URLS)
    assert not any(world.broker.first["frontier", p] for p in range(PARTITIONS))
    await world.run(3700.0)
    assert all(world.broker.first["frontier", p] > 0 for p in used(world))
    world.kill("a")
    await world.start("b")
    await world.give("b")
    world.check()
    assert sum(job.counts.ended.total() for job in jobs_of(world.members["b"][1])) == URLS


@pytest.mark.parametrize("seed", range(8))
async def test_partitions_that_are_lost_and_given_again_while_they_are_taken_over(world, seed):
    """A member that is heard too late loses its partitions and gets them back at once, in the middle of taking them
    over: the latest claim counts, and what is left of the others changes nothing."""
    rng = random.Random(seed)
    begin(world)
    owners = await world.start("a")
    await world.give("a")
    member = world.members["a"][0]
    everything = frozenset(range(PARTITIONS))
    for rows in range(8, URLS, 8):
        await world.until(rows)
        owners.on_lost(everything)
        member.forget(set(everything))
        tasks = []
        for _ in range(rng.randrange(1, 5)):
            tasks.append(asyncio.create_task(owners.on_assigned(everything)))
            for _ in range(rng.randrange(30)):
                await asyncio.sleep(0.0005 * rng.random())
                world.clock.run_due()
            owners.on_lost(everything)
        tasks.append(asyncio.create_task(owners.on_assigned(everything)))
        await asyncio.gather(*tasks)
        member.held |= everything
        assert {owner.epoch for owner in owners.owners.values()} <= {
            len(world.broker.logs["frontier", p]) - 1 for p in range(PARTITIONS)
        }
        await world.settle()
        world.check()
    await world.until(URLS)
    world.check()
    assert world.outcomes() == ends(world.site)
