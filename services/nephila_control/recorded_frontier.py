"""The frontier of a directory as its logs have it, read while no program or another one runs there. Changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from nephila.kernel.runtime.errors import UserError
from nephila.programs.output_directory import OutputDirectory, RunFile

if TYPE_CHECKING:
    from pathlib import Path

    from nephila.scheduler.config import SchedulerConfig
    from nephila.scheduler.durability.commit_log import CommitLog
    from nephila.scheduler.durability.restored import Restored
    from nephila.scheduler.engine.dispatch import Dispatcher
    from nephila.scheduler.frontier.frontier import PartitionSlice

RECOVERIES: Final = 5
"""Readings of a log before giving up: a running crawl may replace its files by a snapshot meanwhile."""


class RecordedPartition(msgspec.Struct):
    """A partition, restored from its log."""

    dispatcher: Dispatcher
    restored: Restored
    log: CommitLog


def recorded_frontier(
    directory: OutputDirectory, run: RunFile | None, now: float, utc_now: float, key: bytes | None = None
) -> list[RecordedPartition]:
    """The partitions of a directory, each restored from its log; with `key` that of this URL alone. A running crawl
    by groups goes on meanwhile, so its partitions may be of different moments. Raises `UserError` when there is no log
    or one is damaged."""
    from nephila.kernel.net.robots import product_token
    from nephila.kernel.runtime.config import load
    from nephila.scheduler.config import SchedulerConfig

    if not directory.has_log:
        raise UserError(f"{directory.path} holds no crawl; name its directory with --out")
    settings = {"directory": str(directory.frontier)}
    if run is not None:
        # Whose lines of robots.txt count. The User-Agent of a crawl may come from its environment.
        settings["agent"] = run.agent or product_token(str(run.options.get("user_agent", "")))
    config = load(SchedulerConfig, settings, "environment", "scheduler")
    return [
        _restored(_config_of(part, path, config), part, now, utc_now)
        for part, path in partitions_of(directory)
        if key is None or part.layout.of(key) == part.number
    ]


def _config_of(part: PartitionSlice, path: Path, config: SchedulerConfig) -> SchedulerConfig:
    """A log of groups is not divided further."""
    return msgspec.structs.replace(config, directory=str(path), partitions=config.partitions if part.of == 1 else 1)


def partitions_of(directory: OutputDirectory) -> list[tuple[PartitionSlice, Path]]:
    """The partitions of a directory and where their logs lie: one, or those of groups."""
    from nephila.scheduler.frontier.frontier import WHOLE, PartitionSlice
    from nephila.scheduler.group.partition_logs import PARTITIONS, directory_of

    if not directory.has_parts:
        return [(WHOLE, directory.frontier)]
    return [(PartitionSlice(n, PARTITIONS), directory_of(directory.frontier, n)) for n in range(PARTITIONS)]


def _restored(config: SchedulerConfig, part: PartitionSlice, now: float, utc_now: float) -> RecordedPartition:
    from pathlib import Path

    from nephila.scheduler.durability.commit_log import CommitLog
    from nephila.scheduler.durability.recovery import open_frontier, restore
    from nephila.scheduler.engine.dispatch import Dispatcher

    log = CommitLog(Path(config.directory), read_only=True)
    for _ in range(RECOVERIES):
        files = (log.segments()[:1], log.snapshots())
        dispatcher = Dispatcher(open_frontier(config, read_only=True, part=part))
        try:
            restored = restore(dispatcher, log.recover(), now, utc_now)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise UserError(f"cannot read {error.filename or config.directory}: {error.strerror}") from None
        if files == (log.segments()[:1], log.snapshots()):
            return RecordedPartition(dispatcher, restored, log)
    raise UserError(f"the log in {config.directory} is being rewritten all the time; ask again")
