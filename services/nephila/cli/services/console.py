"""`nephila console`: the console of a crawl that runs or has ended, on this machine, opened by a one-time address."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import webbrowser
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated

import typer

from nephila.cli.output import note
from nephila.cli.target import ControlTarget, with_target
from nephila.kernel.runtime.errors import UsageError

if TYPE_CHECKING:
    from nephila.control.api import Control


@with_target()
def console(
    target: ControlTarget,
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where the console is served; port 0: a free one.")
    ] = "127.0.0.1:0",
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address and open no browser.")] = False,
) -> None:
    """Show a crawl in a browser, whether it runs or has ended. The address that is printed opens the console once."""
    from nephila.control.http.tokens import host_and_port

    host, port = host_and_port(listen, "--listen")
    if not host:
        raise UsageError("--listen has to name an address, as 127.0.0.1:0: the console is not for a whole network")
    if asyncio.run(_serve(target, host, port, browser=not no_browser)) is signal.SIGINT:
        raise typer.Exit(130)


async def _serve(target: ControlTarget, host: str, port: int, *, browser: bool) -> signal.Signals:
    """Serve until a signal, which is returned."""
    from nephila.console.application import routes
    from nephila.console.logins import Access
    from nephila.control.access.authority import Authority
    from nephila.control.http.application import application
    from nephila.control.http.server import tcp_server
    from nephila.kernel.runtime.stop_signals import stopped_by

    async with open_control(target) as control:
        allowed = Access(Authority(control, ()))
        server = tcp_server(application(None, beside=routes(allowed)), host, port, "--listen")
        await server.open()
        over: asyncio.Future[signal.Signals] = asyncio.get_running_loop().create_future()

        def over_by(number: signal.Signals) -> None:
            if not over.done():
                over.set_result(number)

        try:
            with stopped_by(asyncio.get_running_loop(), over_by):
                place = f"[{host}]" if ":" in host else host
                address = f"http://{place}:{server.port}/console/login?token={allowed.sessions.invite()}"
                typer.echo(address)
                note("the address opens the console once; Ctrl-C ends it")
                if browser:
                    await asyncio.to_thread(webbrowser.open, address)
                return await over
        finally:
            await server.close()


@contextlib.asynccontextmanager
async def open_control(target: ControlTarget) -> AsyncIterator[Control]:
    """The control API of the target; for a directory in which nothing runs, one over its stopped frontier."""
    from nephila.control.http.client import at_directory, at_url
    from nephila.control.http.tokens import read_token

    if target.bootstrap:
        from nephila.cli.target import broker_settings
        from nephila.control.cluster.connection import open_cluster
        from nephila.control.operations import Operations

        async with open_cluster(broker_settings(target.bootstrap, target.prefix)) as backend:
            yield Operations(backend)
    elif target.server:
        yield at_url(target.server, read_token(target.token_file, "--token-file") if target.token_file else "")
    elif (running := at_directory(target.out)) is not None:
        yield running
    else:
        from nephila.programs.output_directory import OutputDirectory
        from nephila.programs.stopped_frontier import stopped_frontier

        async with stopped_frontier(OutputDirectory(target.out)) as control:
            yield control
