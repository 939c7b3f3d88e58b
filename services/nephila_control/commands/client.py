"""How a control command reaches its program: DIR/control.sock, a system over Kafka, or a server's URL.

In all three a command gets a `Control`. A refusal is raised as the error that it would be here; that no program runs is
one line that names the remedy.
"""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import os
import shlex
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from nephila.cli.output import note
from nephila.kernel.runtime.errors import UserError
from nephila.programs.output_directory import OutputDirectory

from nephila_control.api import Control
from nephila_control.commands.target import ControlTarget, broker_settings
from nephila_control.http.client import at_directory, at_url
from nephila_control.http.tokens import read_token

if TYPE_CHECKING:
    from nephila_cluster.kafka.config import KafkaConfig

    from nephila_control.access.caller import Caller

STARTING_S = 15.0
"""A program that holds the directory's lock answers after this at the latest, or it is ending."""
POLL_S = 0.05
T = TypeVar("T")


def call(target: ControlTarget, work: Callable[[Control], Awaitable[T]], wait_s: float = 0.0) -> T:
    """Returns the result of `work` on the control API of a target. `wait_s` is that of `needed`. Raises `UserError`."""
    if target.bootstrap:
        from nephila.kernel.process.process_setup import run_loop

        return run_loop(_over_kafka(broker_settings(target.bootstrap, target.prefix), work))
    if target.server:
        token = read_token(target.token_file, "--token-file") if target.token_file else ""
        return asyncio.run(_run(at_url(target.server, token), work))
    return asyncio.run(_run(needed(target.out, wait_s), work))


@contextlib.asynccontextmanager
async def open_control(target: ControlTarget) -> AsyncIterator[Control]:
    """Opens the control API of the target. A directory in which nothing runs gets an API over its stopped frontier."""
    if target.bootstrap:
        from nephila_control.cluster.connection import open_cluster
        from nephila_control.operations import Operations

        async with open_cluster(broker_settings(target.bootstrap, target.prefix)) as backend:
            yield Operations(backend)
    elif target.server:
        yield at_url(target.server, read_token(target.token_file, "--token-file") if target.token_file else "")
    elif (running := at_directory(target.out)) is not None:
        yield running
    else:
        from nephila_control.stopped_frontier import stopped_frontier

        async with stopped_frontier(OutputDirectory(target.out)) as control:
            yield control


async def _run(control: Control, work: Callable[[Control], Awaitable[T]]) -> T:
    return await work(control)


async def _over_kafka(settings: KafkaConfig, work: Callable[[Control], Awaitable[T]]) -> T:
    from nephila_control.access.guard import guarded
    from nephila_control.cluster.connection import open_cluster
    from nephila_control.operations import Operations

    async with open_cluster(settings) as backend:
        answer = await work(guarded(Operations(backend), command_line()))
        if waiting := backend.held.waiting:
            note(f"waiting until the schedulers have read the seeds of {', '.join(waiting)}")
            await backend.held.finish()
        return answer


def command_line() -> Caller:
    """The caller is the user who runs this command and reaches the brokers; the log of changes shows the name."""
    from nephila_control.access.caller import Caller
    from nephila_control.access.roles import Role

    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a process without a name, as in a container
        user = str(os.getuid())
    return Caller(f"{user} at {socket.gethostname()}", Role.ADMIN)


def needed(directory: Path, wait_s: float = 0.0) -> Control:
    """Connects to the program that runs in a directory. A program that starts gets `STARTING_S` once it holds the
    directory's lock, `wait_s` before. Raises `UserError` if none runs."""
    begun = time.monotonic()
    while (control := at_directory(directory)) is None:
        limit_s = STARTING_S if OutputDirectory(directory).holder() else wait_s
        if time.monotonic() - begun >= limit_s:
            raise _nothing_runs(directory)
        time.sleep(POLL_S)
    return control


def _nothing_runs(directory: Path) -> UserError:
    holder = OutputDirectory(directory).holder()
    if holder:
        return UserError(
            f"the nephila that runs in {directory} (process {holder}) takes no requests: it is starting or ending; "
            "repeat the command"
        )
    run = OutputDirectory(directory).read()
    if run is not None and run.command == "crawl":
        return UserError(
            f"{directory} holds a crawl that is not running; go on with: nephila crawl --resume --out "
            f"{shlex.quote(str(directory))} (jobs that come and go: nephila up)"
        )
    return UserError(
        f"no nephila up is running in {directory}; start it with: nephila up --out {shlex.quote(str(directory))}"
    )
