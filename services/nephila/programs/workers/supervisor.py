"""The worker processes of one program: started, watched, replaced, drained. kernel/bus/workers/bus.py gives them work.

Invariants: a worker that dies is replaced, its requests go to others; one that does not end in time is killed, and all
end with this process. When workers keep dying and no page is to blame, the program ends with one line. A worker is
`python -m nephila.programs.workers.worker` on one end of a socket pair: it shares no memory or thread with this
process.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from nephila.downloader.config import DownloaderConfig
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.bus.workers.bus import Workers
from nephila.kernel.bus.workers.protocol import (
    AddressCheck,
    AddressDecision,
    Drained,
    MetricValues,
    ReadMetrics,
    Ready,
    RequestSent,
    WorkerRefused,
    WorkerSettings,
)
from nephila.kernel.bus.workers.socket_pipe import Pipe
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.kernel.runtime.waits import Backoff, OneTimer, sleep
from nephila.kernel.topics import PAGES
from nephila.parser.config import ParserConfig
from nephila.programs.workers.child_process import CHECK_S, KILL_MARGIN_S, ChildProcess

log = logging.getLogger(__name__)

MODULE = "nephila.programs.workers.worker"
MAX_IDLE_CRASHES = 5
"""Crashes in a row of workers without a request: no page is the cause, and a new worker would crash as well."""
MAX_FRUITLESS_CRASHES = 20
"""Crashes in a row without one finished request between them."""
START_AGAIN = Backoff(0.1, 60.0)
"""Seconds before the restart after a second crash in a row; doubles with each."""
METRICS_S = 2.0
"""Longest wait for the metrics of workers; those of a worker that is late are left out."""


class _Process(ChildProcess):
    """One worker."""

    def __init__(
        self,
        number: int,
        workers: Workers,
        clock: Clock,
        on_control: Callable[[_Process, Any], None],
        on_gone: Callable[[_Process, Exception | None], None],
    ) -> None:
        super().__init__(f"worker {number}", Pipe(self._on_bytes, partial(on_gone, self)))
        self.member = workers.connect(number, self.pipe.write, clock.call_soon, partial(on_control, self))
        self.drained = asyncio.Event()
        """It holds no request any more, or has ended."""
        self.metrics: deque[asyncio.Future[MetricValues | None]] = deque()
        """One for each `ReadMetrics` without an answer, in the order of sending."""

    def _on_bytes(self, data: bytes) -> None:
        self.heard()
        self.member.link.receive(data)


class WorkerProcesses:
    """Starts, watches, replaces and drains the workers (`lifecycle.Service`)."""

    def __init__(
        self,
        count: int,
        downloader: DownloaderConfig,
        parser: ParserConfig,
        bus: LocalBus,
        clock: Clock,
        *,
        check_s: float = CHECK_S,
        first: int = 0,
        on_fatal: Callable[[BaseException], None] | None = None,
        late_address_check: Callable[[str, bytes, int, str], bool] = lambda job, url_key, attempt, address: True,
        on_request_sent: Callable[[str, float], None] = lambda address, at: None,
    ) -> None:
        """`first`: workers at the start, one more whenever one of them is loaded; 0: all at once. `on_fatal` is called
        once, when workers cannot be kept alive. `late_address_check`: may an attempt begin on an address that it was
        not counted on; one authority for all workers. `on_request_sent`: a request has reached a paced address."""
        self.bus = Workers(bus, clock, on_busy=self._schedule_check, on_loaded=self._grow)
        self._on_fatal = on_fatal
        self._late_address_check = late_address_check
        self._on_request_sent = on_request_sent
        self._local = bus
        self._clock = clock
        self._count = count
        self._started = min(first or count, count)
        self._growing = False
        self._downloader = downloader
        self._parser = parser
        self._processes: set[_Process] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._check_s = check_s
        self._check_timer = OneTimer(clock, self._check_liveness)
        self._idle_crashes = 0
        self._fruitless_crashes = 0
        self._ending = False

    @property
    def pids(self) -> list[int]:
        """Process ids of the workers there are."""
        return [process.popen.pid for process in self._processes if process.popen is not None]

    async def start(self) -> None:
        """Start the workers and accept requests; requests wait until a worker is ready."""
        self.bus.start()
        for number in range(1, self._started + 1):
            await self._start_one(number)

    async def drain(self, grace_s: float) -> None:
        """Send no more requests. Requests in flight end within `grace_s` seconds or are returned."""
        self._ending = True
        self.bus.drain(grace_s)
        waits = [asyncio.ensure_future(process.drained.wait()) for process in self._processes]
        if waits:
            _, late = await asyncio.wait(waits, timeout=grace_s + KILL_MARGIN_S)
            for wait in late:
                wait.cancel()
        for process in list(self._processes):
            if not process.drained.is_set() and process.popen is not None:
                log.warning("worker %d did not end in time and was killed", process.member.number)
                process.popen.kill()
                await process.drained.wait()

    async def close(self) -> None:
        """End all workers."""
        self._ending = True
        for process in self._processes:
            process.pipe.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*(self._reap(process) for process in list(self._processes)))
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def metrics(self) -> dict[str, MetricValues]:
        """Number of each worker → its metrics now. A worker that ends or does not answer in METRICS_S is left out."""
        waiting: dict[str, asyncio.Future[MetricValues | None]] = {}
        ready = set(self.bus.members)
        for process in self._processes:
            if process.member in ready:
                answer = asyncio.get_running_loop().create_future()
                process.metrics.append(answer)
                process.member.link.send_control(ReadMetrics())
                waiting[str(process.member.number)] = answer
        if not waiting:
            return {}
        await asyncio.wait(waiting.values(), timeout=METRICS_S)
        answers = {number: answer.result() for number, answer in waiting.items() if answer.done()}
        return {number: values for number, values in sorted(answers.items()) if values is not None}

    # ---- one process

    def _grow(self) -> None:
        """Start one more worker, unless the limit is reached or one is starting."""
        if self._started < self._count and not self._growing and not self._ending:
            self._growing = True
            self._started += 1
            self._task(self._start_again(self._started))

    async def _start_again(self, number: int) -> None:
        try:
            await self._start_one(number)
        except UserError as error:
            self._fatal(error)

    async def _start_one(self, number: int) -> None:
        process = _Process(number, self.bus, self._clock, self._on_control, self._on_gone)
        self._processes.add(process)
        try:
            await process.start(MODULE)
        except UserError:
            self._processes.discard(process)
            raise
        encode = msgspec.msgpack.encode
        pages = self._local.has_reader(PAGES)
        process.member.link.send_control(WorkerSettings(encode(self._downloader), encode(self._parser), pages))

    def _schedule_check(self) -> None:
        self._check_timer.start(self._check_s)

    def _check_liveness(self) -> None:
        """Workers that hold requests should answer."""
        for process in self._processes:
            process.check(process.member.link, answers=bool(process.member.load))
        if any(process.member.load for process in self._processes):
            self._schedule_check()

    def _on_control(self, process: _Process, control: Any) -> None:
        if isinstance(control, RequestSent):
            self._on_request_sent(control.address, control.at)
        elif isinstance(control, MetricValues):
            process.metrics.popleft().set_result(control)
        elif isinstance(control, AddressCheck):
            go = self._late_address_check(control.job, control.url_key, control.attempt, control.address)
            process.member.link.send_control(AddressDecision(control.number, go))
        elif isinstance(control, Ready):
            self._growing = False
            if self._ending:
                process.drained.set()
            else:
                self.bus.join(process.member)
        elif isinstance(control, Drained):
            process.drained.set()
        elif isinstance(control, WorkerRefused):
            process.drained.set()
            self._fatal(UsageError(control.text) if control.usage else UserError(control.text))

    def _on_gone(self, process: _Process, error: Exception | None) -> None:
        """The pipe is closed: the process has ended."""
        if process not in self._processes:
            return
        if isinstance(error, ValueError):
            log.error("worker %d: its message could not be read: %s", process.member.number, error)
        lost = self.bus.lost(process.member)
        process.drained.set()
        while process.metrics:
            process.metrics.popleft().set_result(None)
        self._task(self._replace(process, lost))

    async def _replace(self, process: _Process, lost: int) -> None:
        how = await self._reap(process)
        if self._ending:
            return
        self._idle_crashes = 0 if lost else self._idle_crashes + 1
        self._fruitless_crashes = 0 if process.member.done else self._fruitless_crashes + 1
        log.warning("worker %d %s; %s", process.member.number, how, _replacement_text(lost))
        if self._idle_crashes >= MAX_IDLE_CRASHES or self._fruitless_crashes >= MAX_FRUITLESS_CRASHES:
            self._fatal(UserError(f"worker processes keep dying ({how}); try --workers 0, and see nephila doctor"))
            return
        if self._idle_crashes > 1:
            await sleep(self._clock, START_AGAIN.after(self._idle_crashes - 1))
        await self._start_again(process.member.number)

    async def _reap(self, process: _Process) -> str:
        how = await process.reap()
        self._processes.discard(process)
        return how

    def _task(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _fatal(self, error: BaseException) -> None:
        if self._ending:
            return
        self._ending = True
        if self._on_fatal is not None:
            self._on_fatal(error)
        else:
            log.error("%s", error)


def _replacement_text(lost: int) -> str:
    if not lost:
        return "a new one is started"
    return f"a new one is started, and {lost} request{'' if lost == 1 else 's'} made again"
