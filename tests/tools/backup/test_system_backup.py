"""A system over Kafka, saved at any point of a crawl and loaded into an empty one, ends with the same rows."""

from __future__ import annotations

from contextlib import asynccontextmanager, nullcontext
from pathlib import Path

import pytest
from nephila.kernel.messages import MemberState, Setting
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.kernel.topics import JOBS, MEMBERS, SETTINGS
from nephila_cluster.system_log import System
from nephila_stores.remote.blobs import DirectoryBlobs
from nephila_tools.backup import archive, system
from nephila_tools.backup.archive import Archive

from tests.cluster.scheduler.cluster_rig import World, ends, web
from tests.fake_kafka import PARTITIONS, FakeKafkaBus

HOSTS, PAGES = 6, 9
URLS = HOSTS * (PAGES + 3)


def system_of(world: World) -> System:
    return System("kafka:9092", PARTITIONS, DirectoryBlobs(Path(world.config["blobs"])), "")


async def saved(world: World, place: Path) -> tuple[Path, set[str]]:
    """A backup of the world, and the names of its files."""
    written = Archive(place, system.KIND, "kafka:9092", 1.7e9)
    await system.save(FakeKafkaBus(world.broker, world.clock, "backup"), system_of(world), written)
    path = written.finish()
    archive.verify(path, archive.read_manifest(path))
    return path / archive.FILES, {file.name for file in archive.read_manifest(path).files}


async def load(world: World, files: Path, names: set[str]) -> None:
    bus = FakeKafkaBus(world.broker, world.clock, "restore")
    await system.load(bus, system_of(world), files, names)


@pytest.mark.parametrize("rows", [0, 1, 7, 20, 45, URLS])
@pytest.mark.parametrize("snapshot_bytes", [2000, 1 << 20], ids=["snapshots", "log"])
async def test_a_backup_at_any_point_leads_to_the_same_rows(tmp_path, rows, snapshot_bytes) -> None:
    first = World(tmp_path / "first", web(HOSTS, PAGES, more=True), snapshot_bytes=snapshot_bytes)
    await first.start("a")
    await first.give("a")
    first.submit(*(f"http://h{host}.test/0" for host in range(HOSTS)))
    await first.until(rows)
    files, names = await saved(first, tmp_path / "backups")
    known = dict(first.rows)

    second = World(tmp_path / "second", first.site, snapshot_bytes=snapshot_bytes)
    second.clock.advance(first.clock.monotonic() - second.clock.monotonic())
    second.rows = known
    await load(second, files, names)
    await second.start("b")
    await second.give("b")
    await second.until(URLS)
    await second.run(200)
    second.check()
    assert second.outcomes() == ends(first.site)
    assert second.twice <= 2 * HOSTS  # what was in flight


async def test_only_an_empty_system_is_filled(tmp_path) -> None:
    world = World(tmp_path / "world", web(HOSTS, PAGES, more=True), snapshot_bytes=2000)
    await world.start("a")
    await world.give("a")
    world.submit("http://h0.test/0")
    await world.until(5)
    files, names = await saved(world, tmp_path / "backups")
    with pytest.raises(UsageError, match=r"has a frontier already"):
        await load(world, files, names)
    other = World(tmp_path / "other", world.site)
    DirectoryBlobs(Path(other.config["blobs"])).put("frontier/p0000/e1/x", b"")
    if any(name.endswith("/manifest") for name in names):
        with pytest.raises(UsageError, match=r"scheduler\.blobs has snapshots already"):
            await load(other, files, names)


async def test_links_that_the_scheduler_has_not_taken_are_saved(tmp_path) -> None:
    """Its frontier may count their page as finished: without them its children would never be crawled."""
    first = World(tmp_path / "first", web(HOSTS, PAGES, more=True))
    await first.start("a")
    await first.give("a")
    first.submit(*(f"http://h{host}.test/0" for host in range(HOSTS)))
    await first.until(5)
    first.members.pop("a")  # what follows is taken by nobody
    await first.run(5)
    files, names = await saved(first, tmp_path / "backups")
    assert any(name.startswith("topics/outlinks/") for name in names)
    second = World(tmp_path / "second", first.site)
    second.clock.advance(first.clock.monotonic() - second.clock.monotonic())
    second.rows = dict(first.rows)
    await load(second, files, names)
    await second.start("b")
    await second.give("b")
    await second.until(URLS)
    assert second.outcomes() == ends(first.site)


async def test_compacted_topics_are_saved_whole(tmp_path) -> None:
    """The broker has removed the first record of each topic: a backup has the newest message of each key."""
    first = World(tmp_path / "first", web(HOSTS, PAGES, more=True))
    await first.start("a")
    await first.give("a")
    first.submit(*(f"http://h{host}.test/0" for host in range(HOSTS)))
    for value in (b"1", b"2", b"3"):
        first.outside.publish(SETTINGS, 0, Setting("crawl-depth", value))
        first.outside.publish(JOBS, 0, first.broker.all(JOBS, 0)[-1])
    await first.until(20)
    assert (first.broker.compact(JOBS), first.broker.compact(SETTINGS)) == (3, 2)
    files, names = await saved(first, tmp_path / "backups")

    second = World(tmp_path / "second", first.site)
    second.clock.advance(first.clock.monotonic() - second.clock.monotonic())
    second.rows = dict(first.rows)
    await load(second, files, names)
    assert second.broker.all(SETTINGS, 0) == [Setting("crawl-depth", b"3")]
    assert len(second.broker.all(JOBS, 0)) == 1
    await second.start("b")
    await second.give("b")
    await second.until(URLS)
    assert second.outcomes() == ends(first.site)


@pytest.mark.parametrize("problem", ["", "the frontier of partition 3 cannot be read"])
def test_how_a_backup_ended_is_published(tmp_path, monkeypatch, problem) -> None:
    """The command says it as well; the newest result replaces the one before."""
    world = World(tmp_path, web(HOSTS, PAGES))

    @asynccontextmanager
    async def open_log(*_: object):
        yield FakeKafkaBus(world.broker, world.clock, "backup")

    async def save(*_: object) -> None:
        if problem:
            raise UserError(problem)

    monkeypatch.setattr(system, "read", lambda *_, **options: (system_of(world), None))
    monkeypatch.setattr(system, "open_log", open_log)
    monkeypatch.setattr(system, "save", save)
    with pytest.raises(UserError, match=problem) if problem else nullcontext():
        system.back_up("system.yaml", tmp_path / "backups", 1.7e9, without_rows=True)
    (result,) = world.broker.all(MEMBERS, 0)
    assert (result.id, result.problem) == ("backup", problem)
    assert result.state is (MemberState.NOT_READY if problem else MemberState.ENDED)


def test_a_broker_that_is_away_hides_no_error(tmp_path, monkeypatch) -> None:
    """The result cannot be published: the line of the backup stays the one that is raised."""
    world = World(tmp_path, web(HOSTS, PAGES))

    @asynccontextmanager
    async def open_log(*_: object):
        raise UserError("the broker does not answer")
        yield

    monkeypatch.setattr(system, "read", lambda *_, **options: (system_of(world), None))
    monkeypatch.setattr(system, "open_log", open_log)
    with pytest.raises(UserError, match="the broker does not answer"):
        system.back_up("system.yaml", tmp_path / "backups", 1.7e9, without_rows=True)
    assert not (tmp_path / "backups").exists() or not list((tmp_path / "backups").iterdir())
