"""`nephila check`: URLs that have ended against their rows."""

from __future__ import annotations

from typing import Annotated

import typer
from nephila.cli.options import DEFAULT_OUT, Json, Out
from nephila.cli.output import note, print_json, program
from nephila.cli.terminal import sanitize
from nephila.programs.output_directory import OutputDirectory

from nephila_tools.backup.command import System, continuation

SHOWN = 20
"""Lost URLs of a job that are printed; --json has all."""


def check(
    out: Out = DEFAULT_OUT,
    bootstrap: System = "",
    repair: Annotated[
        bool, typer.Option("--repair", help="Crawl lost URLs again; over Kafka, write their rows again.")
    ] = False,
    json: Json = False,
) -> None:
    """Compare URLs that have ended with rows, after a loss of the database. Exit code 1 when rows are lost and stay
    lost."""
    if bootstrap:
        from nephila_tools.check.system import check as check_system

        found = check_system(bootstrap, repair=repair)
    else:
        from nephila_tools.check.directory import check as check_directory

        found = check_directory(OutputDirectory(out), repair=repair)
    if json:
        print_json({"sound": all(one.sound for one in found), "jobs": found})
    for one in found if not json else ():
        rows = "none without a row" if not one.lost else f"{one.lost:,} without a row"
        typer.echo(f"{one.job}: {one.ended:,} URLs have ended, {rows}")
        for url in one.urls[:SHOWN]:
            typer.echo(f"  lost {sanitize(url)}")
        if len(one.urls) > SHOWN:
            typer.echo(f"  lost {len(one.urls) - SHOWN:,} more (--json has all)")
        if one.repaired:
            then = "their rows are written again" if bootstrap else f"queued; continue: {continuation(out)}"
            typer.echo(f"{one.job}: {one.repaired:,} {then}")
        if one.forgotten:
            again = f"{program()} crawl --refresh --out {out}"
            note(f"{one.forgotten:,} lost URLs of {one.job} are named by nothing; {again} finds them")
        if not one.sound:
            note(f"{one.lost - one.repaired - one.forgotten:,} rows of {one.job} are lost; {program()} check --repair")
    if not all(one.sound for one in found):
        raise typer.Exit(1)
