"""The control API of a directory in which no program runs: its frontier is opened, changed and closed again.

Nothing is fetched: the scheduler is held from its start to its end. The directory is locked meanwhile.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from nephila.downloader.config import DownloaderConfig
from nephila.downloader.fetch_page import config_of
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.runtime.config import load
from nephila.kernel.runtime.errors import UserError
from nephila.programs.control_port import Parts
from nephila.programs.option_values import settings_of
from nephila.programs.output_directory import OutputDirectory, RunFile
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.standalone import Scheduler

from nephila_control.local.backend import LocalBackend
from nephila_control.operations import Operations


@asynccontextmanager
async def stopped_frontier(directory: OutputDirectory) -> AsyncIterator[Operations]:
    """Raises `UserError` when there is no crawl, when it is damaged, or when a program runs there."""
    run = directory.read()
    if run is None or not directory.has_log:
        raise UserError(f"{directory.path} holds no crawl; name its directory with --out")
    rows = directory.rows(run)
    with directory.locked():
        async with held_scheduler(directory) as scheduler:
            store = rows if isinstance(rows, str) else None
            parts = Parts(scheduler.bus, scheduler.clock, scheduler, downloader=_single_fetches(run))
            yield Operations(LocalBackend(parts, directory.path, (), store, once=True))


def _single_fetches(run: RunFile) -> DownloaderConfig:
    """The studio fetches a page under the name of the crawl, and within its egress rules."""
    return config_of(settings_of(run.options, "extract")["downloader"])


@asynccontextmanager
async def held_scheduler(directory: OutputDirectory) -> AsyncIterator[Scheduler]:
    """Opens the scheduler of a directory that the caller has locked; it sends no request."""
    clock = SystemClock()
    config = load(SchedulerConfig, {"directory": str(directory.one_log)}, "environment", "scheduler")
    scheduler = Scheduler(config, LocalBus(clock), clock)
    scheduler.hold(True)
    await scheduler.start()
    try:
        yield scheduler
    finally:
        await scheduler.close()
