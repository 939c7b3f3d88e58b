"""`nephila frontier`: a frontier that Scrapy processes share."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer


def frontier(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Directory of the frontier; spiders name it too.")] = Path(
        "frontier"
    ),
    agent: Annotated[
        str, typer.Option(metavar="NAME", help="Product token for robots.txt of all spiders that obey it.")
    ] = "",
    until_unused: Annotated[
        bool, typer.Option("--until-unused", help="End half a minute after the last spider. Spiders start it so.")
    ] = False,
) -> None:
    """Serve a frontier to the processes of Scrapy spiders.

    A spider with NEPHILA_FRONTIER = DIR starts it by itself; this command serves it without one.
    """
    from nephila.kernel.process.stop_signals import stopped_by
    from nephila.kernel.runtime.clock import SystemClock

    from nephila_doors.lending.server import IDLE_S, serve_frontier

    async def serve() -> None:
        stop = asyncio.Event()
        with stopped_by(asyncio.get_running_loop(), lambda _: stop.set()):
            await serve_frontier(out, SystemClock(), agent, stop, linger_s=IDLE_S if until_unused else 0.0)

    asyncio.run(serve())
