"""With nothing to do the program sleeps until somebody speaks to it."""

from __future__ import annotations

import asyncio

from nephila.downloader.config import DownloaderConfig
from nephila.kernel.runtime.clock import SystemClock
from nephila.parser.config import ParserConfig
from nephila.programs.assembly import ServiceConfigs
from nephila.scheduler.config import SchedulerConfig
from nephila.storage.config import StorageConfig
from nephila_control.http.client import at_directory
from nephila_control.job_types import ApplyJob
from nephila_control.serve import UpProgram

from tests.waits import until

JOB = {
    "apiVersion": "nephila.dev/v1",
    "kind": "CrawlJob",
    "metadata": {"name": "a"},
    "spec": {"seeds": ["http://a.test/"], "paused": True},
}


def timers() -> list[asyncio.TimerHandle]:
    """Instants at which the loop will wake up."""
    return [timer for timer in asyncio.get_running_loop()._scheduled if not timer.cancelled()]


async def test_no_timer_is_left(tmp_path):
    """A job is paused and everything is written: the loop has no instant to wake up at."""
    storage = StorageConfig(directory=tmp_path)
    scheduler = SchedulerConfig(directory=str(tmp_path / "frontier"), fsync_interval_s=0.05)
    up = UpProgram(ServiceConfigs(scheduler, DownloaderConfig(), ParserConfig(), storage), SystemClock())
    ready = asyncio.Event()
    running = asyncio.ensure_future(up.run(lambda jobs: ready.set()))
    await ready.wait()
    assert (await at_directory(tmp_path).apply_job(ApplyJob(job=JOB))).verdict == "created"
    await until(lambda: not timers())
    up.stop()
    await running
    assert [(job.name, job.state, job.queued) for job in up.jobs] == [("a", "paused", 1)]
