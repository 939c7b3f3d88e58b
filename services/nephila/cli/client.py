"""One conversation with the program that runs in a directory: a request, its answer, and so on.

What the program refuses is raised as the error it would be here; that nobody is there is one line that says what to do.
"""

from __future__ import annotations

import shlex
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from nephila.control.socket import connect
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.programs.output_directory import Directory

TIMEOUT_S = 60.0
"""Longest wait for one answer; a program that writes to a slow disk is not dead."""
STARTING_S = 15.0
"""A program that holds the directory's lock answers after this at the latest, or it is ending."""
POLL_S = 0.05
MAX_ANSWER = 64 << 20
_CHUNK = 1 << 16


class Client:
    """A connection; a context manager."""

    def __init__(self, directory: Path, connection: socket.socket) -> None:
        self._directory = directory
        self._socket = connection
        self._buffer = bytearray()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._socket.close()

    def ask(self, op: str, **values: Any) -> dict[str, Any]:
        """The answer to a request. Raises `UserError`, with the program's own words where it refuses."""
        try:
            self._socket.sendall(msgspec.json.encode({"op": op, **values}) + b"\n")
            answer = msgspec.json.decode(self._line())
        except TimeoutError:
            raise UserError(f"the program in {self._directory} did not answer in {TIMEOUT_S:g} s") from None
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            raise UserError(f"the program in {self._directory} has ended before it answered; do it again") from None
        if not isinstance(answer, Mapping):
            raise UserError(f"what answers in {self._directory} is no nephila")
        if not answer.get("ok"):
            kind = UsageError if answer.get("usage") else UserError
            raise kind(str(answer.get("error")))
        return dict(answer)

    def _line(self) -> bytes:
        start = 0
        while (end := self._buffer.find(b"\n", start)) < 0:
            start = len(self._buffer)
            chunk = self._socket.recv(_CHUNK)
            if not chunk or start > MAX_ANSWER:
                raise ConnectionResetError("no whole line")
            self._buffer += chunk
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line


def running(directory: Path) -> Client | None:
    """A conversation with the program that runs in a directory; None when none does."""
    connection = connect(directory, TIMEOUT_S)
    return Client(directory, connection) if connection is not None else None


def needed(directory: Path, wait_s: float = 0.0) -> Client:
    """The same. A program that starts is waited for: `STARTING_S` once it holds the directory's lock, `wait_s` before.
    Raises `UserError` when none runs."""
    begun = time.monotonic()
    while (client := running(directory)) is None:
        limit_s = STARTING_S if Directory(directory).holder() else wait_s
        if time.monotonic() - begun >= limit_s:
            break
        time.sleep(POLL_S)
    if client is None:
        holder = Directory(directory).holder()
        if holder:
            raise UserError(
                f"the nephila that runs in {directory} (process {holder}) takes no requests: it is starting or ending; "
                "ask again"
            )
        run = Directory(directory).read()
        if run is not None and run.command == "crawl":
            raise UserError(
                f"{directory} holds a crawl that is not running; go on with: nephila crawl --resume --out "
                f"{shlex.quote(str(directory))} (jobs that come and go: nephila up)"
            )
        raise UserError(
            f"no nephila up is running in {directory}; start it with: nephila up --out {shlex.quote(str(directory))}"
        )
    return client
