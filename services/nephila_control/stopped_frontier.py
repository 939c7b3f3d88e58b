"""The control API of a directory in which no program runs: its frontier is opened, changed and closed again.

Nothing is fetched: the scheduler is held from its start to its end. The directory is locked meanwhile.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from nephila.downloader.config import DownloaderConfig
from nephila.downloader.fetch_page import config_of
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.layout import Layout, layout_of
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.runtime.config import load
from nephila.kernel.runtime.errors import UserError
from nephila.programs.control_port import Parts
from nephila.programs.option_values import settings_of
from nephila.programs.output_directory import OutputDirectory, RunFile
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.engine.refetch import Refetch
from nephila.scheduler.group.held_addresses import HeldAddresses
from nephila.scheduler.group.partition_logs import PARTITIONS
from nephila.scheduler.group.scheduler import GroupScheduler
from nephila.scheduler.partition.owner import PartitionOwner
from nephila.scheduler.standalone import Scheduler

from nephila_control.local.backend import LocalBackend
from nephila_control.local.group_backend import GroupBackend
from nephila_control.local.stopped_groups import StoppedGroups
from nephila_control.operations import Operations


@asynccontextmanager
async def stopped_frontier(directory: OutputDirectory) -> AsyncIterator[Operations]:
    """Raises `UserError` when there is no crawl, when it is damaged, or when a program runs there."""
    run = directory.read()
    if run is None or not directory.has_log:
        raise UserError(f"{directory.path} holds no crawl; name its directory with --out")
    rows = directory.rows(run)
    store, downloader = rows if isinstance(rows, str) else None, _single_fetches(run)
    with directory.locked():
        if directory.has_parts:
            async with _held_groups(directory) as group:
                configs = {"scheduler": group.config}
                groups = StoppedGroups(group)
                parts = Parts(group.bus, group.clock, None, downloader=downloader, configs=configs, groups=groups)
                yield Operations(GroupBackend(parts, directory.path, (), store, once=True))
        else:
            async with _held_scheduler(directory) as scheduler:
                parts = Parts(scheduler.bus, scheduler.clock, scheduler, downloader=downloader)
                yield Operations(LocalBackend(parts, directory.path, (), store, once=True))


def _single_fetches(run: RunFile) -> DownloaderConfig:
    """The studio fetches a page under the name of the crawl, and within its egress rules."""
    return config_of(settings_of(run.options, "extract")["downloader"])


class HeldPartitions:
    """The partitions of a directory that the caller has locked."""

    def __init__(
        self, owners: Mapping[int, PartitionOwner], layout: Layout, durable: Callable[[], Awaitable[None]]
    ) -> None:
        self._owners = owners
        self._layout = layout
        self._durable = durable
        self._refetches: dict[tuple[str, int], Refetch] = {}

    def refetch(self, uid: str, url_key: bytes) -> Refetch | None:
        """What queues ended URLs of a job in the partition of a URL; None for an unknown job."""
        partition = self._layout.of(url_key)
        if (uid, partition) not in self._refetches:
            owner = self._owners[partition]
            job = owner.frontier.jobs.get(uid)
            if job is None:
                return None
            owner.begin_turn()
            self._refetches[uid, partition] = Refetch(owner.dispatcher, job)
        return self._refetches[uid, partition]

    async def commit(self) -> None:
        """Return when all changes survive a power cut; one commit for each partition. Raises `UserError`."""
        for owner in self._owners.values():
            owner.begin_turn()
            owner.wake()
        await self._durable()


@asynccontextmanager
async def held_partitions(directory: OutputDirectory) -> AsyncIterator[HeldPartitions]:
    """Opens the frontier of a directory that the caller has locked; it sends no request."""
    if directory.has_parts:
        async with _held_groups(directory) as group:
            yield HeldPartitions(group.owners, layout_of(PARTITIONS), group.durable)
    else:
        async with _held_scheduler(directory) as scheduler:
            yield HeldPartitions(scheduler.owners, layout_of(1), scheduler.durable)


@asynccontextmanager
async def _held_scheduler(directory: OutputDirectory) -> AsyncIterator[Scheduler]:
    clock = SystemClock()
    scheduler = Scheduler(_config(directory), LocalBus(clock), clock)
    scheduler.hold(True)
    await scheduler.start()
    try:
        yield scheduler
    finally:
        await scheduler.close()


@asynccontextmanager
async def _held_groups(directory: OutputDirectory) -> AsyncIterator[GroupScheduler]:
    """All partitions as one group; without requests no address is wanted."""
    clock = SystemClock()
    addresses = HeldAddresses(lambda address: None, lambda address, free_at: None)
    group = GroupScheduler(_config(directory), range(PARTITIONS), LocalBus(clock), clock, addresses)
    group.recover()
    group.start(held=True)
    try:
        yield group
    finally:
        await group.close()


def _config(directory: OutputDirectory) -> SchedulerConfig:
    return load(SchedulerConfig, {"directory": str(directory.frontier)}, "environment", "scheduler")
