"""Processes of groups: a silent one is killed, one that cannot live ends the program, none is left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.documents.job_document import with_spec
from nephila.kernel.messages import CrawlJob, Outcome, Seed
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.runtime.errors import UserError
from nephila.kernel.runtime.waits import Backoff
from nephila.kernel.topics import JOBS, SEEDS
from nephila.programs.groups import child_process, supervisor
from nephila.programs.groups.group_assembly import GroupAssembly
from nephila.programs.option_table import defaults
from nephila.programs.service_configs import make_configs

from tests.e2e.web import Web, page, serve
from tests.waits import until


class Main:
    """The main process of groups, with one job."""

    def __init__(self, web: Web, directory: Path, workers: int = 1) -> None:
        options = {**defaults(), "workers": workers, "allow_private": True, "host_map": [web.host_map]}
        self.fatal: asyncio.Queue[BaseException] = asyncio.Queue()
        clock = SystemClock()
        self.assembly = GroupAssembly(
            make_configs(options, directory, ("sqlite",), paced=False, divided=True),
            clock,
            LocalBus(clock),
            on_fatal=self.fatal.put_nowait,
            on_turn=lambda: None,
        )
        self.bus, self.processes = self.assembly.bus, self.assembly.processes

    def begin(self) -> None:
        self.bus.publish(JOBS, 0, with_spec(CrawlJob(uid="j", name="j"), politeness={"delay": "0"}))

    def seed(self, url: str) -> None:
        self.bus.publish(SEEDS, 0, Seed("j", url))

    async def stored(self, pages: int) -> None:
        """Return when so many pages are stored."""
        await until(lambda: self.assembly.frontier.ended("j")[Outcome.STORED] == pages)


def alive(pids: list[int]) -> list[int]:
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


@asynccontextmanager
async def main(web: Web, directory: Path, workers: int = 1) -> AsyncIterator[Main]:
    """A running main process; none of its children is left."""
    made = Main(web, directory, workers)
    async with made.assembly.running():
        made.begin()
        yield made
        await made.assembly.drain(lambda: True)
        pids = made.processes.pids
    assert not alive(pids)


async def test_a_process_that_stands_still_is_replaced(tmp_path, caplog, monkeypatch):
    """Frozen, it gives no sign of life; the group goes on in another one."""
    monkeypatch.setattr(supervisor, "CHECK_S", 0.1)
    with serve(lambda request: page()) as web:
        async with main(web, tmp_path) as rig:
            rig.seed("http://a.test/1")
            await rig.stored(1)
            (pid,) = rig.processes.pids
            os.kill(pid, signal.SIGSTOP)
            rig.seed("http://a.test/2")
            await rig.stored(2)
            assert pid not in rig.processes.pids
    assert "worker 1 does not answer and is killed" in caplog.messages


async def test_processes_that_cannot_live_end_the_program(tmp_path, monkeypatch):
    """They die with nothing in flight, again and again: one line, not a loop."""
    monkeypatch.setattr(supervisor, "START_AGAIN", Backoff(0.0, 0.0))
    with serve(lambda request: page()) as web:
        async with main(web, tmp_path, workers=2) as rig:
            monkeypatch.setenv("PYTHONHOME", "/nowhere")
            os.kill(rig.processes.pids[0], signal.SIGKILL)
            error = await asyncio.wait_for(rig.fatal.get(), 60)
    assert str(error) == "worker processes keep dying (ended with code 1); see nephila doctor"


async def test_processes_that_cannot_begin_are_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONHOME", "/nowhere")
    with serve(lambda request: page()) as web, pytest.raises(UserError, match="worker 1 ended before"):
        async with main(web, tmp_path):
            pass


async def test_a_group_in_this_process_is_as_one_of_its_own(tmp_path):
    """A divided directory that is continued without worker processes."""
    with serve(lambda request: page()) as web:
        async with main(web, tmp_path, workers=2) as rig:
            rig.seed("http://a.test/1")
            await rig.stored(1)
        async with main(web, tmp_path, workers=0) as rig:
            assert rig.processes.pids == []
            await rig.stored(1)
            rig.seed("http://b.test/2")
            await rig.stored(2)
        async with main(web, tmp_path, workers=2) as rig:
            await rig.stored(2)


def test_signals_while_a_process_starts_are_for_main(capfd):
    """Ctrl-C reaches all processes of the terminal: one that still imports its modules says nothing and goes on."""
    ours, its = socket.socketpair()
    process = child_process.spawn(supervisor.MODULE, its.fileno())
    its.close()
    for number in (signal.SIGINT, signal.SIGTERM):
        process.send_signal(number)
    ours.close()
    assert process.wait(60) == 0
    assert capfd.readouterr().err == ""
