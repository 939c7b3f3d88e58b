"""A group process: some partitions with scheduler, downloader and parser, on one end of a pipe to the main process.

It receives its settings first, reads its logs, and fetches from `Begin` on. Its rows go to the main process, which has
the one writer of the database; links to other groups go there as well. After a crash the main process starts it again:
its logs have its state, and messages that it had not confirmed are sent again. It ends with the main process.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import msgspec

from nephila.downloader.admission.admission import make_budget
from nephila.downloader.config import DownloaderConfig
from nephila.downloader.coordination import Coordination
from nephila.downloader.refusal import RefuseBrowserRequests
from nephila.downloader.service import Downloader, build_browser
from nephila.downloader.service import build as build_downloader
from nephila.kernel.bus.contract import Receipt
from nephila.kernel.bus.pipe import protocol as p
from nephila.kernel.bus.pipe.link import Channel, later
from nephila.kernel.bus.pipe.socket_pipe import Pipe, connect
from nephila.kernel.layout import layout_of
from nephila.kernel.messages import FetchRequest, FetchResult, QuotaUse
from nephila.kernel.outcomes import given_back
from nephila.kernel.pages.read_pages import ReadPages
from nephila.kernel.reasons.table import Reason
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.kernel.runtime.extensions import extension
from nephila.kernel.runtime.lifecycle import Service
from nephila.kernel.runtime.waits import OneTimer, sleep
from nephila.kernel.topics import EXCHANGES, OUTCOMES, PAGES, REQUESTS, Topic
from nephila.parser.config import ParserConfig
from nephila.parser.service import Parser
from nephila.parser.service import build as build_parser
from nephila.programs.groups.child_process import run_on_pipe
from nephila.programs.groups.worker.group_bus import GroupBus
from nephila.programs.groups.worker.requeue import Requeue
from nephila.programs.groups.worker.suspect_gate import SuspectGate
from nephila.programs.outlink_router import OutlinkRouter
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.group.held_addresses import HeldAddresses
from nephila.scheduler.group.scheduler import GroupScheduler

log = logging.getLogger(__name__)

GROUP = "main"
REPORT_S = 0.2
"""Longest age of a report while something changes."""
GATHER_S = 0.005
"""Longest wait of rows and links for others that are written to the pipe with them."""
FEW_REQUESTS = 8
"""With fewer requests in flight, links do not wait for others of their partition."""
WAITING_HOSTS = 100
ROWS_S = 0.02
"""Interval at which a group that drains looks whether rows are still to come."""


class Group:
    """The services of one group and the link to the main process."""

    def __init__(self) -> None:
        self.clock = SystemClock()
        self.pipe = Pipe(self._on_bytes, self._on_gone)
        self._own: set[int] = set()
        self.bus = GroupBus(self.clock, self._own, self._send, self._note)
        clock = self.clock
        self.link = Channel(
            self.bus, self.pipe.write, clock.call_soon, self._on_control, self.bus.take, later(clock, GATHER_S)
        )
        self._services: _Services | None = None
        self._timer = OneTimer(self.clock, self.report)
        self._idle = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._over = asyncio.Event()
        self._handlers: dict[type[Any], Callable[[Any], None]] = {
            p.GroupSettings: lambda control: self._task(self._recover(control)),
            p.Drain: lambda control: self._task(self._drain(control)),
            p.Close: lambda control: self._task(self._close()),
            p.Ask: self._on_question,
            p.Ping: lambda control: self.link.send_control(p.Pong()),
        }

    async def run(self, end: socket.socket) -> None:
        """Work until the main process is gone, or has ended this one."""
        await connect(end, self.pipe)
        await self._over.wait()

    @property
    def downloaders(self) -> list[Downloader]:
        """What fetches, once the logs are read."""
        return list(self._services.downloaders) if self._services is not None else []

    def _send(self, topic: Topic, partition: int, message: Any) -> Receipt:
        return self.link.send(topic, partition, message)

    def _on_bytes(self, data: bytes) -> None:
        self.link.receive(data)
        self._note()

    def _on_gone(self, error: Exception | None) -> None:
        self.link.close()
        self._over.set()

    def _task(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _on_control(self, control: Any) -> None:
        handler = self._handlers.get(type(control))
        if handler is not None:
            handler(control)
        elif self._services is not None:
            self._services.on_control(control)

    def _on_question(self, question: p.Ask) -> None:
        if self._services is not None:
            self._task(self._services.answer(question))

    def _fatal(self, error: BaseException) -> None:
        self.link.send_control(p.Failed(str(error)))

    async def _recover(self, settings: p.GroupSettings) -> None:
        """Build the services, the far end of the route first, and read the logs."""
        self._own.update(range(settings.first, settings.after))
        try:
            self._services = services = _Services(self, settings)
            restored = services.scheduler.recover()
            await services.start()
        except UserError as error:
            self.link.send_control(p.GroupRefused(str(error), isinstance(error, UsageError)))
            return
        # Main reads the pages in use from the report before it grants any.
        self.report()
        jobs = list(services.scheduler.jobs().values())
        in_flight = list(restored.attempts)
        self.link.send_control(p.Recovered(restored.commits, restored.urls, restored.leased, jobs, in_flight))

    async def _drain(self, control: p.Drain) -> None:
        if self._services is not None:
            await self._services.drain(control.grace_s)
        self.report()
        self.link.send_control(p.Drained())

    async def _close(self) -> None:
        if self._services is not None:
            await self._services.close()
        self.link.flush()
        self.pipe.close()

    # ---- reports

    def _note(self) -> None:
        """The state may have changed: report a change of idleness at once, and all else soon."""
        if self._services is None:
            return
        idle = self._services.scheduler.idle and not self.bus.unacked and not self.link.pending
        if idle != self._idle:
            self._idle = idle
            self.report()
        elif not idle and self._timer.due is None:
            self._timer.start(REPORT_S)

    def report(self) -> None:
        """Report the present state."""
        if self._services is not None:
            self._timer.cancel()
            self.link.send_control(self._services.report(self._idle))

    def on_turn(self) -> None:
        """A pass of the scheduler has ended. What it did by time alone, as the end of a wait, changes an idle group."""
        self._note()
        if self._services is not None and self._timer.due is None:
            self._timer.start(REPORT_S)


class _Services:
    """What a group runs."""

    def __init__(self, group: Group, settings: p.GroupSettings) -> None:
        decode = msgspec.msgpack.decode
        clock, bus, self._link = group.clock, group.bus, group.link
        link = group.link
        held = HeldAddresses(
            lambda address: link.send_control(p.AddressWanted(address)),
            lambda address, free_at: link.send_control(p.AddressReleased(address, free_at)),
        )
        self._report = group.report
        self._wider: set[str] = set()
        """Jobs whose scope has new anchors in this turn of the loop."""
        self._elsewhere: list[QuotaUse] = []
        """What other groups have spent of quotas."""
        layout = layout_of(settings.count)
        self._clock = clock
        self._bus = bus
        self._router = OutlinkRouter(bus, clock, lambda: layout, lambda: self._in_flight < FEW_REQUESTS)
        self.scheduler = GroupScheduler(
            decode(settings.scheduler, type=SchedulerConfig),
            range(settings.first, settings.after),
            bus,
            clock,
            held,
            count=settings.count,
            on_wider=self._on_wider,
            on_turn=group.on_turn,
            on_fatal=group._fatal,
        )
        self._requeue = Requeue(self.scheduler.owners)
        bus.follows_pages = settings.follows_pages
        if settings.pages:
            # A raw page has to be at main before its record.
            link.forward(PAGES, GROUP)
            link.forward(EXCHANGES, GROUP)
        downloader = decode(settings.downloader, type=DownloaderConfig)
        parser = decode(settings.parser, type=ParserConfig)
        budget, pages = make_budget(downloader.admission, clock), ReadPages(parser)
        self.parser: Parser = build_parser(
            parser, self._router, clock, with_judge=False, budget=budget, read_pages=pages
        )
        coordination = Coordination(self._check_late_address, self._on_sent)
        self.downloaders: tuple[Downloader, ...] = (
            build_downloader(downloader, bus, clock, coordination, budget, pages),
        )
        if downloader.browser.enabled:
            self.downloaders = (build_browser(downloader, bus, clock, coordination, budget), *self.downloaders)
        self._handlers: dict[type[Any], Callable[[Any], None]] = {
            p.Begin: self._begin,
            p.Hold: lambda control: self.scheduler.hold(control.held),
            p.PagesGranted: lambda c: self.scheduler.pages_granted(c.job, c.pages, spent=c.spent),
            p.RecallPages: self._recall_pages,
            p.AddressGranted: lambda c: self.scheduler.address_granted(c.address, c.not_before),
            p.RecallAddress: lambda c: self.scheduler.address_recalled(c.address),
            p.QuotasElsewhere: self._quotas_elsewhere,
            p.Forget: lambda control: self._router.recent.forget(control.job),
        }
        self._answers: dict[str, Callable[[bytes], Awaitable[bytes]]] = {
            "anchors": self._anchors,
            "metrics": self._metrics,
            "control": self._control_answer,
            "refetch": self._requeue_part,
            "durable": self._durable,
            "begin-after": self._begin_after,
        }

    async def start(self) -> None:
        """Read jobs and pages; the partitions are held until `Begin`."""
        self.scheduler.start(held=True)
        await self.parser.start()
        for downloader in reversed(self.downloaders):
            await downloader.start()
        if len(self.downloaders) == 1:
            RefuseBrowserRequests(self._bus, self._clock).start()

    def on_control(self, control: Any) -> None:
        self._handlers[type(control)](control)

    def _begin(self, control: p.Begin) -> None:
        if control.suspects or control.poison:
            self._bus.gate = self._gate(control)
        for uid, pages in control.pages.items():
            self.scheduler.pages_granted(uid, pages, spent=False)
        self.scheduler.hold(control.held)

    def _gate(self, control: p.Begin) -> SuspectGate:
        link, bus = self._link, self._bus

        def probe(key: p.Key) -> None:
            link.send_control(p.Probe(key))
            link.flush()  # the process may die within this turn of the loop

        return SuspectGate(
            control.suspects,
            control.poison,
            partial(bus.take, REQUESTS),
            self._end_poison,
            probe,
            lambda key, tried: link.send_control(p.Probed(key, tried)),
        )

    def _end_poison(self, partition: int, request: FetchRequest) -> None:
        """End a URL that kills its group as failed(dead_letter)."""
        log.error(
            "group: dead letter on %s: %s killed its group each time it was fetched alone",
            REQUESTS.name,
            ascii(request.url)[:500],
        )
        error = "the group died each time"
        self._bus.dead_letter(REQUESTS, "group", partition, request, error, request.attempt)
        outcome = given_back(request)
        outcome.result, outcome.reason = FetchResult.FAILED, Reason.DEAD_LETTER
        self._bus.publish(OUTCOMES, partition, outcome)

    def _recall_pages(self, control: p.RecallPages) -> None:
        pages = self.scheduler.take_pages_back(control.job)
        if pages:
            self._link.send_control(p.PagesReturned(control.job, pages))

    def _quotas_elsewhere(self, control: p.QuotasElsewhere) -> None:
        self._elsewhere = control.uses
        self.scheduler.share_quotas(control.uses)

    async def answer(self, question: p.Ask) -> None:
        """Answer a question of the main process."""
        try:
            answer = p.Answer(question.number, await self._answers[question.kind](question.question))
        except UserError as error:
            answer = p.Answer(question.number, b"", str(error))
        # What the question has changed is known at main before the answer.
        self._report()
        self._link.send_control(answer)

    async def _anchors(self, uid: bytes) -> bytes:
        return msgspec.msgpack.encode(sorted(self.scheduler.anchors(uid.decode())))

    async def _metrics(self, question: bytes) -> bytes:
        # Imported here: most groups never send metrics.
        from nephila.downloader.metrics import BROWSER_METRICS, PLAIN_METRICS
        from nephila.kernel.runtime.metrics import read_values
        from nephila.parser.metrics import PAGE_METRICS
        from nephila.scheduler.metrics import FRONTIER_METRICS

        return msgspec.msgpack.encode(
            {
                "scheduler": read_values(self.scheduler, FRONTIER_METRICS),
                "downloader": {
                    **read_values(self.downloaders[-1], PLAIN_METRICS),
                    **read_values(self.downloaders[0], BROWSER_METRICS),
                },
                "parser": read_values(self.parser, PAGE_METRICS),
            }
        )

    async def _requeue_part(self, part: bytes) -> bytes:
        return self._requeue.part(part)

    async def _durable(self, question: bytes) -> bytes:
        self._requeue.end()
        await self.scheduler.durable()
        return b""

    async def _begin_after(self, last_fetches: bytes) -> bytes:
        self.scheduler.begin_after(msgspec.msgpack.decode(last_fetches, type=dict[str, int]))
        return b""

    async def _control_answer(self, question: bytes) -> bytes:
        answers = extension("group-answers")(self.scheduler, self._clock, self.downloaders)
        answer: bytes = await answers.answer(question)
        return answer

    def _on_wider(self, uid: str) -> None:
        """A file of seeds widens the scope of a job many times in a turn of the loop: it is one message."""
        if not self._wider:
            self._clock.call_soon(self._send_wider)
        self._wider.add(uid)

    def _send_wider(self) -> None:
        wider, self._wider = self._wider, set()
        for uid in sorted(wider):
            self._link.send_control(p.Forget(uid))

    def _check_late_address(self, request: FetchRequest, address: str, answer: Any) -> None:
        answer(self.scheduler.check_late_address(request.job, request.url_key, request.attempt, address))

    def _on_sent(self, address: str, at: float) -> None:
        self.scheduler.table.sent(address, at)

    async def drain(self, grace_s: float) -> None:
        """Dispatch nothing more; fetches in flight end within this time."""
        self.scheduler.stop_dispatch()
        until = self._clock.monotonic() + grace_s
        services: tuple[Service, ...] = (*self.downloaders, self.parser)
        for service in services:
            await service.drain(max(until - self._clock.monotonic(), 0.0))
        # Links are confirmed by other groups, which drain as well; credit comes back when main has written rows.
        while self._bus.rows_to_come and self._clock.monotonic() < until:
            await sleep(self._clock, ROWS_S)

    async def close(self) -> None:
        """Close the logs."""
        for downloader in self.downloaders:
            await downloader.close()
        await self.parser.close()
        await self.scheduler.close()

    @property
    def _in_flight(self) -> int:
        return sum(len(frontier.in_flight.leases) for frontier in self.scheduler.frontiers)

    def report(self, idle: bool) -> p.GroupReport:
        """The present state."""
        scheduler = self.scheduler
        if scheduler.has_quotas:
            scheduler.share_quotas(self._elsewhere)
        counters, counts = scheduler.counters, scheduler.counts
        refused = list(counts.refused_seeds)
        counts.refused_seeds.clear()
        return p.GroupReport(
            idle=idle,
            in_flight=self._in_flight,
            outstanding=sum(len(frontier.in_flight) for frontier in scheduler.frontiers),
            requests=counts.requests,
            wire_bytes=counters.wire_bytes,
            next_fetch=scheduler.next_fetch(),
            errors=dict(counts.errors),
            causes=dict(counters.causes),
            first_fault=counters.first_fault,
            refused_seeds=refused,
            hosts_waiting=sum(frontier.store.waiting() for frontier in scheduler.frontiers),
            waiting_for_address=scheduler.waiting_for_address(),
            waiting_hosts=scheduler.waiting_hosts(WAITING_HOSTS) if idle else [],
            jobs=[scheduler.job_report(uid) for uid in scheduler.jobs()],
            uses=scheduler.quota_uses() if scheduler.has_quotas else [],
        )


def main(arguments: list[str]) -> None:
    """`python -m nephila.programs.groups.worker.group DESCRIPTOR PARENT`."""
    run_on_pipe(arguments, lambda end: Group().run(end))


if __name__ == "__main__":
    main(sys.argv[1:])
