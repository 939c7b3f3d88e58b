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

        checks = check_system(bootstrap, repair=repair)
    else:
        from nephila_tools.check.directory import check as check_directory

        checks = check_directory(OutputDirectory(out), repair=repair)
    if json:
        print_json({"sound": all(job.sound for job in checks), "jobs": checks})
    for job in checks if not json else ():
        rows = "none without a row" if not job.lost else f"{job.lost:,} without a row"
        typer.echo(f"{job.job}: {job.ended:,} URLs have ended, {rows}")
        for url in job.urls[:SHOWN]:
            typer.echo(f"  lost {sanitize(url)}")
        if len(job.urls) > SHOWN:
            typer.echo(f"  lost {len(job.urls) - SHOWN:,} more (--json has all)")
        if job.repaired:
            then = "their rows are written again" if bootstrap else f"queued; continue: {continuation(out)}"
            typer.echo(f"{job.job}: {job.repaired:,} {then}")
        if job.forgotten:
            again = f"{program()} crawl --refresh --out {out}"
            note(f"{job.forgotten:,} lost URLs of {job.job} are named by nothing; {again} finds them")
        if not job.sound:
            note(f"{job.lost - job.repaired - job.forgotten:,} rows of {job.job} are lost; {program()} check --repair")
    if not all(job.sound for job in checks):
        raise typer.Exit(1)
