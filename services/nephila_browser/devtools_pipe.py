"""The pipe between the Playwright driver and a Chromium that Nephila starts itself: two descriptors, and no port.

A port of DevTools accepts every user of the machine. Over a pipe, only the driver drives the browser. The driver starts
`pipe_holder.py` in the place of a browser. That process sends the two descriptors over a socket in the profile, whose
directory only this user may enter; Chromium inherits them.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from pathlib import Path
from types import TracebackType
from typing import Final

from nephila.kernel.reasons.table import Reason

from nephila_browser import pipe_holder
from nephila_browser.engine import RenderError

SOCKET: Final = "devtools"


class PipeEnds:
    """The descriptors for Chromium: it reads `commands` and writes `responses`. Closed at the end of the block."""

    def __init__(self, commands: int, responses: int) -> None:
        self.commands = commands
        self.responses = responses

    def __enter__(self) -> PipeEnds:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        os.close(self.commands)
        os.close(self.responses)


class DevToolsPipe:
    """Receives the descriptors of one browser. The holder ends with `close`."""

    def __init__(self, directory: str) -> None:
        """`directory`: the profile. Raises `RenderError` with the reason browser."""
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.setblocking(False)
        self._connection: socket.socket | None = None
        try:
            _bind(self._listener, directory)
        except OSError as error:
            self._listener.close()
            raise RenderError(Reason.BROWSER, f"no socket for DevTools in {directory}: {error}") from None
        self._listener.listen(1)
        self.executable = sys.executable
        self.arguments = ("-I", "-S", str(Path(pipe_holder.__file__)), directory, SOCKET)
        """The command of the holder, for the driver."""

    async def receive(self) -> PipeEnds:
        """The descriptors, when the holder has sent them. Raises `RenderError` with the reason browser."""
        await _readable(self._listener)
        self._connection, _ = self._listener.accept()
        self._connection.setblocking(False)
        await _readable(self._connection)
        _, descriptors, _, _ = socket.recv_fds(self._connection, 1, 2)
        if len(descriptors) != 2:
            for descriptor in descriptors:
                os.close(descriptor)
            raise RenderError(Reason.BROWSER, "the driver has passed no pipe")
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)  # another child would keep the pipe open
        return PipeEnds(*descriptors)

    def close(self) -> None:
        """End the holder."""
        self._listener.close()
        if self._connection is not None:
            self._connection.close()


def _bind(listener: socket.socket, directory: str) -> None:
    """Bind to a file of the directory. The path of a Unix socket has 107 characters at most; on Linux the path by a
    descriptor is short."""
    if sys.platform != "linux":
        listener.bind(os.path.join(directory, SOCKET))
        return
    descriptor = os.open(directory, os.O_PATH | os.O_DIRECTORY)
    try:
        listener.bind(f"/proc/self/fd/{descriptor}/{SOCKET}")
    finally:
        os.close(descriptor)


async def _readable(connection: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(connection, lambda: None if ready.done() else ready.set_result(None))
    try:
        await ready
    finally:
        loop.remove_reader(connection)
