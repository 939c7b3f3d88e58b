"""Every service and many jobs in one program that runs until it is stopped: `nephila up`.

Invariants: the jobs are stored only in the frontier's log, so a restart continues all of them; an idle program sleeps
and polls nothing. The caller holds the directory's lock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from nephila.kernel.bus.local import LocalBus
from nephila.kernel.documents.job_document import spec_of, urls_of
from nephila.kernel.messages import Seed
from nephila.kernel.runtime.clock import Clock, SystemClock
from nephila.kernel.topics import JOBS, SEEDS
from nephila.programs.crawl.program import assembly_class
from nephila.programs.service_configs import ServiceConfigs
from nephila_harvest.webhooks.sender import WebhookSender
from nephila_rules.watch import RuleWatcher

from nephila_control.control_servers import ControlServers, TcpAddress
from nephila_control.job_types import SEED_BATCH, Job
from nephila_control.local.backend import LocalBackend
from nephila_control.local.group_backend import GroupBackend
from nephila_control.local.rule_store import RuleStore
from nephila_control.operations import Operations

if TYPE_CHECKING:
    from prometheus_client.registry import Collector


class UpProgram:
    def __init__(
        self,
        configs: ServiceConfigs,
        clock: Clock | None = None,
        rules: Path | None = None,
        tcp: TcpAddress | None = None,
        on_change: Callable[[], None] = lambda: None,
        webhooks: Callable[[Clock], WebhookSender] | None = None,
        beside: Callable[[], list[Collector]] = list,
        sites: Path | None = None,
    ) -> None:
        """`tcp` is the address of the control API in addition to DIR/control.sock. `on_change` is called after a job
        change. `webhooks` builds the sender of changes. `beside` gives metrics of a companion. `sites` is the file of
        the sites; its default is that of the directory."""
        self.clock = clock or SystemClock()
        self.assembly = assembly_class(configs)(
            configs, self.clock, LocalBus(self.clock), on_fatal=self._fatal, on_turn=lambda: self.backend.note()
        )
        directory = configs.storage.directory
        self.rules = RuleWatcher(rules, self.assembly.bus, self.clock) if rules is not None else None
        self._applied_rules = RuleStore(directory, self.assembly.bus)
        parts = self.assembly.control_parts
        kind = LocalBackend if parts.scheduler is not None else GroupBackend
        self.backend = kind(
            parts,
            directory,
            configs.storage.formats,
            configs.storage.store or None,
            files=self.rules,
            rules=self._applied_rules,
            on_change=on_change,
            sites=sites,
        )
        self.control = Operations(self.backend)
        self.webhooks = webhooks(self.clock) if webhooks is not None else None
        self._beside = beside
        metrics = partial(self.assembly.metrics, self._collectors)
        self.servers = ControlServers(
            lambda: self.control, directory, tcp, metrics=metrics, store=configs.storage.store
        )
        self.error: BaseException | None = None
        self.jobs: list[Job] = []
        """The jobs at the end."""
        self.degraded: dict[str, str] = {}
        """Rule → the finding at the end, for degraded rules."""
        self._over = asyncio.Event()

    async def run(self, ready: Callable[[list[Job]], None]) -> None:
        """Serves until `stop` is called, or a write fails for good. `ready` is called once requests are accepted."""
        async with self.assembly.running():
            self._applied_rules.start()
            if self.rules is not None:
                self.rules.start()
            await self._resume()
            await self.servers.open()
            try:
                if self.webhooks is not None:
                    await self.webhooks.start()
                ready(self.control.jobs())
                await self._over.wait()
            finally:
                if self.rules is not None:
                    self.rules.close()
                await self.servers.close()
                await self.assembly.drain(lambda: self.error is None)
                if self.webhooks is not None:
                    await self.webhooks.drain(self.assembly.grace_s)
                    await self.webhooks.close()
        self.jobs = self.control.jobs()
        self.degraded = self.assembly.judge.degraded()

    def _collectors(self) -> list[Collector]:
        from nephila.kernel.runtime.metrics import MetricsCollector
        from nephila_harvest.webhooks.metrics import METRICS

        webhooks = [MetricsCollector("webhooks", self.webhooks, METRICS)] if self.webhooks is not None else []
        return [*webhooks, *self._beside()]

    def stop(self) -> None:
        """Drains and ends; a second call ends the drain at once."""
        if self._over.is_set():
            self.assembly.skip_grace()
        self._over.set()

    async def _resume(self) -> None:
        """Publish the jobs of the log, and their seeds: a crash may have come between a job and its seeds."""
        bus = self.assembly.bus
        for job in self.backend.jobs().values():
            bus.publish(JOBS, 0, job)
            for number, url in enumerate(urls_of(spec_of(job))):
                bus.publish(SEEDS, 0, Seed(job.uid, url, "job"))
                if number % SEED_BATCH == SEED_BATCH - 1:
                    await asyncio.sleep(0)

    def _fatal(self, error: BaseException) -> None:
        self.error = self.error or error
        self.assembly.skip_grace()
        self._over.set()
