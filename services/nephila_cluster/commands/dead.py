"""`nephila service dead …`: messages that no service could process, listed and published again."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated

import typer
from nephila.cli.options import Json
from nephila.cli.output import note, print_json
from nephila.cli.terminal import sanitize
from nephila.kernel.runtime.errors import UsageError
from nephila_control import system_types
from nephila_control.api import Control
from nephila_control.commands.client import call
from nephila_control.commands.target import ControlTarget, Server, TokenFile, with_target

app = typer.Typer(add_completion=False, help="Messages that no service could process (topic dead).")

Out = Annotated[Path | None, typer.Option("--out", metavar="DIR", help="The program that runs in DIR.")]
Bootstrap = Annotated[
    str,
    typer.Option(
        metavar="HOST:PORT|FILE",
        help="A broker, or the settings file of the services; otherwise NEPHILA_BOOTSTRAP, or 127.0.0.1:9092.",
    ),
]
Prefix = Annotated[
    str, typer.Option(metavar="TEXT", help="Prefix of topic and group names, for several systems on one broker.")
]
JobUid = Annotated[str, typer.Option("--job", metavar="NAME", help="Only dead letters of this job.")]
DEFAULT_BROKER = "127.0.0.1:9092"


def letters_target(
    out: Out = None,
    bootstrap: Bootstrap = "",
    server: Server = "",
    token_file: TokenFile = "",
    prefix: Prefix = "",
) -> ControlTarget:
    """Without --out and --server a broker: only systems over Kafka keep dead letters."""
    if out is not None and not bootstrap:
        return ControlTarget(out, "", server, token_file)
    if server:
        return ControlTarget(bootstrap=bootstrap, server=server, token_file=token_file)
    return ControlTarget(
        bootstrap=bootstrap or os.environ.get("NEPHILA_BOOTSTRAP", "") or DEFAULT_BROKER, prefix=prefix
    )


@app.command("list")
@with_target(letters_target)
def list_letters(target: ControlTarget, job: JobUid = "", json: Json = False) -> None:
    """Show what is there: id, time, service, message, URL, partition, attempts, error."""

    async def work(control: Control) -> None:
        after = ""
        while True:
            page = await control.list_dead_letters(
                system_types.ListDeadLetters(job=job, after=after, limit=system_types.MAX_DEAD_LETTERS)
            )
            for letter in page.dead_letters:
                print_json(letter) if json else typer.echo(_line(letter))
            if not (after := page.next):
                return

    call(target, work)


@app.command()
@with_target(letters_target)
def replay(
    ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ID]...", help="PARTITION:OFFSET as nephila service dead list has them."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All dead letters (with --job: of that job).")] = False,
    *,
    target: ControlTarget,
    job: JobUid = "",
    json: Json = False,
) -> None:
    """Publish messages again on their topics. A page that can be parsed now replaces its row. A second replay has no
    effect. Dead letters are kept for 30 days. Requests are not replayed: their leases return them."""
    if bool(ids) == everything:
        raise UsageError("name the letters as PARTITION:OFFSET, or say --all")
    counts = {True: 0, False: 0}

    async def work(control: Control) -> None:
        after = ""
        while True:
            request = system_types.ReplayDeadLetters(
                ids=ids or [], all=everything, job=job, after=after, limit=system_types.MAX_DEAD_LETTERS
            )
            page = await control.replay_dead_letters(request)
            for letter in page.dead_letters:
                counts[letter.replayed] += 1
                if json:
                    print_json(letter)
                elif letter.refused:
                    note(f"{letter.id}: {letter.refused}")
            if not (after := page.next):
                return

    call(target, work)
    if not json:
        typer.echo(f"{counts[True]} of {counts[True] + counts[False]} published again")


def _line(letter: system_types.DeadLetter) -> str:
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(letter.at))
    if not letter.topic:
        return f"{letter.id}  {at}  {sanitize(letter.error)}"
    message = f"{letter.message or letter.topic} on {sanitize(letter.topic)}/{letter.partition}"
    tries = f"{letter.attempts} attempt{'' if letter.attempts == 1 else 's'}"
    why = f"{tries}: {sanitize(letter.error, 300)}"
    return "  ".join((letter.id, at, sanitize(letter.service), message, sanitize(letter.url, 500), why))
