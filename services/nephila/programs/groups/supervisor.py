"""The group processes of one program: started, watched, started again, ended. `members.py` has what they share.

A group that dies is started again on its logs. Its requests in flight are queued again, each host after one delay. A
page that kills its group each time ends as a dead letter (`group_deaths.py`). When groups keep dying and no page is to
blame, the program ends with one line.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import msgspec

from nephila.downloader.config import DownloaderConfig
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.bus.workers import protocol as p
from nephila.kernel.bus.workers.link import WorkerChannel, later
from nephila.kernel.bus.workers.socket_pipe import Pipe
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import NotReadyError, UsageError, UserError
from nephila.kernel.runtime.waits import Backoff, OneTimer, sleep
from nephila.kernel.topics import PAGES
from nephila.parser.config import ParserConfig
from nephila.programs.groups.members import GroupMember, Groups
from nephila.programs.workers.child_process import CHECK_S, KILL_MARGIN_S, ChildProcess
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.group.partition_logs import PARTITIONS

log = logging.getLogger(__name__)

MODULE = "nephila.programs.groups.group"
MAX_IDLE_CRASHES = 5
"""Crashes in a row of groups without a request: no page is the cause."""
MAX_FRUITLESS_CRASHES = 20
"""Crashes in a row without an ended URL between them."""
START_AGAIN = Backoff(0.1, 60.0)
GATHER_S = 0.005
"""Longest wait of links and receipts for others that are written to the pipe with them."""
ANSWER_S = 10.0
"""Longest wait for the answers to a question."""
CLOSE_S = 30.0
"""Longest wait for the end of a group that closes its logs."""


class GroupConfigs(msgspec.Struct, frozen=True):
    """The settings of the services of every group."""

    scheduler: SchedulerConfig
    downloader: DownloaderConfig
    parser: ParserConfig


class EndedAtStartError(UserError):
    """A group has ended before it had read its log."""


class _Process(ChildProcess):
    """One process of a group."""

    def __init__(
        self,
        member: GroupMember,
        groups: Groups,
        bus: LocalBus,
        clock: Clock,
        on_control: Callable[[_Process, Any], None],
        on_gone: Callable[[_Process, Exception | None], None],
    ) -> None:
        super().__init__(f"group {member.number}", Pipe(self._on_bytes, partial(on_gone, self)))
        self.member = member
        self.link = WorkerChannel(
            bus, self.pipe.write, clock.call_soon, partial(on_control, self), groups.take, later(clock, GATHER_S)
        )
        self.recovered: asyncio.Future[p.Recovered] = asyncio.get_running_loop().create_future()
        self.drained = asyncio.Event()
        self.gone = asyncio.Event()

    def _on_bytes(self, data: bytes) -> None:
        self.heard()
        self.link.receive(data)


class GroupProcesses:
    """Starts, watches, drains and ends the groups."""

    def __init__(
        self,
        configs: GroupConfigs,
        groups: Groups,
        bus: LocalBus,
        clock: Clock,
        on_fatal: Callable[[BaseException], None],
    ) -> None:
        self._configs = configs
        self._groups = groups
        self._bus = bus
        self._clock = clock
        self._on_fatal = on_fatal
        self._processes: dict[int, _Process] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._asked: dict[int, tuple[_Process, asyncio.Future[bytes]]] = {}
        """Questions without an answer, by number."""
        self._questions = 0
        self._ending = False
        self._check_timer = OneTimer(clock, self._check)
        self._idle_crashes = self._fruitless_crashes = 0
        self._ended = -1

    @property
    def pids(self) -> list[int]:
        """Process ids of the groups."""
        return [process.popen.pid for process in self._processes.values() if process.popen is not None]

    async def recover(self) -> list[p.Recovered]:
        """Start all groups; return when their logs are read. Raises `UserError`."""
        processes = [await self._spawn(member) for member in self._groups.members]
        return list(await asyncio.gather(*(process.recovered for process in processes)))

    def begin(self) -> None:
        """Let all groups fetch."""
        for process in self._processes.values():
            self._groups.begin(process.member, process.link)
        self._check_timer.start(CHECK_S)

    def _check(self) -> None:
        """Every group should answer."""
        self._check_timer.start(CHECK_S)
        for process in self._processes.values():
            process.check(process.link, answers=not process.gone.is_set())

    async def drain(self, grace_s: float) -> None:
        """Dispatch nothing more. Fetches in flight end within `grace_s` seconds."""
        self._ending = True
        processes = list(self._processes.values())
        for process in processes:
            process.link.send_control(p.Drain(grace_s))
        waits = [asyncio.ensure_future(process.drained.wait()) for process in processes]
        _, late = await asyncio.wait(waits, timeout=grace_s + KILL_MARGIN_S)
        for wait in late:
            wait.cancel()

    async def anchors(self, uid: str) -> tuple[set[str], set[str]]:
        """Anchors of a job's scope, and those that seeds of this run have added."""
        anchors: set[str] = set()
        of_seeds: set[str] = set()
        for number in self._processes:
            with contextlib.suppress(NotReadyError):
                (answer,) = await self.ask([number], "anchors", uid.encode())
                more, more_of_seeds = msgspec.msgpack.decode(answer, type=tuple[list[str], list[str]])
                anchors.update(more)
                of_seeds.update(more_of_seeds)
        return anchors, of_seeds

    async def ask(self, numbers: Iterable[int], kind: str, question: bytes) -> list[bytes]:
        """The answers of these groups. Raises `NotReadyError` when one does not answer, `UserError` for a refusal."""
        return await self._answers([self._ask(self._processes[number], kind, question) for number in numbers])

    async def refetch(self, parts: Mapping[int, bytes]) -> list[bytes]:
        """Send a part of the URLs to fetch again to each of these groups."""
        return await self._answers(
            [self._ask(self._processes[group], "refetch", part) for group, part in parts.items()]
        )

    @staticmethod
    async def _answers(answers: list[asyncio.Future[bytes]]) -> list[bytes]:
        try:
            return list(await asyncio.wait_for(asyncio.gather(*answers), ANSWER_S))
        except TimeoutError:
            raise NotReadyError(f"a group has not answered for {ANSWER_S:g} s; repeat the request") from None

    async def metrics(self) -> dict[str, dict[str, dict[str, float | dict[str, float]]]]:
        """Group → service → metric → value; groups that do not answer are left out."""
        values = {}
        for number in self._processes:
            with contextlib.suppress(NotReadyError):
                (answer,) = await self.ask([number], "metrics", b"")
                values[str(number)] = msgspec.msgpack.decode(answer)
        return values

    def _ask(self, process: _Process, kind: str, question: bytes) -> asyncio.Future[bytes]:
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        if process.gone.is_set() or not process.recovered.done():
            future.set_exception(_not_ready(process))
            return future
        self._questions += 1
        self._asked[self._questions] = process, future
        process.link.send_control(p.Ask(self._questions, kind, question))
        return future

    def _on_answer(self, answer: p.Answer) -> None:
        _, future = self._asked.pop(answer.number)
        if future.done():  # too late
            return
        if answer.error:
            future.set_exception(UserError(answer.error))
        else:
            future.set_result(answer.answer)

    def _end_questions(self, process: _Process) -> None:
        """A process that is gone answers nothing."""
        for number in [number for number, (asked, _) in self._asked.items() if asked is process]:
            _, future = self._asked.pop(number)
            if not future.done():
                future.set_exception(_not_ready(process))

    async def close(self) -> None:
        """Have the groups close their logs, and end them."""
        self._ending = True
        self._check_timer.cancel()
        processes = list(self._processes.values())
        for process in processes:
            process.link.send_control(p.Close())
        waits = [asyncio.ensure_future(process.gone.wait()) for process in processes]
        if waits:
            _, late = await asyncio.wait(waits, timeout=CLOSE_S)
            for wait in late:
                wait.cancel()
        for process in processes:
            if process.popen is not None and not process.gone.is_set():
                log.warning("group %d did not end in time and was killed", process.member.number)
                process.popen.kill()
            process.pipe.close()
            await process.reap()
        for task in list(self._tasks):
            task.cancel()

    # ---- one process

    async def _spawn(self, member: GroupMember) -> _Process:
        process = _Process(member, self._groups, self._bus, self._clock, self._on_control, self._on_gone)
        await process.start(MODULE)
        self._processes[member.number] = process
        encode, configs = msgspec.msgpack.encode, self._configs
        process.link.send_control(
            p.GroupSettings(
                encode(configs.scheduler),
                encode(configs.downloader),
                encode(configs.parser),
                member.partitions.start,
                member.partitions.stop,
                PARTITIONS,
                self._bus.has_reader(PAGES),
            )
        )
        return process

    def _on_control(self, process: _Process, control: Any) -> None:
        if isinstance(control, p.Recovered):
            process.recovered.set_result(control)
        elif isinstance(control, p.Drained):
            process.drained.set()
        elif isinstance(control, p.Answer):
            self._on_answer(control)
        elif isinstance(control, p.WorkerRefused):
            error = UsageError(control.text) if control.usage else UserError(control.text)
            if process.recovered.done():
                self._fatal(error)
            else:
                process.recovered.set_exception(error)
        elif isinstance(control, p.Failed):
            self._fatal(UserError(control.text))
        elif not isinstance(control, p.Pong):
            self._groups.on_control(process.member, control)

    def _on_gone(self, process: _Process, error: Exception | None) -> None:
        """The pipe is closed: the process has ended."""
        if isinstance(error, ValueError):
            log.error("group %d: its message could not be read: %s", process.member.number, error)
        process.gone.set()
        process.drained.set()
        self._groups.lost(process.member)
        self._end_questions(process)
        if not process.recovered.done():
            process.recovered.set_exception(
                EndedAtStartError(f"group {process.member.number} ended before it had read its log; see nephila doctor")
            )
        elif not self._ending:
            task = asyncio.ensure_future(self._replace(process))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _replace(self, process: _Process) -> None:
        """Start the group again, until a process of it has read its logs."""
        while not self._ending:
            how = await process.reap()
            self._count_crash()
            log.warning("group %d %s; it is started again on its log", process.member.number, how)
            if self._idle_crashes >= MAX_IDLE_CRASHES or self._fruitless_crashes >= MAX_FRUITLESS_CRASHES:
                self._fatal(UserError(f"group processes keep dying ({how}); see nephila doctor"))
                return
            if self._idle_crashes:
                await sleep(self._clock, START_AGAIN.after(self._idle_crashes))
            try:
                process = await self._spawn(process.member)
                recovered = await process.recovered
            except EndedAtStartError:
                self._idle_crashes += 1
                continue
            except UserError as error:
                self._fatal(error)
            else:
                had_requests = process.member.deaths.died(recovered.in_flight)
                self._idle_crashes = 0 if had_requests else self._idle_crashes + 1
                self._groups.begin(process.member, process.link)
            return

    def _count_crash(self) -> None:
        """A URL that ended between two crashes makes both counts begin again; that of a dead letter does not."""
        ended = sum(sum(job.ended.values()) for member in self._groups.members for job in member.report.jobs)
        ended -= sum(len(member.deaths.poison) for member in self._groups.members)
        if ended > self._ended:
            self._ended, self._idle_crashes, self._fruitless_crashes = ended, 0, 0
        else:
            self._fruitless_crashes += 1

    def _fatal(self, error: BaseException) -> None:
        if not self._ending:
            self._ending = True
            self._on_fatal(error)


def _not_ready(process: _Process) -> NotReadyError:
    return NotReadyError(f"group {process.member.number} is being started again; repeat the request")
