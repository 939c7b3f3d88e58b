"""The operator as a program: wait for the CRDs, wait to lead, then watch and reconcile until a signal or a fault.

IN: resources of one namespace, files of rules. OUT: requests to the control API; status, finalizers and Events. A
process that loses the Lease ends with exit code 1.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from pathlib import Path
from typing import Final

from nephila.control.api import Control
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import UserError
from nephila.operator.cluster import Cluster
from nephila.operator.config import OperatorConfig
from nephila.operator.controller import Controller
from nephila.operator.election import Leadership, wait
from nephila.operator.observer import Observer
from nephila.operator.rule_files import RuleFiles
from nephila.operator.watching import watch

log = logging.getLogger(__name__)

CRD_RETRY_S: Final = 5.0


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
        self.controller = Controller(cluster, observer, clock, config)
        folders = [Path(one) for one in config.rules_folders]
        self._files = RuleFiles(folders, cluster, clock, prune=config.prune_rules, pod=identity) if folders else None
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
        """End soon."""
        self._stop.set()

    async def run(self) -> None:
        """Serve until `stop` or a signal. Raises when the operator cannot continue."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
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
            await wait(self._clock, CRD_RETRY_S)

    async def _lead(self) -> None:
        """Raises when the watch ends by itself, or the Lease is lost."""
        log.info("ready")
        works = [
            watch(self._cluster.namespace, self.controller.on_event, self._stop),
            self.controller.run(),
            self._leadership.hold(),
        ]
        if self._files is not None:
            works.append(self._files.run())
        tasks = [asyncio.ensure_future(work) for work in works]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._stop.set()
            # kopf ends its watches by itself; cancelled, it would log each of them.
            await asyncio.wait(tasks[:1], timeout=5.0)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for task in done:
            task.result()
        if tasks[2] in done:
            raise LeadershipLost("the Lease could not be renewed: another process may lead now")

    async def _until_stop(self, work: object) -> None:
        task = asyncio.ensure_future(work)  # type: ignore[call-overload]
        stop = asyncio.ensure_future(self._stop.wait())
        await asyncio.wait([task, stop], return_when=asyncio.FIRST_COMPLETED)
        for one in (task, stop):
            one.cancel()
        await asyncio.gather(stop, return_exceptions=True)
        if not task.cancelled() and task.done():
            task.result()
