"""The frontier of a directory as its log has it, read while no program or another one runs there. Changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nephila.kernel.runtime.errors import UserError
from nephila.programs.output_directory import OutputDirectory, RunFile

if TYPE_CHECKING:
    from nephila.scheduler.durability.restored import Restored
    from nephila.scheduler.engine.dispatch import Dispatcher

RECOVERIES: Final = 5
"""Readings of the log before giving up: a running crawl may replace its files by a snapshot meanwhile."""


def recorded_frontier(
    directory: OutputDirectory, run: RunFile | None, now: float, utc_now: float
) -> tuple[Dispatcher, Restored]:
    """The frontier restored from its log. Raises `UserError` when there is none or it is damaged."""
    from nephila.kernel.net.robots import product_token
    from nephila.kernel.runtime.config import load
    from nephila.scheduler.config import SchedulerConfig
    from nephila.scheduler.durability.commit_log import CommitLog
    from nephila.scheduler.durability.recovery import open_frontier, restore
    from nephila.scheduler.engine.dispatch import Dispatcher

    log = CommitLog(directory.one_log, read_only=True)
    if not log.exists:
        raise UserError(f"{directory.path} holds no crawl; name its directory with --out")
    settings = {"directory": str(directory.frontier)}
    if run is not None:
        # Whose lines of robots.txt count. The User-Agent of a crawl may come from its environment.
        settings["agent"] = run.agent or product_token(str(run.options.get("user_agent", "")))
    config = load(SchedulerConfig, settings, "environment", "scheduler")
    for _ in range(RECOVERIES):
        files = (log.segments()[:1], log.snapshots())
        dispatcher = Dispatcher(open_frontier(config, read_only=True))
        try:
            restored = restore(dispatcher, log.recover(), now, utc_now)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise UserError(f"cannot read {error.filename or directory.frontier}: {error.strerror}") from None
        if files == (log.segments()[:1], log.snapshots()):
            return dispatcher, restored
    raise UserError(f"the log in {directory.frontier} is being rewritten all the time; ask again")
