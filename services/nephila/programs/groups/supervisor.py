"""The group processes of one program: started, watched, started again, ended. `members.py` has what they share.

A group that dies is started again on its logs. Its requests in flight are queued again, each host after one delay. When
groups keep dying without an ended URL between, the program ends with one line.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import subprocess
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from nephila.downloader.config import DownloaderConfig
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.bus.workers import protocol as p
from nephila.kernel.bus.workers.link import WorkerChannel
from nephila.kernel.bus.workers.socket_pipe import Pipe, connect, pair
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.kernel.runtime.waits import Backoff, OneTimer, sleep
from nephila.kernel.topics import PAGES
from nephila.parser.config import ParserConfig
from nephila.programs.groups.members import GroupMember, Groups
from nephila.programs.workers.child_process import KILL_MARGIN_S, ending, spawn
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.group.scheduler import PARTITIONS

log = logging.getLogger(__name__)

MODULE = "nephila.programs.groups.group"
MAX_FRUITLESS_CRASHES = 5
"""Crashes in a row without an ended URL between them."""
START_AGAIN = Backoff(0.1, 60.0)
CHECK_S = 15.0
"""Seconds between two checks whether the groups answer."""
MAX_MISSED_CHECKS = 4
"""Checks without a sign of a group before it is killed. Checks are counted, not seconds: a main process that was
suspended received nothing either."""
CLOSE_S = 30.0
"""Longest wait for the end of a group that closes its logs."""


class GroupConfigs(msgspec.Struct, frozen=True):
    """The settings of the services of every group."""

    scheduler: SchedulerConfig
    downloader: DownloaderConfig
    parser: ParserConfig


class EndedAtStartError(UserError):
    """A group has ended before it had read its log."""


class _Process:
    """One process of a group, and our end of its pipe."""

    def __init__(
        self,
        member: GroupMember,
        groups: Groups,
        bus: LocalBus,
        clock: Clock,
        on_control: Callable[[_Process, Any], None],
        on_gone: Callable[[_Process, Exception | None], None],
    ) -> None:
        self.member = member
        self.pipe = Pipe(self._on_bytes, partial(on_gone, self))
        self.link = WorkerChannel(bus, self.pipe.write, clock.call_soon, partial(on_control, self), take=groups.take)
        self.popen: subprocess.Popen[bytes] | None = None
        self.recovered: asyncio.Future[p.Recovered] = asyncio.get_running_loop().create_future()
        self.drained = asyncio.Event()
        self.gone = asyncio.Event()
        self.missed_checks = 0
        """Checks in a row without data of it."""

    def _on_bytes(self, data: bytes) -> None:
        self.missed_checks = 0
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
        self._anchors: asyncio.Queue[p.AnchorsOf] = asyncio.Queue()
        self._ending = False
        self._check_timer = OneTimer(clock, self._check)
        self._crashes = 0
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
        """Kill groups whose loop stands still; the others answer."""
        self._check_timer.start(CHECK_S)
        for process in self._processes.values():
            process.missed_checks += 1
            if process.missed_checks > MAX_MISSED_CHECKS and process.popen is not None and not process.gone.is_set():
                log.error("group %d does not answer and is killed", process.member.number)
                process.popen.kill()
            else:
                process.link.send_control(p.Ping())

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
        running = [process for process in self._processes.values() if not process.gone.is_set()]
        for process in running:
            process.link.send_control(p.ReadAnchors(uid))
        with contextlib.suppress(asyncio.TimeoutError):
            for _ in running:
                answer = await asyncio.wait_for(self._anchors.get(), KILL_MARGIN_S)
                anchors.update(answer.anchors)
                of_seeds.update(answer.of_seeds)
        return anchors, of_seeds

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
            await self._reap(process)
        for task in list(self._tasks):
            task.cancel()

    # ---- one process

    async def _spawn(self, member: GroupMember) -> _Process:
        process = _Process(member, self._groups, self._bus, self._clock, self._on_control, self._on_gone)
        ours, theirs = pair()
        try:
            process.popen = spawn(MODULE, theirs.fileno())
        except OSError as error:
            ours.close()
            raise UserError(f"cannot start a group process: {error.strerror}; try --workers 0") from None
        finally:
            theirs.close()
        self._processes[member.number] = process
        await connect(ours, process.pipe)
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
        elif isinstance(control, p.AnchorsOf):
            self._anchors.put_nowait(control)
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
            how = await self._reap(process)
            ended = sum(sum(job.ended.values()) for member in self._groups.members for job in member.report.jobs)
            self._crashes = 0 if ended > self._ended else self._crashes + 1
            self._ended = max(ended, self._ended)
            log.warning("group %d %s; it is started again on its log", process.member.number, how)
            if self._crashes >= MAX_FRUITLESS_CRASHES:
                self._fatal(UserError(f"group processes keep dying ({how}); see nephila doctor"))
                return
            if self._crashes:
                await sleep(self._clock, START_AGAIN.after(self._crashes))
            try:
                process = await self._spawn(process.member)
                await process.recovered
            except EndedAtStartError:
                continue
            except UserError as error:
                self._fatal(error)
            else:
                self._groups.begin(process.member, process.link)
            return

    async def _reap(self, process: _Process) -> str:
        popen = process.popen
        assert popen is not None
        return await ending(popen)

    def _fatal(self, error: BaseException) -> None:
        if not self._ending:
            self._ending = True
            self._on_fatal(error)
