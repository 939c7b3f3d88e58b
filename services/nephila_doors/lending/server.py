"""Serves a directory's frontier over DIR/frontier.sock until its last client is gone.

The holder of the directory's lock serves it. A borrower whose connection ends, also by SIGKILL, gives its leases back.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from pathlib import Path
from typing import Final

import msgspec
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.kernel.runtime.waits import wait
from nephila.programs.output_directory import OutputDirectory
from nephila_control.http import unix_socket

from nephila_doors.lending.frontier import Borrower, LentFrontier
from nephila_doors.scrapy import protocol

log = logging.getLogger(__name__)
IDLE_S: Final = 30.0
"""How long a frontier that a spider has started is served without a spider."""


async def serve_frontier(directory: Path, clock: Clock, agent: str, stop: asyncio.Event, *, linger_s: float) -> None:
    """Serves until the event is set, or no client has been connected for `linger_s` (0: for ever). Raises
    `UserError`."""
    output = OutputDirectory(directory)
    with output.locked():
        if output.run_file.exists():
            raise UsageError(f"{directory} holds a crawl of nephila; give the spiders a directory of their own")
        server = _Server(LentFrontier(directory, clock, agent, lambda _: stop.set()), clock, stop)
        await server.run(directory, linger_s)


class _Server:
    def __init__(self, frontier: LentFrontier, clock: Clock, stop: asyncio.Event) -> None:
        self._frontier = frontier
        self._clock = clock
        self._stop = stop
        self._connections: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()

    async def run(self, directory: Path, linger_s: float) -> None:
        await self._frontier.open()
        listener = unix_socket.bind(directory, protocol.SOCKET)
        server = await asyncio.start_unix_server(self._serve, sock=listener)
        ends = [asyncio.ensure_future(work) for work in (self._stop.wait(), self._unused(linger_s))]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()
            # First: a spider that finds no socket starts the next frontier, which waits for the lock.
            (directory / protocol.SOCKET).unlink(missing_ok=True)
            server.close()
            for connection in self._connections:
                connection.cancel()
            await asyncio.gather(*self._connections, return_exceptions=True)
            await self._frontier.close()

    async def _unused(self, linger_s: float) -> None:
        while True:
            self._changed.clear()
            if self._connections or not linger_s:
                await self._changed.wait()
            elif not await wait(self._clock, linger_s, self._changed):
                return

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        self._changed.set()
        borrower: Borrower | None = None
        try:
            borrower = await self._hello(reader, writer)
            while borrower is not None:
                answer = await self._answer(borrower, await _read(reader))
                if answer is not None:
                    writer.write(protocol.frame(answer))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        except (msgspec.MsgspecError, ValueError) as error:
            log.error("a spider sent what is no message: %s", error)
        finally:
            if borrower is not None:
                self._frontier.leave(borrower)
            self._connections.discard(task)
            self._changed.set()
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def _hello(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Borrower | None:
        hello = await _read(reader)
        borrower, error = None, ""
        if not isinstance(hello, protocol.Hello) or hello.version != protocol.VERSION:
            error = "the frontier is served by another version of nephila; end that program"
        else:
            try:
                borrower = self._frontier.join(hello.job, hello.spec, hello.agent)
            except UserError as refused:
                error = str(refused)
        writer.write(protocol.frame(protocol.Settled(error)))
        await writer.drain()
        return borrower

    async def _answer(self, borrower: Borrower, message: protocol.Sent) -> protocol.Answer | None:
        frontier = self._frontier
        match message:
            case protocol.Enqueue():
                return frontier.enqueue(borrower, message)
            case protocol.Ask():
                return await frontier.ask(borrower)
            case protocol.CountRequests():
                return frontier.counts(borrower)
            case protocol.Settle():
                await frontier.settle()
                return protocol.Settled()
            case protocol.Fetched():
                frontier.fetched(borrower, message)
            case protocol.RobotsFetched():
                frontier.robots_fetched(borrower, message)
            case protocol.Done():
                frontier.done(borrower, message.url_keys)
        return None


async def _read(reader: asyncio.StreamReader) -> protocol.Sent:
    size = protocol.HEAD.unpack(await reader.readexactly(protocol.HEAD.size))[0]
    if size > protocol.MAX_FRAME:
        raise ValueError(f"a message of {size:,} bytes is too large")
    message: protocol.Sent = protocol.decode_sent(await reader.readexactly(size))
    return message
