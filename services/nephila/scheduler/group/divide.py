"""The frontier of one process, divided among the partitions of groups.

Every partition is restored from the one log, keeps its part (as in a split over Kafka) and writes it as its first
snapshot. The frontier is divided when the last partition is in its place: a crash before that changes nothing, and
after it the one log is only a leftover.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

import msgspec

from nephila.kernel.process.disk import sync_directory
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.durability.commit_log import CommitLog, disk_error
from nephila.scheduler.durability.recovery import Replay, open_frontier
from nephila.scheduler.durability.snapshots import cleanup, snapshots
from nephila.scheduler.engine.dispatch import Dispatcher
from nephila.scheduler.frontier.frontier import PartitionSlice
from nephila.scheduler.group.partition_logs import (
    PARTITIONS,
    directory_of,
    has_parts,
    remove_one_log,
    remove_parts,
)

NOT_LINKED = {".log", ".snapshot", ".tmp"}


def divide(frontier: Path, config: SchedulerConfig, now: float, utc_now: float) -> None:
    """Replace the one log of a frontier by those of `PARTITIONS` partitions, or complete that. Raises `UserError` when
    the log is damaged or the disk refuses. O(partitions x state)."""
    try:
        if not has_parts(frontier):
            remove_parts(frontier)
            _build(frontier, config, now, utc_now)
        remove_one_log(frontier)
        sync_directory(frontier)
    except OSError as error:
        raise disk_error(error, frontier) from None


def _build(frontier: Path, config: SchedulerConfig, now: float, utc_now: float) -> None:
    parts = frontier / "parts.tmp"
    shutil.rmtree(parts, ignore_errors=True)
    try:
        for number in range(PARTITIONS):
            _write_part(frontier, parts, PartitionSlice(number, PARTITIONS), config, now, utc_now)
    except BaseException:
        # The log belongs to another version, or is damaged: the frontier stays as it was.
        shutil.rmtree(parts, ignore_errors=True)
        raise
    for number in range(PARTITIONS):
        if number == PARTITIONS - 1:
            sync_directory(frontier)
        directory_of(parts, number).rename(directory_of(frontier, number))
    sync_directory(frontier)
    parts.rmdir()


def _write_part(
    frontier: Path, parts: Path, part: PartitionSlice, config: SchedulerConfig, now: float, utc_now: float
) -> None:
    directory = directory_of(parts, part.number)
    directory.mkdir(parents=True)
    # The snapshot names these files; none is changed in place.
    for path in frontier.iterdir():
        if path.is_file() and path.suffix not in NOT_LINKED:
            _link(path, directory / path.name)
    # The positions in the one log are those of its own partitions.
    dispatcher = Dispatcher(open_frontier(msgspec.structs.replace(config, directory=str(directory))))
    dispatcher.frontier.begin_turn(now, utc_now)
    replay = Replay(dispatcher)
    for entry in CommitLog(frontier, read_only=True).recover():
        replay.take(entry)
    replay.keep_part(part, born=part.number > 0)
    replay.finish(now, utc_now)
    dispatcher.frontier.pending.commits()  # the snapshot has them
    log = CommitLog(directory)
    log.open()
    log.snapshot(snapshots(dispatcher))
    cleanup(dispatcher.frontier)
    log.close()


def _link(source: Path, target: Path) -> None:
    """A hard link; a copy where the file system has none."""
    with contextlib.suppress(OSError):
        os.link(source, target)
        return
    shutil.copy2(source, target)
