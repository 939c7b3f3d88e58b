"""`nephila api --out DIR`: the JSON API of a crawl that has ended, read-only; `nephila console` serves it as well.

The rule studio works over it, since a draft changes nothing. While it is served, DIR/control.sock answers too, so that
other commands read the directory, which is locked meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import signal
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from nephila.cli.options import DEFAULT_OUT, Out
from nephila.cli.output import note
from nephila.kernel.runtime.errors import UsageError, UserError

from nephila_control.commands.target import ControlTarget

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from nephila_control.api import Control


def api(
    out: Out = DEFAULT_OUT,
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where the API is served; port 0: a free one.")
    ] = "127.0.0.1:0",
    api_token_file: Annotated[
        str,
        typer.Option(metavar="FILE", help="File with the token that clients send; without it one is made and printed."),
    ] = "",
    config: Annotated[
        str,
        typer.Option(
            "--config",
            metavar="FILE",
            envvar="NEPHILA_CONFIG",
            help="Serve the system of these settings, as a service.",
        ),
    ] = "",
) -> None:
    """Serve the JSON API of a finished crawl, read-only, and the console with its studio, until Ctrl-C."""
    if config:
        from nephila_cluster.commands.service import run

        run("api", config)
        return
    from nephila_control.http.tokens import read_token

    host, port = listen_address(listen)
    token = read_token(api_token_file, "--api-token-file") if api_token_file else ""
    if asyncio.run(_serve(ControlTarget(out), host, port, token)) is signal.SIGINT:
        raise typer.Exit(130)


def listen_address(listen: str) -> tuple[str, int]:
    """Host and port of --listen. Raises `UsageError`."""
    from nephila_control.http.tokens import host_and_port

    host, port = host_and_port(listen, "--listen")
    if not host:
        raise UsageError("--listen has to name an address, as 127.0.0.1:0: one crawl is not for a whole network")
    return host, port


async def _serve(target: ControlTarget, host: str, port: int, token: str) -> signal.Signals:
    """Serve until a signal, which is returned."""
    from nephila_control.commands.client import open_control

    token_of_run = token or secrets.token_urlsafe(24)
    async with open_control(target) as control, served(control, target, host, port, token_of_run) as url:
        typer.echo(f"{url}/api/v1")
        if not token:
            note(try_it(url, token_of_run))
        note(f"read-only; a console with the rule studio is at {url}/console/; Ctrl-C ends it")
        return await signalled()


def try_it(url: str, token: str) -> str:
    """A command by which a person sees the API work."""
    return f"the JSON API, read-only: curl -H 'Authorization: Bearer {token}' {url}/api/v1/status"


async def signalled() -> signal.Signals:
    """The first signal that ends the program."""
    from nephila.kernel.process.stop_signals import stopped_by

    over: asyncio.Future[signal.Signals] = asyncio.get_running_loop().create_future()

    def end(number: signal.Signals) -> None:
        if not over.done():
            over.set_result(number)

    with stopped_by(asyncio.get_running_loop(), end):
        return await over


@contextlib.asynccontextmanager
async def served(
    control: Control, target: ControlTarget, host: str, port: int, token: str, beside: Sequence[BaseRoute] | None = None
) -> AsyncIterator[str]:
    """Serve the API on a port, and on the socket of the directory if this process holds it; yields the URL. `beside`:
    further routes of the port; None: a console that is as read-only as the API. Raises `UserError`."""
    from nephila_console.application import routes
    from nephila_console.logins import Access

    from nephila_control.access.authority import Authority, administrator
    from nephila_control.access.read_only import read_only
    from nephila_control.http.application import application
    from nephila_control.http.server import tcp_server, unix_server
    from nephila_control.operations import Operations

    stopped = target.is_directory and isinstance(control, Operations)
    remedy = (
        "end nephila api or nephila console here, and repeat the change" if stopped else "use the program's own API"
    )
    reads = read_only(control, remedy, writes_items=stopped)
    authority = Authority(reads, administrator(token))
    if beside is None:
        beside = routes(Access(authority))
    server = tcp_server(application(reads, authority=authority, beside=beside), host, port, "--listen")
    await server.open()
    socket = unix_server(application(reads), target.out) if stopped else None
    try:
        if socket is not None:
            try:
                await socket.open()
            except UserError as error:
                note(f"{error}; other commands cannot read the directory meanwhile")
        name = f"[{host}]" if ":" in host else host
        yield f"http://{name}:{server.port}"
    finally:
        for part in (server, socket):
            if part is not None:
                await part.close()
