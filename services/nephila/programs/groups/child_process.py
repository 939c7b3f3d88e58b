"""A process of this program on one end of a socket pair: how it is started and watched, what it runs, how it ended."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import nephila
from nephila.kernel.bus.pipe.link import Channel
from nephila.kernel.bus.pipe.protocol import Ping
from nephila.kernel.bus.pipe.socket_pipe import Pipe, connect, pair
from nephila.kernel.process.parent_death import die_with
from nephila.kernel.process.process_setup import raise_open_files, run_loop
from nephila.kernel.process.stop_signals import STOP_SIGNALS
from nephila.kernel.runtime.errors import UserError

log = logging.getLogger(__name__)

KILL_MARGIN_S = 2.0
"""Extra seconds after the grace period before a process is killed."""
CHECK_S = 15.0
"""Seconds between two checks of the processes that should answer."""
MAX_MISSED_CHECKS = 4
"""Checks without a sign of a process before it is killed. Checks are counted, not seconds: a main process that was
suspended received nothing either."""


class ChildProcess:
    """One process and our end of its pipe."""

    def __init__(self, name: str, pipe: Pipe) -> None:
        """`name`: for people, as "worker 1"."""
        self.name = name
        self.pipe = pipe
        self.popen: subprocess.Popen[bytes] | None = None
        """None where it runs in this process."""
        self._run: asyncio.Future[None] | None = None
        self._heard = False
        """Data came from it since the last check."""
        self._missed_checks = 0

    async def start(self, module: str) -> None:
        """Start the process and read its pipe. Raises `UserError`."""
        ours, theirs = pair()
        try:
            self.popen = spawn(module, theirs.fileno())
        except OSError as error:
            ours.close()
            raise UserError(f"cannot start {self.name}: {error.strerror}; try --workers 0") from None
        finally:
            theirs.close()
        await connect(ours, self.pipe)

    async def start_here(self, run: Callable[[socket.socket], Coroutine[Any, Any, None]]) -> None:
        """Run in this process what a process of its own would run on its end of the pair."""
        ours, theirs = pair()
        self._run = asyncio.ensure_future(run(theirs))
        await connect(ours, self.pipe)

    def heard(self) -> None:
        """Data came from it."""
        self._heard = True

    def check(self, link: Channel, *, answers: bool) -> None:
        """Ping a process that should answer; kill one that has missed too many checks."""
        self._missed_checks = 0 if self._heard or not answers else self._missed_checks + 1
        self._heard = False
        if self._missed_checks > MAX_MISSED_CHECKS and self.popen is not None:
            log.error("%s does not answer and is killed", self.name)
            self.popen.kill()
        elif answers:
            link.send_control(Ping())

    async def reap(self) -> str:
        """Wait for its end; returns how it ended."""
        return "ended" if self.popen is None else await ending(self.popen)


def spawn(module: str, descriptor: int) -> subprocess.Popen[bytes]:
    """A process of this module on that end of a pair."""
    command = [sys.executable, "-P", "-m", module, str(descriptor), str(os.getpid())]
    # The worker inherits the blocked signals: Ctrl-C may come before it ignores them itself.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=(descriptor,), env=_environment())
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _environment() -> dict[str, str]:
    """The environment, with the directory of this package first: the worker must be the same version."""
    here = str(Path(nephila.__file__).resolve().parent.parent)
    before = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": here + os.pathsep + before if before else here}


async def ending(popen: subprocess.Popen[bytes]) -> str:
    """Wait for the end of a process, at most KILL_MARGIN_S, then kill it; returns how it ended."""
    loop = asyncio.get_running_loop()
    try:
        code = await loop.run_in_executor(None, popen.wait, KILL_MARGIN_S)
    except subprocess.TimeoutExpired:
        popen.kill()
        code = await loop.run_in_executor(None, popen.wait)
    if code >= 0:
        return f"ended with code {code}"
    with contextlib.suppress(ValueError):
        return f"was ended by {signal.Signals(-code).name}"
    return f"was ended by signal {-code}"


def run_on_pipe(arguments: list[str], run: Callable[[socket.socket], Coroutine[Any, Any, None]]) -> None:
    """The whole life of such a process; `arguments` are the descriptor of its end of the pair and its parent."""
    descriptor, parent = map(int, arguments)
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)  # main blocked them while this was started
    die_with(parent)
    raise_open_files()
    end = socket.socket(fileno=descriptor)

    run_loop(run(end))
    # No clean-up: connections need no shutdown, and the pipe has no reader any more.
    os._exit(0)
