"""`nephila console`: the console of a crawl that runs or has ended, on this machine, opened by a one-time address."""

from __future__ import annotations

import asyncio
import secrets
import signal
import webbrowser
from pathlib import Path
from typing import Annotated

import typer
from nephila.cli.output import note
from nephila_control.commands.client import open_control
from nephila_control.commands.read_only_api import listen_address, served, signalled, try_it
from nephila_control.commands.target import ControlTarget, with_target

SESSIONS = "console-command-sessions.json"


@with_target()
def console(
    target: ControlTarget,
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where the console is served; port 0: a free one.")
    ] = "127.0.0.1:0",
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address and open no browser.")] = False,
) -> None:
    """Show a crawl in a browser, whether it runs or has ended. The address that is printed opens the console once."""
    host, port = listen_address(listen)
    if asyncio.run(_serve(target, host, port, browser=not no_browser)) is signal.SIGINT:
        raise typer.Exit(130)


async def _serve(target: ControlTarget, host: str, port: int, *, browser: bool) -> signal.Signals:
    """Serve until a signal, which is returned."""
    from nephila_control.access.authority import Authority

    from nephila_console.application import routes
    from nephila_console.logins import Access

    token = secrets.token_urlsafe(24)
    async with open_control(target) as control:
        # Its own file: the sessions of one-time addresses are administrators, and no business of `nephila up` there.
        sessions = Path(target.out) / SESSIONS if target.is_directory else None
        access = Access(Authority(control, ()), sessions=sessions)
        async with served(control, target, host, port, token, routes(access)) as url:
            address = f"{url}/console/login?token={access.sessions.invite()}"
            typer.echo(address)
            note("the address opens the console once; Ctrl-C ends it")
            note(try_it(url, token))
            if browser:
                await asyncio.to_thread(webbrowser.open, address)
            return await signalled()
