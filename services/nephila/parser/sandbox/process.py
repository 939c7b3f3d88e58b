"""One child process of the sandbox, from the parent's side: start, request, stop; on an event loop or blocking.

A child inherits nothing from its parent: no memory, no descriptors but its socket, no environment (it may hold
passwords). It has its own session, so that Ctrl-C does not reach it. Invariant: a child that does not respond in time
and in form is killed and never used again.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Final

import msgspec

import nephila
from nephila.parser.sandbox.frames import MAX_TEXT_CHARS, REQUEST_HEAD, RESPONSE_HEAD, CallStatus
from nephila.parser.sandbox.task import CRASH, ERROR, MEMORY, RESULT, TIMEOUT, UNAVAILABLE, ChildError, Task

START_S: Final = 30.0
"""Seconds to import a task's libraries on a busy machine."""
_BUFFER_BYTES: Final = 512 << 10
_CHUNK_BYTES: Final = 256 << 10
_RSS_UNIT: Final = 1 if sys.platform == "darwin" else 1024
_ENVIRONMENT_KEPT: Final = ("LD_LIBRARY_PATH", "LANG", "LC_ALL", "PATH", "TMPDIR")


class ChildProcess:
    """A child for one task. `guards` is set once it is ready."""

    def __init__(self, task: Task[Any]) -> None:
        """Start the process. Raises `ChildError` if the system cannot."""
        self.task = task
        self.calls = 0
        self.guards: list[str] = []
        self._peak_bytes = 0
        # The peak of a child includes the time before exec, when it was a copy of this process.
        self._inherited_peak_bytes = _own_peak_bytes()
        self._reaping = threading.Lock()
        try:
            self._socket, theirs = socket.socketpair()
        except OSError as error:
            raise ChildError(task.name, UNAVAILABLE, error.strerror or str(error)) from None
        try:
            for end in (self._socket, theirs):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)
            self._popen = _spawn(task, theirs)
        except (OSError, ValueError) as error:
            self._socket.close()
            raise ChildError(task.name, UNAVAILABLE, f"no process can be started: {error}") from None
        finally:
            theirs.close()

    @property
    def pid(self) -> int:
        return self._popen.pid

    # ---- on a loop

    async def ready(self) -> None:
        """Wait until the child is ready. Raises `ChildError`."""
        self._socket.setblocking(False)
        self._check_ready(await self._exchange(b"", START_S))

    async def request(self, payload: bytes, wall_s: float) -> Any:
        """The result for a payload. Raises `ChildError`; the child is dead then, unless the reason is ERROR."""
        self.calls += 1
        return self._result(await self._exchange(REQUEST_HEAD.pack(len(payload), wall_s) + payload, wall_s))

    async def _exchange(self, data: bytes, wall_s: float) -> tuple[int, bytes]:
        loop = asyncio.get_running_loop()

        async def read(length: int) -> bytes:
            received = bytearray()
            while len(received) < length:
                chunk = await loop.sock_recv(self._socket, min(length - len(received), _CHUNK_BYTES))
                if not chunk:
                    raise EOFError
                received += chunk
            return bytes(received)

        try:
            async with asyncio.timeout(wall_s):
                if data:
                    await loop.sock_sendall(self._socket, data)
                status, length = RESPONSE_HEAD.unpack(await read(RESPONSE_HEAD.size))
                self._check_length(status, length)
                return status, await read(length)
        except (TimeoutError, EOFError, OSError, ChildError) as error:
            raise await self._failure_of(error, wall_s) from None
        except asyncio.CancelledError:
            await self.stop()
            raise

    async def _failure_of(self, error: Exception, wall_s: float) -> ChildError:
        """Stop the child and return the cause of the failure."""
        failure = self._violation(error, wall_s)
        await self.stop()
        return failure or self._exit_reason()

    async def stop(self) -> None:
        """Kill the child and wait for its end. No request may be in progress (see `kill`)."""
        self.kill()
        self._socket.close()
        await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, self._reap))

    # ---- blocking

    def ready_blocking(self) -> None:
        """`ready`, blocking."""
        self._check_ready(self._exchange_blocking(b"", START_S))

    def request_blocking(self, payload: bytes, wall_s: float) -> Any:
        """`ask`, blocking."""
        self.calls += 1
        return self._result(self._exchange_blocking(REQUEST_HEAD.pack(len(payload), wall_s) + payload, wall_s))

    def _exchange_blocking(self, data: bytes, wall_s: float) -> tuple[int, bytes]:
        until = time.monotonic() + wall_s

        def read(length: int) -> bytes:
            received = bytearray()
            while len(received) < length:
                self._socket.settimeout(max(until - time.monotonic(), 0.001))
                chunk = self._socket.recv(min(length - len(received), _CHUNK_BYTES))
                if not chunk:
                    raise EOFError
                received += chunk
            return bytes(received)

        try:
            self._socket.settimeout(wall_s)
            self._socket.sendall(data)
            status, length = RESPONSE_HEAD.unpack(read(RESPONSE_HEAD.size))
            self._check_length(status, length)
            return status, read(length)
        except (TimeoutError, EOFError, OSError, ChildError) as error:
            failure = self._violation(error, wall_s)
            self.stop_blocking()
            raise failure or self._exit_reason() from None
        except BaseException:
            self.stop_blocking()
            raise

    def stop_blocking(self) -> None:
        """`end`, blocking."""
        self.kill()
        self._socket.close()
        self._reap()

    # ---- both

    def _check_ready(self, answer: tuple[int, bytes]) -> None:
        status, text = answer
        if status != CallStatus.READY:
            raise ChildError(self.task.name, UNAVAILABLE, _as_ascii(text))
        self.guards = text.decode("ascii", "replace").split()

    def _check_length(self, status: int, length: int) -> None:
        most = self.task.max_result_bytes if status == CallStatus.DONE else MAX_TEXT_CHARS
        if length > most:
            raise ChildError(self.task.name, RESULT, f"{length:,} bytes, more than {most:,}")

    def _result(self, answer: tuple[int, bytes]) -> Any:
        status, data = answer
        name = self.task.name
        if status == CallStatus.DONE:
            try:
                return self.task.decode(data)
            except (ValueError, msgspec.MsgspecError) as error:
                raise ChildError(name, RESULT, str(error)[:MAX_TEXT_CHARS]) from None
        if status == CallStatus.ERROR:
            raise ChildError(name, ERROR, _as_ascii(data))
        if status == CallStatus.MEMORY:
            raise ChildError(name, MEMORY, self._limit())
        raise ChildError(name, RESULT, f"an answer of kind {status}")

    def _violation(self, error: Exception, wall_s: float) -> ChildError | None:
        """The violation that the parent has seen; None if the child ended by itself."""
        if isinstance(error, ChildError):
            return error
        return ChildError(self.task.name, TIMEOUT, f"after {wall_s:g} s") if isinstance(error, TimeoutError) else None

    def kill(self) -> None:
        """Kill the child; a request in progress fails by that. A child that has ended keeps its exit code."""
        if self._popen.returncode is None:
            # It leads its session: processes that it has started before its lock-down end with it.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._popen.pid, signal.SIGKILL)

    def _reap(self) -> None:
        with self._reaping:
            if self._popen.returncode is not None:
                return
            try:
                _, status, usage = os.wait4(self._popen.pid, 0)
            except ChildProcessError:  # another thread has waited for it
                self._popen.returncode = -signal.SIGKILL
                return
            self._popen.returncode = os.waitstatus_to_exitcode(status)
            self._peak_bytes = usage.ru_maxrss * _RSS_UNIT

    def _exit_reason(self) -> ChildError:
        """Why the child ended by itself."""
        code, name = self._popen.returncode, self.task.name
        if code in (-signal.SIGALRM, -signal.SIGXCPU):
            return ChildError(name, TIMEOUT, "ended by its own clock")
        # A library without memory aborts; only the peak memory distinguishes that from a crash.
        if code < 0 and self._peak_bytes > max(self._inherited_peak_bytes, self.task.memory_bytes // 2):
            return ChildError(name, MEMORY, self._limit())
        how = f"signal {_signal(-code)}" if code < 0 else f"exit code {code}"
        return ChildError(name, CRASH, how)

    def _limit(self) -> str:
        return f"more than {self.task.memory_bytes >> 20} MiB"


def _own_peak_bytes() -> int:
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _RSS_UNIT


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


def _as_ascii(text: bytes) -> str:
    """Untrusted text of a child as ASCII."""
    return ascii(text.decode("ascii", "replace"))[1:-1]


def _spawn(task: Task[Any], end: socket.socket) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-s", "-m", "nephila.parser.sandbox.child", task.module]
    command += [str(os.getpid()), str(task.memory_bytes), *task.arguments]
    return subprocess.Popen(
        command,
        stdin=end.fileno(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env=_environment(),
        start_new_session=True,
    )


def _environment() -> dict[str, str]:
    """The import paths of this process, and nothing else."""
    here = str(Path(nephila.__file__).resolve().parent.parent)
    paths = [here, *(str(Path(path).resolve()) for path in sys.path if path)]
    variables = {name: os.environ[name] for name in _ENVIRONMENT_KEPT if name in os.environ}
    return {**variables, "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}
