"""Processes that fetch: a silent one is killed, one that cannot live ends the program, none is left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from nephila.kernel import messages as m
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.runtime.waits import Backoff
from nephila.kernel.topics import OUTCOMES, RECORDS, REQUESTS
from nephila.native import parse_url
from nephila.parser.config import ParserConfig
from nephila.programs.workers import child_process, supervisor
from nephila.programs.workers.supervisor import WorkerProcesses

from tests.downloader_settings import downloader_config
from tests.e2e.web import Web, page, serve
from tests.waits import until


def alive(pids: list[int]) -> list[int]:
    """Those that there still are."""
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


class Main:
    """A main process in a few lines: it waits for outcomes."""

    def __init__(self, web: Web, check_s: float = 60.0, count: int = 1, first: int = 0) -> None:
        self.bus = LocalBus(SystemClock())
        config = downloader_config(allow_private=True, host_map=(web.host_map,), address_gap_s=0.0, per_address=0)
        self.outcomes: asyncio.Queue[m.FetchOutcome] = asyncio.Queue()
        self.fatal: asyncio.Queue[BaseException] = asyncio.Queue()
        self.workers = WorkerProcesses(
            count,
            config,
            ParserConfig(),
            self.bus,
            self.bus.clock,
            check_s=check_s,
            first=first,
            on_fatal=self.fatal.put_nowait,
        )
        self.bus.subscribe(OUTCOMES, "scheduler", lambda d: (self.outcomes.put_nowait(d.message), d.ack()), credits=99)
        self.bus.subscribe(RECORDS, "storage", lambda d: d.ack(), credits=99)

    def ask(self, url: str) -> None:
        """As the scheduler would."""
        parts = parse_url(url)
        self.bus.publish(
            REQUESTS, 0, m.FetchRequest("j", parts.fingerprint, url, parts.host_key, fetch_no=1, attempt=1)
        )

    async def ended(self) -> m.FetchOutcome:
        """The next outcome."""
        return await asyncio.wait_for(self.outcomes.get(), 60)


@asynccontextmanager
async def main(web: Web, **settings: object) -> AsyncIterator[Main]:
    """Workers that are closed in the end; none of their processes is left."""
    made = Main(web, **settings)  # type: ignore[arg-type]
    await made.workers.start()
    try:
        yield made
    finally:
        pids = made.workers.pids
        await made.workers.drain(0.5)
        await made.workers.close()
        assert not alive(pids)


async def test_a_worker_that_stands_still_is_replaced(caplog):
    """Frozen, it gives no sign of life; its request comes back and another worker does it."""
    with serve(lambda request: page()) as web:
        async with main(web, check_s=0.1) as rig:
            rig.ask("http://a.test/1")
            assert (await rig.ended()).result is m.FetchResult.FETCHED
            (pid,) = rig.workers.pids
            os.kill(pid, signal.SIGSTOP)
            rig.ask("http://a.test/2")
            assert (await rig.ended()).result is m.FetchResult.LOST
            rig.ask("http://a.test/2")
            assert (await rig.ended()).result is m.FetchResult.FETCHED
            assert pid not in rig.workers.pids
    assert "worker 1 does not answer and is killed" in caplog.messages


async def test_workers_that_cannot_live_end_the_program(monkeypatch, caplog):
    """They die with nothing in their hands, again and again: one line, not a loop."""
    monkeypatch.setattr(supervisor, "START_AGAIN", Backoff(0.0, 0.0))
    monkeypatch.setenv("PYTHONHOME", "/nowhere")
    with serve(lambda request: page()) as web:
        async with main(web, count=2) as rig:
            error = await asyncio.wait_for(rig.fatal.get(), 60)
    assert str(error).startswith("worker processes keep dying (ended with code 1); try --workers 0")
    assert rig.fatal.empty()


async def test_a_drain_waits_for_what_is_under_way():
    """A fetch that ends within the grace is whole; one that does not is given back."""
    release = asyncio.Event()
    loop = asyncio.get_running_loop()
    asked: asyncio.Queue[str] = asyncio.Queue()

    def slow(request):
        loop.call_soon_threadsafe(asked.put_nowait, request.path)
        if request.path == "/slow":
            asyncio.run_coroutine_threadsafe(release.wait(), loop).result(20)
        return page()

    with serve(slow) as web:
        async with main(web) as rig:
            rig.ask("http://a.test/slow")
            rig.ask("http://b.test/never")
            assert {await asked.get(), await asked.get()} == {"/slow", "/never"}
            assert (await rig.ended()).host == "b.test"
            draining = asyncio.ensure_future(rig.workers.drain(20.0))
            await asyncio.sleep(0)
            release.set()
            await asyncio.wait_for(draining, 60)
            outcome = await rig.ended()
            assert (outcome.host, outcome.result) == ("a.test", m.FetchResult.FETCHED)


async def test_more_begin_when_there_is_more_to_do():
    """One is enough for a few requests at a time; a crowd brings another, and not more than allowed."""
    hold = threading.Event()

    def slow(request):
        hold.wait(20)
        return page()

    with serve(slow) as web:
        async with main(web, count=2, first=1) as rig:
            for number in range(8):
                rig.ask(f"http://h{number}.test/")
            await until(lambda: rig.workers.bus.members and not rig.workers.bus.waiting)
            few = len(rig.workers.pids)
            for number in range(8, 24):
                rig.ask(f"http://h{number}.test/")
            await until(lambda: len(rig.workers.bus.members) == 2)
            hold.set()
            for _ in range(24):
                assert (await rig.ended()).result is m.FetchResult.FETCHED
            assert (few, len(rig.workers.pids)) == (1, 2)


def test_signals_while_a_worker_starts_are_for_main(capfd):
    """Ctrl-C reaches the whole group of processes: one that still imports its modules says nothing and goes on."""
    ours, its = socket.socketpair()
    worker = child_process.spawn(supervisor.MODULE, its.fileno())
    its.close()
    for number in (signal.SIGINT, signal.SIGTERM):
        worker.send_signal(number)
    ours.close()
    assert worker.wait(60) == 0
    assert capfd.readouterr().err == ""
