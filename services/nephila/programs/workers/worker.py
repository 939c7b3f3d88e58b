"""A worker process: downloader and parser on a loop of their own, on one end of a pipe to the main process.

It receives its settings first, reports that it is ready, and then takes requests. Bodies stay in the worker unless the
main process has readers of pages. A worker has no state to save: after a crash, the main process has its requests. It
ends with main; signals are forwarded through the pipe.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Callable
from typing import Any

import msgspec

from nephila.downloader.admission.admission import make_budget
from nephila.downloader.config import DownloaderConfig
from nephila.downloader.coordination import Coordination
from nephila.downloader.service import Downloader
from nephila.downloader.service import build as build_downloader
from nephila.kernel.bus.contract import Delivery
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.bus.workers.link import UNBOUNDED, WorkerChannel
from nephila.kernel.bus.workers.protocol import (
    AddressCheck,
    AddressDecision,
    Drain,
    Drained,
    Forget,
    MetricValues,
    Ping,
    Pong,
    ReadMetrics,
    Ready,
    RequestSent,
    WorkerRefused,
    WorkerSettings,
)
from nephila.kernel.bus.workers.socket_pipe import Pipe, connect
from nephila.kernel.messages import FetchRequest
from nephila.kernel.pages.read_pages import ReadPages
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.kernel.topics import DEAD, EXCHANGES, JOBS, OUTCOMES, OUTLINKS, PAGES, RECORDS, RULE_STATS
from nephila.parser.config import ParserConfig
from nephila.parser.service import Parser
from nephila.parser.service import build as build_parser
from nephila.programs.recently_seen import RecentLinks
from nephila.programs.workers.child_process import run_on_pipe

GROUP = "main"


class Worker:
    """Downloader, parser and the link to the main process."""

    def __init__(self) -> None:
        self.clock = SystemClock()
        self.bus = LocalBus(self.clock)
        self.recent = RecentLinks(self.clock)
        self.pipe = Pipe(self._on_bytes, self._on_gone)
        self.link = WorkerChannel(self.bus, self.pipe.write, self.clock.call_soon, self._on_control)
        self._downloader: Downloader | None = None
        self._parser: Parser | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._questions: dict[int, Callable[[bool], None]] = {}
        self._asked = 0
        self._drained = False
        self._over = asyncio.Event()

    async def run(self, end: socket.socket) -> None:
        """Work until the main process is gone."""
        await connect(end, self.pipe)
        await self._over.wait()

    def _on_bytes(self, data: bytes) -> None:
        self.link.receive(data)

    def _on_gone(self, error: Exception | None) -> None:
        self.link.close()
        self._over.set()

    def _on_control(self, control: Any) -> None:
        if isinstance(control, Forget):
            self.recent.forget(control.job)
            return
        if isinstance(control, Ping):
            self.link.send_control(Pong())
            return
        if isinstance(control, ReadMetrics):
            self.link.send_control(MetricValues(self._metric_values()))
            return
        if isinstance(control, AddressDecision):
            self._questions.pop(control.number)(control.allowed)
            return
        task = asyncio.ensure_future(
            self._begin(control) if isinstance(control, WorkerSettings) else self._drain(control)
        )
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _begin(self, settings: WorkerSettings) -> None:
        """Build the services, the far end of the route first."""
        try:
            bus, link = self.bus, self.link
            # A raw page has to be at main before its record; a job is known here before a page of it comes.
            bus.subscribe(JOBS, GROUP, self._on_job, credits=UNBOUNDED)
            for topic in (*((PAGES, EXCHANGES) if settings.pages else ()), OUTCOMES, RECORDS, DEAD, RULE_STATS):
                link.forward(topic, GROUP)
            bus.subscribe(OUTLINKS, GROUP, self._on_outlinks, credits=UNBOUNDED)
            config = msgspec.msgpack.decode(settings.downloader, type=DownloaderConfig)
            budget = make_budget(config.admission, self.clock)
            parser = msgspec.msgpack.decode(settings.parser, type=ParserConfig)
            pages = ReadPages(parser)
            self._parser = build_parser(parser, bus, self.clock, with_judge=False, budget=budget, read_pages=pages)
            coordination = Coordination(self._ask, lambda address, at: link.send_control(RequestSent(address, at)))
            self._downloader = build_downloader(config, bus, self.clock, coordination, budget, pages)
            await self._parser.start()
            await self._downloader.start()
        except UserError as error:
            self.link.send_control(WorkerRefused(str(error), isinstance(error, UsageError)))
        else:
            self.link.send_control(Ready())

    def _metric_values(self) -> dict[str, dict[str, float | dict[str, float]]]:
        # Imported here: most workers never send metrics.
        from nephila.downloader.metrics import METRICS
        from nephila.kernel.runtime.metrics import read_values
        from nephila.parser.metrics import PAGE_METRICS

        assert self._downloader is not None
        assert self._parser is not None  # only a worker that has joined receives `ReadMetrics`
        return {
            "downloader": read_values(self._downloader, METRICS),
            "parser": read_values(self._parser, PAGE_METRICS),
        }

    async def _drain(self, control: Drain) -> None:
        until = self.clock.monotonic() + control.grace_s
        for service in (self._downloader, self._parser):
            if service is not None:
                await service.drain(max(until - self.clock.monotonic(), 0.0))
        if not self._drained:
            self._drained = True
            self.link.send_control(Drained())

    def _ask(self, request: FetchRequest, address: str, answer: Callable[[bool], None]) -> None:
        self._asked += 1
        self._questions[self._asked] = answer
        self.link.send_control(AddressCheck(self._asked, request.job, request.url_key, request.attempt, address))

    def _on_job(self, delivery: Delivery) -> None:
        self.recent.job(delivery.message)
        delivery.ack()

    def _on_outlinks(self, delivery: Delivery) -> None:
        links = self.recent.filter(delivery.message)
        if links is None:
            delivery.ack()
        else:
            delivery.message = links
            self.link.deliver(OUTLINKS, delivery)


def main(arguments: list[str]) -> None:
    """`python -m nephila.programs.workers.worker DESCRIPTOR PARENT`."""
    run_on_pipe(arguments, lambda end: Worker().run(end))


if __name__ == "__main__":
    main(sys.argv[1:])
