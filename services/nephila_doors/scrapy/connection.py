"""The connection of a Scrapy process to the frontier of a directory, which it starts when no process serves it.

Calls block for one round trip, some 0.1 ms: the engine of Scrapy wants its answers at once.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final, TypeVar

from nephila.kernel.runtime.errors import UserError
from nephila_control.http import unix_socket

from nephila_doors.scrapy import protocol

log = logging.getLogger(__name__)
START_S: Final = 60.0
"""Longest wait for a frontier that starts; one of 10⁶ URLs takes a few seconds."""
ANSWER_S: Final = 120.0
_LOOK_S: Final = 0.02
A = TypeVar("A")


class Lost(UserError):
    """The frontier is gone. Its URLs are on disk, so a new frontier continues."""


class Connection:
    def __init__(self, directory: Path, hello: protocol.Hello) -> None:
        """Raises `UserError` if the frontier cannot be started, or refuses the spider."""
        self._directory = directory
        self._hello = hello
        self._buffer = bytearray()
        self._join()

    def _join(self) -> None:
        self._buffer.clear()
        self._socket = self._connected(self._hello)
        self._send(self._hello)
        answer = self._answer(protocol.Settled)
        if answer.error:
            self.close()
            raise UserError(answer.error)

    def _connected(self, hello: protocol.Hello) -> socket.socket:
        deadline, started = time.monotonic() + START_S, None
        while True:
            connection = unix_socket.connect(self._directory, ANSWER_S, protocol.SOCKET)
            if connection is not None:
                return connection
            if started is None:
                started = _start(self._directory, hello.agent)
            elif started.poll():
                # Another process may have been faster; it serves soon.
                if time.monotonic() > deadline - START_S / 2:
                    raise UserError(f"the frontier does not start: see {self._directory / LOG}")
                started = None
            if time.monotonic() > deadline:
                raise UserError(f"the frontier does not start in {START_S:g} s: see {self._directory / LOG}")
            time.sleep(_LOOK_S)

    def tell(self, message: protocol.Sent) -> None:
        """Sends a message that has no answer. Raises `UserError`."""
        self._call(message, None)

    def call(self, message: protocol.Sent, kind: type[A]) -> A:
        """Sends a message and returns its answer. Raises `UserError`."""
        answer: A = self._call(message, kind)
        return answer

    def ask(self) -> protocol.Lease | protocol.Nothing:
        """Leases a request that may be fetched now. Raises `UserError`."""
        answer: protocol.Lease | protocol.Nothing = self._call(protocol.Ask(), (protocol.Lease, protocol.Nothing))
        return answer

    def _call(self, message: protocol.Sent, kind: Any) -> Any:
        """Starts a killed frontier again, once for a message: the frontier has given all leases back."""
        try:
            return self._called(message, kind)
        except Lost as error:
            log.warning("%s", error)
            self.close()
            self._join()
            return self._called(message, kind)

    def _called(self, message: protocol.Sent, kind: Any) -> Any:
        self._send(message)
        return self._answer(kind) if kind is not None else None

    def _send(self, message: protocol.Sent) -> None:
        try:
            self._socket.sendall(protocol.frame(message))
        except OSError as error:
            raise self._lost(error) from None

    def _answer(self, kind: Any) -> Any:
        answer = protocol.decode_answer(self._frame())
        if not isinstance(answer, kind):
            raise self._lost(f"its answer is {type(answer).__name__}")
        return answer

    def _frame(self) -> bytes:
        return self._read(protocol.HEAD.unpack(self._read(protocol.HEAD.size))[0])

    def _read(self, size: int) -> bytes:
        buffer = self._buffer
        while len(buffer) < size:
            try:
                part = self._socket.recv(1 << 16)
            except OSError as error:
                raise self._lost(error) from None
            if not part:
                raise self._lost("it has ended")
            buffer += part
        data = bytes(buffer[:size])
        del buffer[:size]
        return data

    def _lost(self, why: object) -> Lost:
        return Lost(f"the frontier in {self._directory} is gone ({why}); the next one continues")

    def close(self) -> None:
        """Gives back requests that are not done, and leaves."""
        with contextlib.suppress(OSError):
            self._socket.close()


LOG: Final = "frontier.log"
_started: Final[list[subprocess.Popen[bytes]]] = []
"""Frontiers of this process, which may outlive it."""


def _start(directory: Path, agent: str) -> subprocess.Popen[bytes]:
    """Serves the frontier in a program of its own, which outlives a spider that is killed."""
    directory.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "nephila", "frontier", "--out", str(directory), "--agent", agent, "--until-unused"]
    with (directory / LOG).open("ab") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, env=os.environ
        )
    _started[:] = [child for child in _started if child.poll() is None] + [process]
    return process
