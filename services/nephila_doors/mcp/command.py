"""`nephila mcp`: the Model Context Protocol for agents, over standard input and output, or over HTTP with a token."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Annotated, Unpack

import typer
from nephila.cli.options import DEFAULT_OUT, Out, values, with_options
from nephila.cli.output import note
from nephila.programs.options import CommandOptions
from nephila_control.commands.target import ControlTarget, Server, TokenFile

if TYPE_CHECKING:
    from nephila_control.api import Control
    from nephila_control.control_servers import TcpAddress


@with_options("up")
def mcp(
    out: Out = DEFAULT_OUT,
    server: Server = "",
    token_file: TokenFile = "",
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Serve over HTTP at /mcp, not over standard input and output.")
    ] = "",
    listen_token_file: Annotated[
        str, typer.Option(metavar="FILE", help="File with the token that clients of --listen send.")
    ] = "",
    **options: Unpack[CommandOptions],
) -> None:
    """Serve crawling to agents by the Model Context Protocol: read pages, map sites, run crawls, read results.

    In a program of its own in DIR as nephila up, which the options are for, or over the control API of the program that
    runs in DIR, of a finished crawl there, or of --server.
    """
    import mcp as sdk  # noqa: F401 - what is missing is named before a program starts
    from nephila.programs.output_directory import OutputDirectory
    from nephila_control.commands.client import open_control
    from nephila_control.commands.target import tcp_address

    address = tcp_address(listen, listen_token_file)
    target = ControlTarget(out, "", server, token_file)
    serve = partial(_serve, address=address)
    directory = OutputDirectory(out)
    run = directory.read()
    if target.is_directory and not directory.holder() and (run is None or run.command == "up"):
        from nephila_control.commands.up import run_up

        # Rules are proposed from the bodies of pages.
        crawl_options = {**values(options), "keep_raw": True}
        raise typer.Exit(run_up(out, crawl_options, None, quiet=True, companion=serve))

    async def attach() -> None:
        from nephila.kernel.process.stop_signals import stopped_by

        stop = asyncio.Event()
        with stopped_by(asyncio.get_running_loop(), lambda _: stop.set()):
            async with open_control(target) as control:
                await serve(control, stop)

    asyncio.run(attach())


async def _serve(control: Control, stop: asyncio.Event, address: TcpAddress | None) -> None:
    """Serves until the event is set, or the input has ended. An agent has the role editor."""
    from nephila_control.access.caller import Caller
    from nephila_control.access.guard import guarded
    from nephila_control.access.roles import Role

    control = guarded(control, Caller("mcp", Role.EDITOR))
    from nephila.kernel.runtime.clock import SystemClock
    from nephila_control.http.server import tcp_server

    from nephila_doors.mcp.server import http_application, serve_stdio

    if address is None:
        await serve_stdio(control, SystemClock(), stop)
        return
    async with http_application(control, SystemClock(), address.token, address.host or "0.0.0.0") as application:
        http = tcp_server(application, address.host, address.port, "--listen")
        await http.open()
        try:
            host = f"[{address.host}]" if ":" in address.host else address.host or "0.0.0.0"
            note(f"the Model Context Protocol is served at http://{host}:{http.port}/mcp")
            await stop.wait()
        finally:
            await http.close()
