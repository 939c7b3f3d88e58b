"""A process of this program on one end of a socket pair: how it is started, what it runs, and how it has ended."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import nephila
from nephila.kernel.process.stop_signals import STOP_SIGNALS

KILL_MARGIN_S = 2.0
"""Extra seconds after the grace period before a process is killed."""


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
