"""`nephila changes`: pages that are new, changed, moved, gone or returned, from the table `changes`.

For a directory or a database the table is read directly, whether or not a program runs there.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated

import typer
from nephila.cli.options import DEFAULT_OUT, Json
from nephila.cli.output import print_json
from nephila.cli.terminal import sanitize, sanitize_lines
from nephila.kernel.runtime.errors import UsageError, none_of
from nephila.programs.output_directory import find_rows
from nephila.storage.changes import FEED_CHANGES
from nephila.storage.source import is_url
from nephila_control import system_types
from nephila_control.api import Control
from nephila_control.commands.client import call
from nephila_control.commands.target import Bootstrap, ControlTarget, Server, TokenFile, with_target

POLL_S = 1.0
"""Pause of --follow between two reads."""
FEED_ENTRIES = 100
"""Entries of a feed: the newest changes."""
KINDS = FEED_CHANGES
FEEDS = ("rss", "atom", "jsonfeed")
Rows = Annotated[
    str, typer.Option("--out", metavar="DIR|URL", help="Directory of the crawl, or the URL of a database with rows.")
]


def changes_target(
    out: Rows = str(DEFAULT_OUT), bootstrap: Bootstrap = "", server: Server = "", token_file: TokenFile = ""
) -> ControlTarget:
    """As for other control commands; --out also takes the URL of a database."""
    if is_url(out):
        return ControlTarget(bootstrap=bootstrap, server=server, token_file=token_file, rows=out)
    return ControlTarget(Path(out), bootstrap, server, token_file)


@with_target(changes_target)
def changes(
    target: ControlTarget,
    since: Annotated[
        str, typer.Option(metavar="TIME|ID", help="At or after a time (UTC), or behind a change: its id or number.")
    ] = "",
    job: Annotated[str, typer.Option(metavar="NAME", help="Only of this job.")] = "",
    change: Annotated[str, typer.Option(metavar="|".join(KINDS), help="Only of this kind.")] = "",
    follow: Annotated[bool, typer.Option("--follow", help="Wait for further changes, until interrupted.")] = False,
    format: Annotated[
        str, typer.Option("--format", metavar="|".join(FEEDS), help="Write the newest changes as a feed.")
    ] = "",
    limit: Annotated[
        int,
        typer.Option(metavar="N", min=0, help="At most so many; by default all, of a feed the newest 100."),
    ] = 0,
    json: Json = False,
) -> None:
    """Show pages that are new, changed, moved, gone or returned, oldest first."""
    if change and change not in KINDS:
        raise UsageError(f"--change {change!r} {none_of(change, KINDS)}")
    if format and format not in FEEDS:
        raise UsageError(f"--format {format!r} {none_of(format, FEEDS)}")
    if format and (follow or json):
        raise UsageError("--format writes one document; leave out --follow and --json")
    request = system_types.ListChanges(since=since, job=job, change=change, limit=system_types.MAX_CHANGES)  # type: ignore[arg-type]
    if format:
        request.limit, request.newest = min(limit or FEED_ENTRIES, system_types.MAX_CHANGES), True

    async def work(control: Control) -> None:
        if format:
            _write_feed((await control.list_changes(request)).changes, format, target)
        else:
            await _print_all(control, request, limit, follow=follow, json=json)

    if target.is_directory:
        from nephila_control.changes import TableChanges

        source, _ = find_rows(target.rows or str(target.out))
        asyncio.run(_run(TableChanges(source), work))
    else:
        call(target, work)


async def _run(control: Control, work: Callable[[Control], Awaitable[None]]) -> None:
    await work(control)


async def _print_all(
    control: Control, request: system_types.ListChanges, limit: int, *, follow: bool, json: bool
) -> None:
    left = limit or sys.maxsize
    while left > 0:
        request.limit = min(left, system_types.MAX_CHANGES)
        answer = await control.list_changes(request)
        for change in answer.changes:
            print_json(change) if json else _print(change)
        sys.stdout.flush()
        left -= len(answer.changes)
        request.since = answer.next
        if len(answer.changes) < request.limit:
            if not follow:
                return
            await asyncio.sleep(POLL_S)


def _print(change: system_types.Change) -> None:
    title = sanitize(change.title, 200)
    typer.echo(
        f"{change.seq}  {change.at}  {change.change:<8}  {sanitize(change.url, 2000)}" + (f"  {title}" if title else "")
    )
    for line in sanitize_lines(change.diff):
        typer.echo(f"    {line}")


def _write_feed(rows: list[system_types.Change], format: str, target: ControlTarget) -> None:
    from nephila_control.declaration import PREFIX
    from nephila_control.http.change_feeds import FORMATS

    if target.server:
        link = f"{target.server.rstrip('/')}{PREFIX}/changes/feed/{format}"
    else:
        link = "urn:nephila:changes" if target.rows or target.bootstrap else target.out.absolute().as_uri()
    write, _ = FORMATS[format]
    sys.stdout.buffer.write(write(rows, link))
    sys.stdout.buffer.flush()
