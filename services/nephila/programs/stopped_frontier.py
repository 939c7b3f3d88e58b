"""The control API of a directory in which no program runs: its frontier is opened, changed and closed again.

Nothing is fetched: the scheduler is held from its start to its end. The directory is locked meanwhile.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from nephila.control.local.backend import LocalBackend, Parts
from nephila.control.operations import Operations
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.runtime.config import load
from nephila.kernel.runtime.errors import UserError
from nephila.programs.output_directory import OutputDirectory
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.standalone import Scheduler


@asynccontextmanager
async def stopped_frontier(directory: OutputDirectory) -> AsyncIterator[Operations]:
    """Raises `UserError` when there is no crawl, when it is damaged, or when a program runs there."""
    run = directory.read()
    if run is None or not directory.has_log:
        raise UserError(f"{directory.path} holds no crawl; name its directory with --out")
    rows = directory.rows(run)
    with directory.locked():
        clock = SystemClock()
        bus = LocalBus(clock)
        config = load(SchedulerConfig, {"directory": str(directory.frontier)}, "environment", "scheduler")
        scheduler = Scheduler(config, bus, clock)
        scheduler.hold(True)
        await scheduler.start()
        try:
            store = rows if isinstance(rows, str) else None
            yield Operations(LocalBackend(Parts(bus, clock, scheduler), directory.path, (), store, once=True))
        finally:
            await scheduler.close()
