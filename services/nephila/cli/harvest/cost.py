"""`nephila cost`: fetches and bytes of each job, and per useful item, from the rows."""

from __future__ import annotations

from typing import Annotated

import typer

from nephila.cli.jobs.table import print_table
from nephila.cli.options import DEFAULT_OUT, Json
from nephila.cli.output import print_json
from nephila.cli.terminal import sanitize
from nephila.cli.tools.export import find

HEAD = ("job", "fetches", "MB", "pages", "near-copies", "items", "fetches/useful", "KB/useful", "text chars/useful")


def cost(
    out: Annotated[
        str,
        typer.Option("--out", metavar="DIR|URL", help="Directory of the crawl, or the URL of a database with rows."),
    ] = str(DEFAULT_OUT),
    job: Annotated[str, typer.Option(metavar="NAME", help="Only of this job.")] = "",
    json: Json = False,
) -> None:
    """Show fetches and bytes of each job, and per useful item: items of rules, else pages that are no near-copies."""
    from nephila.storage.read.cost import costs

    source, only = find(out)
    found = costs(source, job or only)
    if json:
        print_json([{**one._asdict(), "useful": one.useful} for one in found])
        return
    rows = [
        (
            sanitize(one.job, 60),
            f"{one.fetches:,}",
            f"{one.bytes / 1e6:,.1f}",
            f"{one.pages:,}",
            f"{one.near_copies:,}",
            f"{one.items:,}",
            _number(one.per_useful(one.fetches)),
            _number(one.per_useful(one.bytes), 1000),
            _number(one.per_useful(one.text_chars)),
        )
        for one in found
    ]
    print_table([HEAD, *rows])


def _number(value: float | None, unit: int = 1) -> str:
    return "-" if value is None else f"{value / unit:,.2f}"
