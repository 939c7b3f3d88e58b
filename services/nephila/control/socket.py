"""The control socket of a program that runs: DIR/control.sock, lines of JSON, one answer for each line in order.

Invariants: only its owner may connect (mode 0600); a line is bounded, and so are the connections; whatever a client
sends or leaves undone, the program goes on. Whoever opens the socket holds the directory's lock, so that a socket
already there is a dead program's. What requests mean is not known here.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import stat
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from nephila.kernel.runtime.errors import UserError

log = logging.getLogger(__name__)
S = TypeVar("S")

NAME = "control.sock"
MAX_LINE = 4 << 20
"""Bytes of a request: the largest document with the longest list of seeds in it."""
MAX_CLIENTS = 64
LONGEST_PATH = 100
"""Bytes that every system takes as the address of a socket; longer ones go through the directory's descriptor."""


class ControlSocket(Generic[S]):
    """Serves `answer` to many clients; `session` makes what belongs to one of them, `leave` ends it."""

    def __init__(
        self,
        directory: Path,
        answer: Callable[[bytes, S], Awaitable[bytes]],
        session: Callable[[], S],
        leave: Callable[[S], None],
    ) -> None:
        self.path = directory / NAME
        self._answer = answer
        self._session = session
        self._leave = leave
        self._server: asyncio.Server | None = None
        self._clients: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Listen. Raises `UserError` when that is impossible."""
        try:
            listener = _bound(self.path)
        except OSError as error:
            raise UserError(f"cannot open {self.path}: {error.strerror or error}") from None
        self._server = await asyncio.start_unix_server(self._connected, sock=listener, limit=MAX_LINE)

    async def close(self) -> None:
        """Take the socket away and end all connections."""
        if self._server is None:
            return
        with contextlib.suppress(OSError):
            self.path.unlink()
        self._server.close()
        for task in self._clients:
            task.cancel()
        if self._clients:
            await asyncio.wait(self._clients)
        self._server = None

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or len(self._clients) >= MAX_CLIENTS:
            writer.write(_refusal(f"more than {MAX_CLIENTS} connections"))
            writer.close()
            return
        self._clients.add(task)
        session = self._session()
        try:
            await self._serve(reader, writer, session)
        except (ConnectionError, asyncio.CancelledError):
            pass  # the client has left, or the program ends
        finally:
            self._clients.discard(task)
            writer.close()
            self._leave(session)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, session: S) -> None:
        while True:
            try:
                line = await reader.readuntil(b"\n")
            except asyncio.IncompleteReadError:
                return
            except asyncio.LimitOverrunError:
                writer.write(_refusal(f"a request is one line of at most {MAX_LINE:,} bytes"))
                await writer.drain()
                await _discard(reader)
                return
            try:
                reply = await self._answer(line, session)
            except Exception as error:
                log.exception("control: a request failed")
                reply = _refusal(f"{type(error).__name__}: {ascii(str(error))[1:-1]}"[:500])
            writer.write(reply)
            await writer.drain()


def connect(directory: Path, timeout_s: float) -> socket.socket | None:
    """A connection to the program that runs in a directory; None when none does."""
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.settimeout(timeout_s)
    try:
        with _address(directory / NAME) as address:
            client.connect(address)
    except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
        client.close()
        return None
    except OSError as error:
        client.close()
        raise UserError(f"cannot ask {directory / NAME}: {error.strerror or error}") from None
    return client


def _bound(path: Path) -> socket.socket:
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise UserError(f"{path} is no socket; move it away")
        path.unlink()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # Of the inode that bind makes: between bind and a chmod anybody could connect.
    before = os.umask(0o177)
    try:
        with _address(path) as address:
            listener.bind(address)
    except BaseException:
        listener.close()
        raise
    finally:
        os.umask(before)
    listener.setblocking(False)
    return listener


@contextlib.contextmanager
def _address(path: Path) -> Iterator[str]:
    """The path as an address. A longer one than addresses may be is said by way of its directory's descriptor."""
    if len(os.fsencode(path)) <= LONGEST_PATH:
        yield str(path)
        return
    if sys.platform != "linux":
        raise UserError(f"{path} is too long for a socket (more than {LONGEST_PATH} bytes); choose a shorter --out")
    fd = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{fd}/{path.name}"
    finally:
        os.close(fd)


async def _discard(reader: asyncio.StreamReader) -> None:
    """Read what the client still sends, within reason: closed at once, it might never see why it was refused."""
    left = 4 * MAX_LINE
    while left > 0 and (chunk := await reader.read(1 << 16)):
        left -= len(chunk)


def _refusal(text: str) -> bytes:
    return msgspec.json.encode({"ok": False, "error": text, "usage": False}) + b"\n"
