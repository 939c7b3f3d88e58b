"""The control API of a server somewhere else: `Control` over HTTP, by a Unix socket or a URL.

A refusal is raised as the error that the implementation over there raised, and `NotReadyError` while no control API
answers there. Each call is one connection in a thread of its own, so a server in the same loop is not held up. The
threads are daemons: a request without an answer does not delay the end of the program.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import quote, urlencode, urlsplit

import msgspec
from nephila.kernel.runtime.errors import UNREADABLE, NotReadyError, UsageError, UserError

from nephila_control import api
from nephila_control.declaration import PREFIX, Operation
from nephila_control.http.errors import ErrorAnswer
from nephila_control.http.tokens import present_token
from nephila_control.http.unix_socket import connect

TIMEOUT_S = 60.0
"""Longest wait for one answer; a program that writes to a slow disk is not dead."""
MAX_ANSWER = 256 << 20
A = TypeVar("A")
Dial = Callable[[], http.client.HTTPConnection]


class _HttpControl(api.Control):
    def __init__(self, dial: Dial, server: str, token: str = "") -> None:
        """`server` names the server in errors."""
        self._dial = dial
        self._server = server
        self._token = token

    async def call(self, operation: Operation, request: msgspec.Struct) -> Any:
        answer = await _in_thread(lambda: self._answer(operation, request))
        try:
            return msgspec.convert(answer, operation.answer)
        except UNREADABLE as error:
            raise NotReadyError(
                f"{self._server} is not a nephila, or one of another version ({operation.name}: {error}); check the URL"
            ) from None

    def _answer(self, operation: Operation, request: msgspec.Struct) -> Any:
        fields: dict[str, Any] = msgspec.to_builtins(request)
        parts = {name: quote(str(fields.pop(name)), safe="") for name in operation.path_fields}
        path = PREFIX + operation.path.format(**parts)
        headers: dict[str, str] = {"Authorization": f"Bearer {present_token(self._token)}"} if self._token else {}
        body = None
        if operation.has_body:
            headers["Content-Type"], body = "application/json", msgspec.json.encode(fields)
        elif fields:
            path += "?" + urlencode({name: _text(value) for name, value in fields.items()})
        connection = self._dial()
        try:
            connection.request(operation.method, path, body, headers)
            response = connection.getresponse()
            status, data = response.status, response.read(MAX_ANSWER)
        except TimeoutError:
            raise NotReadyError(f"{self._server} did not answer in {TIMEOUT_S:g} s") from None
        except (OSError, UnicodeError, http.client.HTTPException) as error:
            if isinstance(error, socket.gaierror | ConnectionRefusedError):
                raise NotReadyError(f"{self._server} cannot be reached: {error.strerror or error}") from None
            raise NotReadyError(f"{self._server} ended before it answered; repeat the command") from None
        finally:
            connection.close()
        return self._decoded(status, data)

    def _decoded(self, status: int, data: bytes) -> Any:
        try:
            if status == 200:
                return msgspec.json.decode(data)
            error = msgspec.json.decode(data, type=ErrorAnswer).error
        except UNREADABLE:
            raise NotReadyError(f"{self._server} is not a nephila; check the URL (status {status})") from None
        message = f"{error.message} ({error.where})" if error.where else error.message
        kinds: dict[str, type[UserError]] = {
            "invalid": UsageError,
            "wrong_value": UsageError,
            "not_found": api.NotFound,
            "forbidden": api.Forbidden,
            "unavailable": NotReadyError,
        }
        if error.code == "unauthorized":
            raise NotReadyError(f"{self._server} refuses the token; name the file that holds it with --token-file")
        raise kinds.get(error.code, UserError)(message)


async def _in_thread(work: Callable[[], A]) -> A:
    """Runs a blocking call. Unlike the threads of `asyncio.to_thread`, its thread ends with the program."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[A] = loop.create_future()

    def finish(result: A | None, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(cast(A, result))

    def run() -> None:
        result, error = None, None
        try:
            result = work()
        except Exception as raised:
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(finish, result, error)

    threading.Thread(target=run, name="control", daemon=True).start()
    return await done


def at_directory(directory: Path) -> api.Control | None:
    """Returns None if no program runs in the directory. Raises `UserError`."""
    first = connect(directory, TIMEOUT_S)
    if first is None:
        return None
    first.close()
    return _HttpControl(lambda: _Unix(directory), f"the program in {directory}")


def at_url(url: str, token: str = "") -> api.Control:
    """Raises `UsageError` unless the URL is http(s):

    HOST:PORT.
    """
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
        parts = urlsplit("")
    if not host or parts.scheme not in ("http", "https") or parts.path.rstrip("/") or parts.query or parts.username:
        raise UsageError(f"--server {url!r} is not a URL like http://HOST:PORT")
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    return _HttpControl(lambda: kind(host, port, timeout=TIMEOUT_S), url, token)


class _Unix(http.client.HTTPConnection):
    def __init__(self, directory: Path) -> None:
        super().__init__("localhost", timeout=TIMEOUT_S)
        self._directory = directory

    def connect(self) -> None:
        connection = connect(self._directory, TIMEOUT_S)
        if connection is None:
            raise ConnectionResetError("no program runs there")
        self.sock = connection


def _text(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
