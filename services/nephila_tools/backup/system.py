"""Backup of a system over Kafka while it crawls, and its restore, on another broker as well.

    frontier/0007/manifest, snapshot-N, *.run    the newest snapshot of a partition, from the blob store
    frontier/0007/log                            its commits behind the snapshot
    topics/outlinks/0007, topics/seeds/0007      links and seeds that the scheduler may not have taken
    topics/jobs, rules, settings, …              the newest message of each key
    rows.dump                                    the database, as of a later time; or PLACE/TIME.rows.dump beside it
    rows-00.dump, rows-01.dump, …                the same of several servers, in the order of storage.store

Offsets of the group are read first, then each frontier, then links and seeds up to their ends, then the rows. A page
whose receipt is in a copied frontier had its links published before, so they are in the copy; a link that comes twice
has no effect. A URL that has ended in the copied frontier has its row in the dump. Requests, pages and records in
flight are not saved: their leases continue or end, and their URLs are fetched once more.

The result of each backup is a message of the topic `members`, under one id: `nephila service members`, `nephila status`
and the metric of the API say that the newest one failed, and why.

A restore publishes the commits under a claim of its own, and writes manifests that name this claim: offsets of the old
broker are gone. The services have to be stopped; members begin with empty directories.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec
from nephila import __version__
from nephila.kernel.bus.contract import LogBus, Receipt, all_of, newest
from nephila.kernel.layout import Layout
from nephila.kernel.messages import FrontierClaim, FrontierManifest, FrontierRecord, MemberState, MemberStatus
from nephila.kernel.runtime.errors import PermanentError, TemporaryError, UsageError, UserError
from nephila.kernel.topics import (
    BACKUP,
    FRONTIER,
    JOBS,
    MEMBERS,
    OUTLINKS,
    RULE_VERDICTS,
    RULES,
    SEEDS,
    SETTINGS,
    Topic,
)
from nephila.scheduler.durability.commit_log import frame, frames
from nephila.storage.source import display_name
from nephila_cluster.kafka.config import KafkaConfig
from nephila_cluster.kafka.grow import grow
from nephila_cluster.kafka.wire import CODECS, FORMATS
from nephila_cluster.scheduler.changelog import LogFilter
from nephila_cluster.scheduler.snapshot_store import SnapshotStore
from nephila_cluster.system_log import System, open_log, read, sets_of
from nephila_stores.remote.blobs import Blobs

from nephila_tools.backup import archive, rows
from nephila_tools.backup.archive import Archive, Manifest

KIND: Final = "system"
INPUTS: Final = (SEEDS, OUTLINKS)
STATES: Final = (JOBS, RULES, SETTINGS, RULE_VERDICTS)
TRIES: Final = 10
BATCH: Final = 200
"""Messages that are published before the broker has confirmed the first of them."""
MEMBER: Final = "restore"
REPORT_S: Final = 30.0
"""Longest time to report how a backup ended."""
_MANIFEST, _LOG = "manifest", "log"


def back_up(path: str, folder: Path, now: float, *, without_rows: bool) -> Path:
    """Back up the system of a settings file; returns where. Raises `UserError`."""
    system, config = read(path, with_rows=not without_rows)
    try:
        target = _back_up(system, config, folder, now, without_rows=without_rows)
    except BaseException as error:
        _report(system, config, now, str(error) or type(error).__name__)
        raise
    _report(system, config, now, "")
    return target


def _report(system: System, config: KafkaConfig, now: float, problem: str) -> None:
    """Tell the members of the system how the backup of `now` ended, if the broker can be reached."""

    async def main() -> None:
        async with open_log(system, config) as bus:
            await publish_result(bus, now, time.time(), problem)

    with contextlib.suppress(UserError, TemporaryError, TimeoutError):
        asyncio.run(asyncio.wait_for(main(), REPORT_S))


async def publish_result(bus: LogBus, began: float, ended: float, problem: str) -> None:
    """Publish how a backup ended."""
    state = MemberState.NOT_READY if problem else MemberState.ENDED
    await bus.publish(
        MEMBERS,
        0,
        MemberStatus(
            *(BACKUP, BACKUP, BACKUP),
            host=socket.gethostname(),
            version=__version__,
            state=state,
            problem=problem,
            started_at=began,
            at=ended,
            interval_s=MEMBERS.expires_s,
        ),
    )


def _back_up(system: System, config: KafkaConfig, folder: Path, now: float, *, without_rows: bool) -> Path:
    written = Archive(folder, KIND, system.place, now)
    try:

        async def main() -> None:
            async with open_log(system, config) as bus:
                await save(bus, system, written)

        asyncio.run(main())
        if not without_rows:
            for name in rows.dump(system.rows, written.target):
                written.added(name)
            written.manifest.rows = display_name(system.rows)
        return written.finish()
    except TemporaryError as error:
        written.abandon()
        raise UserError(f"{system.place}: {error}; repeat the command") from None
    except BaseException:
        written.abandon()
        raise


def _formats() -> list[str]:
    """Type=number of the messages in a backup."""
    types = {topic.message for topic in (*INPUTS, *STATES, FRONTIER)} | {FrontierManifest}
    return sorted(f"{struct.__name__}={FORMATS[struct]}" for struct in types)


def wire_text(layout: Layout) -> str:
    """The file `wire`: the partitions of the system, and the formats of its messages."""
    return " ".join((str(layout.base), str(layout.count), *_formats()))


async def save(bus: LogBus, system: System, written: Archive) -> None:
    """The topics and the snapshots. Raises `TemporaryError`, `UserError`."""
    layout = bus.layout
    written.write("wire", lambda file: file.write(wire_text(layout).encode()))
    partitions = range(layout.count)
    starts = {topic: await _unread(bus, topic, partitions) for topic in INPUTS}
    for partition in partitions:
        await _save_frontier(bus, system, partition, written)
    for topic, first in starts.items():
        bounds = await bus.bounds(topic, partitions)
        for part in sets_of(bus, layout, topic):
            unread = {partition: (first[partition], bounds[partition][1]) for partition in part}
            await _save_ranges(bus, topic, unread, written)
    for topic in STATES:
        _write(written, f"topics/{topic.name}", topic.message, (await newest(bus, topic)).values())


async def _unread(bus: LogBus, topic: Topic, partitions: Iterable[int]) -> dict[int, int]:
    """Partition → first offset that the scheduler may not have taken."""
    committed = await bus.committed("scheduler", topic, partitions)
    bounds = await bus.bounds(topic, partitions)
    return {partition: max(committed.get(partition, 0), first) for partition, (first, _) in bounds.items()}


async def _save_frontier(bus: LogBus, system: System, partition: int, written: Archive) -> None:
    folder = f"{FRONTIER.name}/{partition:04d}/"
    for _ in range(TRIES):
        written.drop(lambda name: name.startswith(folder))
        try:
            await _frontier_once(bus, system, partition, written, folder)
        except (TemporaryError, PermanentError) as error:
            problem = error  # a newer snapshot has replaced objects, or the log before it, meanwhile
            continue
        return
    raise UserError(f"the frontier of partition {partition} cannot be read: {problem}")


async def _frontier_once(bus: LogBus, system: System, partition: int, written: Archive, folder: str) -> None:
    manifest = await asyncio.to_thread(_newest, system, bus.layout, partition)
    first, end = (await bus.bounds(FRONTIER, [partition]))[partition]
    reading = LogFilter(partition)
    if manifest is not None:
        assert system.blobs is not None
        for file in manifest.files:
            await asyncio.to_thread(_save_object, system.blobs, file.object, written, folder + file.name)
        _write(written, folder + _MANIFEST, FrontierManifest, [manifest])
        first = max(first, manifest.offset)
        reading = LogFilter(partition, manifest.epoch, manifest.sequence)
    elif first > 0:
        raise UserError(
            f"frontier/{partition} begins at {first}, and no snapshot covers the part before; the settings must name "
            "the blob store of the schedulers (scheduler: blobs)"
        )
    commits = []
    async for _, records in bus.read(FRONTIER, {partition: (first, end)}):
        commits += [commit for offset, record in records if (commit := reading.take(offset, record)) is not None]
    if reading.birth is not None and manifest is None:
        raise UserError(
            f"partition {partition} was split from {reading.birth.parent} and has no snapshot of its own yet: "
            "repeat the command; schedulers without a blob store never have one (scheduler: blobs)"
        )
    if commits:
        _write(written, folder + _LOG, FrontierRecord, (FrontierRecord(None, commit) for commit in commits))


def _newest(system: System, layout: Layout, partition: int) -> FrontierManifest | None:
    return SnapshotStore(Path(), partition, layout, system.blobs).newest_object()


def _save_object(blobs: Blobs, name: str, written: Archive, target: str) -> None:
    data = blobs.get(name)
    written.write(target, lambda file: file.write(data))


async def _save_ranges(bus: LogBus, topic: Topic, ranges: Mapping[int, tuple[int, int]], written: Archive) -> None:
    messages: dict[int, list[Any]] = {}
    async for partition, records in bus.read(topic, ranges):
        messages.setdefault(partition, []).extend(message for _, message in records)
    for partition in sorted(messages):
        _write(written, f"topics/{topic.name}/{partition:04d}", topic.message, messages[partition])


def _write(written: Archive, name: str, kind: type, messages: Iterable[Any]) -> None:
    """A file of messages, each in a frame with its checksum."""
    codec = CODECS[kind]

    def write(file: BinaryIO) -> None:
        for message in messages:
            file.write(frame(codec.encode(message)))

    written.write(name, write)


# ---- restore


def restore(path: Path, manifest: Manifest, settings: str, *, without_rows: bool) -> None:
    """Fill a system without a frontier; it grows to the partitions of the backup. Raises `UserError`, and `UsageError`
    when something is there already."""
    saved = {file.name for file in manifest.files}
    beside = archive.rows_beside(path)
    dumps = [path / archive.FILES / name for name in sorted(saved) if rows.is_dump(name)]
    dumps = dumps or ([beside] if beside.exists() else [])
    with_rows = bool(dumps) and not without_rows
    system, config = read(settings, with_rows=with_rows)
    archive.verify(path, manifest)
    files = path / archive.FILES
    if "wire" not in saved:
        raise UserError(f"{path} is damaged: it names no file wire; use another backup")
    base_text, count_text, *formats = (files / "wire").read_text().split()
    base, count = int(base_text), int(count_text)
    if other := sorted(set(formats) ^ set(_formats())):
        raise UserError(
            f"{path} has messages in formats that this program does not write ({', '.join(other)}); restore it with "
            f"the program that wrote it: {manifest.program}"
        )
    if base != system.partitions:
        raise UsageError(f"{path} is of a system with {base} partitions, and this one has {system.partitions}")
    if with_rows:
        rows.require_as_many(system.rows, dumps)
        rows.require_empty(system.rows)

    async def main() -> None:
        async with open_log(system, config) as bus:
            present = bus.layout.count
            if present != count:
                await _require_empty(bus, system, saved)
        if present != count:
            await grow(config, count, wait_s=0.0)
        async with open_log(system, config) as bus:
            await load(bus, system, files, saved)

    try:
        asyncio.run(main())
    except TemporaryError as error:
        raise UserError(f"{system.place}: {error}; empty the system and repeat the command") from None
    if with_rows:
        rows.restore(system.rows, dumps)


async def load(bus: LogBus, system: System, files: Path, saved: Iterable[str]) -> None:
    """Publish what a backup has, and put its snapshots into the blob store."""
    names = set(saved)
    await _require_empty(bus, system, names)
    for partition in range(bus.layout.count):
        await _load_frontier(bus, system, partition, files, names)
    for topic in INPUTS:
        for partition in range(bus.layout.count):
            name = f"topics/{topic.name}/{partition:04d}"
            if name in names:
                await _publish(bus, topic, partition, _messages(files / name, topic.message))
    for topic in STATES:
        if (name := f"topics/{topic.name}") not in names:
            raise UserError(f"{files / name} is missing; use another backup")
        await _publish(bus, topic, 0, _messages(files / name, topic.message))


async def _require_empty(bus: LogBus, system: System, names: set[str]) -> None:
    used = [p for p, (_, end) in (await bus.bounds(FRONTIER, range(bus.layout.count))).items() if end]
    if used:
        raise UsageError(
            f"the broker at {system.place} has a frontier already (partition {used[0]}); restore into new topics: "
            "nephila service topics apply on a new broker, or with another kafka.prefix"
        )
    if not any(name.endswith(f"/{_MANIFEST}") for name in names):
        return
    if system.blobs is None:
        raise UsageError("the backup has snapshots, and the settings name no blob store for them (scheduler: blobs)")
    if await asyncio.to_thread(system.blobs.names, FRONTIER.name):
        raise UsageError("scheduler.blobs has snapshots already: name an empty place")


async def _load_frontier(bus: LogBus, system: System, partition: int, files: Path, names: set[str]) -> None:
    folder = f"{FRONTIER.name}/{partition:04d}/"
    if not {folder + _MANIFEST, folder + _LOG} & names:
        return
    now = time.time()
    await _publish(bus, FRONTIER, partition, [FrontierRecord(FrontierClaim(MEMBER, now, now))])
    epoch = bus.last_offset(FRONTIER, partition)
    if folder + _LOG in names:
        await _publish(bus, FRONTIER, partition, _claimed(files / folder / _LOG, epoch))
    if folder + _MANIFEST in names:
        (manifest,) = _messages(files / folder / _MANIFEST, FrontierManifest)
        missing = [file.name for file in manifest.files if folder + file.name not in names]
        if missing:
            raise UserError(f"{files / folder} lacks {missing[0][:80]!r} of its snapshot; use another backup")
        await asyncio.to_thread(_load_snapshot, system, bus.layout, manifest, epoch, files / folder)


def _claimed(path: Path, epoch: int) -> Iterator[FrontierRecord]:
    """The commits, of the epoch of the restore."""
    for record in _messages(path, FrontierRecord):
        record.commit.epoch = epoch
        yield record


def _load_snapshot(system: System, layout: Layout, manifest: FrontierManifest, epoch: int, folder: Path) -> None:
    assert system.blobs is not None
    store = SnapshotStore(Path(), manifest.partition, layout, system.blobs)
    store.put_object(msgspec.structs.replace(manifest, epoch=epoch, offset=epoch), folder)


def _messages(path: Path, kind: type) -> Iterator[Any]:
    codec = CODECS[kind]
    for payload in frames(path.read_bytes()):
        yield codec.decode(payload)


async def _publish(bus: LogBus, topic: Topic, partition: int, messages: Iterable[Any]) -> None:
    waiting: list[Receipt] = []
    for message in messages:
        waiting.append(bus.publish(topic, partition, message))
        if len(waiting) == BATCH:
            await all_of(waiting)
            waiting.clear()
    await all_of(waiting)
