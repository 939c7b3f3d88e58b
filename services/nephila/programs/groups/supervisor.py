"""The group processes of one program: started, watched, started again, divided anew, ended.

`members.py` has what they share.

A group that dies is started again on its logs. Its requests in flight are queued again, each host after one delay. A
page that kills its group each time ends as a dead letter (`group_deaths.py`). When groups keep dying and no page is to
blame, the program ends with one line.

For a new division the processes end what they do and close their logs, and others go on with other ranges of the same
logs. Partitions do not move between running processes: each has its share of all limits from its start.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from nephila.downloader.config import DownloaderConfig
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.bus.pipe import protocol as p
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import NotReadyError, UsageError, UserError
from nephila.kernel.runtime.waits import Backoff, OneTimer, sleep
from nephila.kernel.topics import PAGES
from nephila.parser.config import ParserConfig
from nephila.programs.groups.child_process import CHECK_S, KILL_MARGIN_S
from nephila.programs.groups.group_member import GroupMember
from nephila.programs.groups.group_process import EndedAtStartError, GroupProcess
from nephila.programs.groups.members import Groups
from nephila.programs.groups.questions import ANSWER_S, Questions, all_answers
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.group.partition_logs import PARTITIONS, ranges

if TYPE_CHECKING:
    from nephila.programs.groups.worker.group import Group

log = logging.getLogger(__name__)

MODULE = "nephila.programs.groups.worker.group"
MAX_IDLE_CRASHES = 5
"""Crashes in a row of groups without a request: no page is the cause."""
MAX_FRUITLESS_CRASHES = 20
"""Crashes in a row without an ended URL between them."""
START_AGAIN = Backoff(0.1, 60.0)
CLOSE_S = 30.0
"""Longest wait for the end of a group that closes its logs."""
LOAD_S = 30.0
"""Longest wait for new processes before the others stop."""
LAST_FETCHES_S = 4.0
"""Longest wait for fetches in flight before a new division; later ones are returned and made again."""
LAST_ROWS_S = 5.0
"""Longest wait for the receipts of the last rows before a new division."""
POLL_S = 0.01
"""Interval at which a division looks whether the groups are idle."""


class GroupConfigs(msgspec.Struct, frozen=True):
    """The settings of the services of every group."""

    scheduler: SchedulerConfig
    downloader: DownloaderConfig
    parser: ParserConfig


class GroupProcesses:
    """Starts, watches, drains and ends the groups."""

    def __init__(
        self,
        configs: Callable[[int], GroupConfigs],
        groups: Groups,
        bus: LocalBus,
        clock: Clock,
        on_fatal: Callable[[BaseException], None],
        *,
        here: Group | None = None,
    ) -> None:
        """`configs`: the settings of each of so many groups. `here`: the one group, where it runs in this process."""
        self._configs = configs
        self._groups = groups
        self._bus = bus
        self._clock = clock
        self._on_fatal = on_fatal
        self._here = here
        self._processes: dict[int, GroupProcess] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._questions = Questions()
        self._ending = False
        self._division: asyncio.Task[None] | None = None
        """The new division that is in progress."""
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
        self._send_drain(grace_s)
        if self._division is not None:
            await asyncio.wait([self._division])
            self._send_drain(grace_s)
        await _all((process.drained for process in self._processes.values()), grace_s + KILL_MARGIN_S)

    def skip_grace(self) -> None:
        """End a drain at once, if there is one."""
        if self._ending:
            self._send_drain(0.0)

    def _send_drain(self, grace_s: float) -> None:
        for process in self._processes.values():
            process.link.send_control(p.Drain(grace_s))

    async def anchors(self, uid: str) -> set[str]:
        """Anchors of a job's scope."""
        answers = (await self._answers_of_each("anchors", uid.encode())).values()
        return {anchor for answer in answers for anchor in msgspec.msgpack.decode(answer, type=list[str])}

    async def metrics(self) -> dict[str, dict[str, dict[str, float | dict[str, float]]]]:
        """Number of a worker → service → metric → value; those that do not answer are left out."""
        answers = await self._answers_of_each("metrics", b"")
        return {str(number + 1): msgspec.msgpack.decode(answer) for number, answer in answers.items()}

    async def _answers_of_each(self, kind: str, question: bytes) -> dict[int, bytes]:
        """Group → its answer, of those that answer."""
        await self.divided()
        answers = {}
        for number in list(self._processes):
            with contextlib.suppress(NotReadyError):
                (answers[number],) = await self.ask([number], kind, question)
        return answers

    async def ask(self, numbers: Iterable[int], kind: str, question: bytes) -> list[bytes]:
        """The answers of these groups. Raises `NotReadyError` when one does not answer, `UserError` for a refusal."""
        return await all_answers([self._questions.ask(self._processes[number], kind, question) for number in numbers])

    async def begin_after(self, last_fetches: Mapping[str, int]) -> None:
        """The logs are lost, and the table of rows is not. These jobs number their fetches from the highest number of a
        row, so that the row stays and later fetches count."""
        later = {uid: number - 1 for uid, number in last_fetches.items() if number > 1}
        if later:
            await self.ask(self._processes, "begin-after", msgspec.msgpack.encode(later))

    async def refetch(self, parts: Mapping[int, bytes]) -> list[bytes]:
        """Send a part of the URLs to fetch again to each of these groups."""
        return await all_answers(
            [self._questions.ask(self._processes[group], "refetch", part) for group, part in parts.items()]
        )

    async def close(self) -> None:
        """Have the groups close their logs, and end them."""
        self._ending = True
        self._check_timer.cancel()
        if self._division is not None:
            await asyncio.wait([self._division])
        await self._close()
        for task in list(self._tasks):
            task.cancel()

    async def _close(self) -> None:
        processes = list(self._processes.values())
        for process in processes:
            process.link.send_control(p.Close())
        await _all((process.gone for process in processes), CLOSE_S)
        for process in processes:
            if not process.gone.is_set():
                log.warning("%s did not end in time and was killed", process.name)
            await process.kill()

    # ---- a new division

    @property
    def whole(self) -> bool:
        """Each group has a process that works, and none looks for a page that kills it."""
        return not (self._ending or self._division) and all(
            process.ready and process.member.link is process.link and not process.member.deaths.suspects
            for process in self._processes.values()
        )

    async def divided(self) -> None:
        """Return when no division is in progress, or has lasted too long."""
        if self._division is not None:
            await asyncio.wait([self._division], timeout=ANSWER_S)

    def divide(self, count: int, flush: Callable[[], Awaitable[None]]) -> None:
        """Divide the partitions among so many groups, more than there are. `flush` makes the rows durable that have
        arrived. Only while `whole`."""
        self._division = asyncio.ensure_future(self._divide(count, flush))

    async def _divide(self, count: int, flush: Callable[[], Awaitable[None]]) -> None:
        before = self._groups.members
        members = [*before, *(GroupMember(number, range(0)) for number in range(len(before), count))]
        new: list[GroupProcess] = []
        self._groups.changing = True
        try:
            for member in members:
                new.append(await self._start(member))
                new[-1].link.send_control(p.Ping())
            # Their modules are loaded while the others still work.
            await _all((process.loaded for process in new), LOAD_S)
            if await self._stopped(flush):
                await self._close()
                self._groups.divide(members, ranges(count))
                processes, new = new, []
                await self._go_on(processes)
        except UserError as error:
            log.warning("%s; the crawl goes on with as many workers as before: %d", error, len(before))
        except Exception as error:
            self._fatal(error)
        finally:
            self._groups.changing, self._division = False, None
            for process in new:
                await process.kill()
            for process in self._processes.values():
                if process.gone.is_set():
                    self._task(self._replace(process))

    async def _stopped(self, flush: Callable[[], Awaitable[None]]) -> bool:
        """All groups end what they do; False when the program ends meanwhile."""
        processes = self._processes.values()
        self._send_drain(LAST_FETCHES_S)
        await _all((process.drained for process in processes), LAST_FETCHES_S + KILL_MARGIN_S)
        await flush()
        until = self._clock.monotonic() + LAST_ROWS_S
        while not self._ending and self._clock.monotonic() < until:
            if not len(self._questions) and all(process.gone.is_set() or process.member.idle for process in processes):
                break
            await sleep(self._clock, POLL_S)
        for process in processes:
            if process.gone.is_set() and not self._ending:
                log.warning("%s %s; others go on with its logs", process.name, await process.reap())
        return not self._ending

    async def _go_on(self, processes: list[GroupProcess]) -> None:
        """Processes of a new division read the logs, each again until it lives; then they fetch."""
        for process in processes:
            self._take_in(process)
        for process in processes:
            try:
                await process.recovered
            except EndedAtStartError:
                continue
            except UserError as error:
                self._fatal(error)
                return
        while any(process.gone.is_set() for process in self._processes.values()):
            for process in list(self._processes.values()):
                if process.gone.is_set() and await self._restart(process) is None:
                    return
        self._groups.divided()
        for process in self._processes.values():
            self._groups.begin(process.member, process.link)

    # ---- one process

    async def _start(self, member: GroupMember) -> GroupProcess:
        """A process that waits for its settings."""
        process = GroupProcess(member, self._groups, self._bus, self._clock, self._on_control, self._on_gone)
        if self._here is None:
            await process.start(MODULE)
        else:
            await process.start_here(self._here.run)
        return process

    async def _spawn(self, member: GroupMember) -> GroupProcess:
        process = await self._start(member)
        self._take_in(process)
        return process

    def _take_in(self, process: GroupProcess) -> None:
        """The process reads the logs of its group."""
        member = process.member
        self._processes[member.number] = process
        encode, configs = msgspec.msgpack.encode, self._configs(len(self._groups.members))
        process.link.send_control(
            p.GroupSettings(
                encode(configs.scheduler),
                encode(configs.downloader),
                encode(configs.parser),
                member.partitions.start,
                member.partitions.stop,
                PARTITIONS,
                self._bus.has_reader(PAGES),
                self._bus.follows_pages,
            )
        )

    def _on_control(self, process: GroupProcess, control: Any) -> None:
        if isinstance(control, p.Recovered):
            process.recovered.set_result(control)
        elif isinstance(control, p.Drained):
            process.drained.set()
        elif isinstance(control, p.Answer):
            self._questions.answered(control)
        elif isinstance(control, p.GroupRefused):
            error = UsageError(control.text) if control.usage else UserError(control.text)
            if process.recovered.done():
                self._fatal(error)
            else:
                process.recovered.set_exception(error)
        elif isinstance(control, p.Failed):
            self._fatal(UserError(control.text))
        elif isinstance(control, p.Pong):
            process.loaded.set()
        else:
            self._groups.on_control(process.member, control)

    def _on_gone(self, process: GroupProcess, error: Exception | None) -> None:
        """The pipe is closed: the process has ended."""
        if isinstance(error, ValueError):
            log.error("%s: its message could not be read: %s", process.name, error)
        recovered = process.recovered.done()
        process.set_gone()
        if self._processes.get(process.member.number) is not process:
            return
        self._groups.lost(process.member)
        self._questions.gone(process)
        if recovered and not (self._ending or self._groups.changing):
            self._task(self._replace(process))

    def _task(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _replace(self, process: GroupProcess) -> None:
        """The group goes on in another process."""
        replacement = await self._restart(process)
        if replacement is not None:
            self._groups.begin(replacement.member, replacement.link)

    async def _restart(self, process: GroupProcess) -> GroupProcess | None:
        """Start the group again, until a process of it has read its logs; None when the program ends."""
        while not self._ending:
            how = await process.reap()
            self._count_crash()
            log.warning("%s %s; it is started again on its log", process.name, how)
            if self._idle_crashes >= MAX_IDLE_CRASHES or self._fruitless_crashes >= MAX_FRUITLESS_CRASHES:
                self._fatal(UserError(f"worker processes keep dying ({how}); see nephila doctor"))
                return None
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
                return None
            self._idle_crashes = 0 if process.member.deaths.died(recovered.in_flight) else self._idle_crashes + 1
            return process
        return None

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


async def _all(events: Iterable[asyncio.Event], most_s: float) -> None:
    """Return when all events are set, or after so many seconds."""
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    if waits:
        _, late = await asyncio.wait(waits, timeout=most_s)
        for wait in late:
            wait.cancel()
