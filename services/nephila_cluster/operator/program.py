"""The operator as a program: wait for the CRDs, wait to lead, then watch and reconcile until a signal or a fault.

IN: resources of its namespaces, files of rules. OUT: requests to the control API; status, finalizers and Events. A
process that loses the Lease ends with exit code 1.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any, Final

from nephila.kernel.process.stop_signals import handle_stop_signals
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import UserError
from nephila.kernel.runtime.waits import sleep
from nephila_control.api import Control

from nephila_cluster.operator.cluster import Cluster
from nephila_cluster.operator.config import OperatorConfig
from nephila_cluster.operator.controller import Controller
from nephila_cluster.operator.election import Leadership
from nephila_cluster.operator.observer import Observer
from nephila_cluster.operator.ownership import Ownership
from nephila_cluster.operator.rule_files import RuleFiles
from nephila_cluster.operator.watching import watch

log = logging.getLogger(__name__)

CRD_RETRY_S: Final = 5.0
END_S: Final = 5.0
"""Longest wait for the end of kopf."""


class LeadershipLost(UserError):
    """Another process may lead now."""


class Operator:
    """One operator while it runs."""

    def __init__(
        self, config: OperatorConfig, control: Control, cluster: Cluster, leases: Cluster, clock: Clock, identity: str
    ) -> None:
        """`leases`: a client of its own, so that no other request delays the Lease. `identity`: the pod's name."""
        self._cluster = cluster
        self._clock = clock
        self._stop = asyncio.Event()
        self._leadership = Leadership(leases, config.lease, identity, config.lease_s, clock)
        observer = Observer(control, clock, config.status_interval_s / 2)
        ownership = Ownership(config.release, config.unlabelled, cluster.namespace, config.namespaces)
        self.controller = Controller(cluster, observer, clock, config, ownership)
        self._namespaces = (cluster.namespace, *config.namespaces)
        folders = [Path(folder) for folder in config.rules_folders]
        self._files = RuleFiles(folders, cluster, clock, config, ownership, pod=identity) if folders else None
        self.unready = "starting"
        """Why it cannot work, in one line; empty when it can, or stands by."""

    @property
    def leads(self) -> bool:
        """Whether this process leads."""
        return self._leadership.leads

    @property
    def refused_files(self) -> dict[str, str]:
        """Files of rules that are refused: file → reason."""
        return self._files.refused if self._files is not None else {}

    def stop(self) -> None:
        """Make the operator end soon."""
        self._stop.set()

    async def run(self) -> None:
        """Serve until `stop` or a signal. Raises when the operator cannot continue."""
        self._handle_signals()
        try:
            await self._until_stop(self._prepare())
            if not self._stop.is_set():
                await self._lead()
        finally:
            self.unready = "ended"
            await self._leadership.release()
        log.info("ended")

    async def _prepare(self) -> None:
        await self._wait_for_crds()
        self.unready = ""
        await self._leadership.acquire()

    async def _wait_for_crds(self) -> None:
        while True:
            try:
                missing = await self._cluster.missing_kinds()
                reason = f"CRDs are absent: {', '.join(missing)}; install them (crds.enabled of the chart)"
            except UserError as error:
                missing, reason = ["?"], str(error)
            if not missing:
                return
            if reason != self.unready:
                log.warning("%s; trying again", reason)
            self.unready = reason
            await sleep(self._clock, CRD_RETRY_S)

    async def _lead(self) -> None:
        """Raises when the watch ends by itself, or the Lease is lost."""
        log.info("ready")
        end, started = asyncio.Event(), asyncio.Event()
        watching = asyncio.ensure_future(watch(self._namespaces, self.controller.on_event, end, started))
        leading = asyncio.ensure_future(self._leadership.hold())
        others: list[asyncio.Future[Any]] = [
            leading,
            asyncio.ensure_future(self.controller.run()),
            asyncio.ensure_future(self._stop.wait()),
            asyncio.ensure_future(self._take_signals(started)),
        ]
        if self._files is not None:
            others.append(asyncio.ensure_future(self._files.run()))
        try:
            done, _ = await asyncio.wait({watching, *others}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            # kopf ends last: it waits for every task that was made after it.
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            end.set()
            await asyncio.wait([watching], timeout=END_S)
            watching.cancel()
        for task in done:
            task.result()
        if leading in done:
            raise LeadershipLost("the Lease could not be renewed: another process may lead now")

    async def _take_signals(self, started: asyncio.Event) -> None:
        """Signals end this program, and it ends kopf."""
        await started.wait()
        self._handle_signals()
        await asyncio.Event().wait()

    def _handle_signals(self) -> None:
        handle_stop_signals(asyncio.get_running_loop(), lambda _: self.stop())

    async def _until_stop(self, work: object) -> None:
        task = asyncio.ensure_future(work)  # type: ignore[call-overload]
        stop = asyncio.ensure_future(self._stop.wait())
        await asyncio.wait([task, stop], return_when=asyncio.FIRST_COMPLETED)
        for waiting in (task, stop):
            waiting.cancel()
        await asyncio.gather(stop, return_exceptions=True)
        if not task.cancelled() and task.done():
            task.result()
