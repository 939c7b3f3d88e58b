"""`nephila cost`: what jobs, tenants, sites and directories have spent, and per useful item."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
import typer
from nephila.cli.options import DEFAULT_OUT, Json
from nephila.cli.output import print_json
from nephila.cli.terminal import sanitize
from nephila.kernel.runtime.errors import UserError
from nephila.programs.output_directory import OLD, OutputDirectory, find_rows
from nephila_control.commands.jobs.table import print_table

if TYPE_CHECKING:
    from nephila_harvest.cost import Labels, Totals

_SPENT = ("requests", "MB", "CPU-s", "stored MB", "browser-s")
HEAD = (*_SPENT, "pages", "items", "useful", *(f"{name}/useful" for name in ("requests", "KB", "CPU-ms", "stored KB")))
BROWSER = "browser-s/useful"


def cost(
    out: Annotated[
        str,
        typer.Option("--out", metavar="DIR|URL", help="Directory of the crawl, or the URL of a database with rows."),
    ] = str(DEFAULT_OUT),
    job: Annotated[str, typer.Option(metavar="NAME", help="Only of this job.")] = "",
    by: Annotated[
        Literal["job", "tenant", "site", "directory"], typer.Option(help="What a line of the table is.")
    ] = "job",
    json: Json = False,
) -> None:
    """Show what was spent, and per useful item: items of rules, else pages that are no near-copies. CPU-seconds and
    stored bytes are shares of those of the directory."""
    from nephila_harvest.cost import Totals, costs
    from nephila_harvest.row_costs import costs as jobs_of

    source, only = find_rows(out)
    labels, totals = _facts(Path(out)) if Path(out).is_dir() else ({}, Totals(None, None))
    cost_rows = costs(jobs_of(source, only), labels, totals, by)
    if job:
        cost_rows = [cost_row for cost_row in cost_rows if cost_row.name == job]
    if json:
        print_json([msgspec.to_builtins(cost_row) for cost_row in cost_rows])
        return
    rows = [
        (
            sanitize(cost_row.name, 60),
            f"{cost_row.requests:,}",
            _number(cost_row.bytes, 1e6),
            _number(cost_row.cpu_s),
            _number(cost_row.stored_bytes, 1e6),
            _number(cost_row.browser_s),
            f"{cost_row.pages:,}",
            f"{cost_row.items:,}",
            f"{cost_row.useful:,}",
            _number(cost_row.per_useful.get("requests")),
            _number(cost_row.per_useful.get("bytes"), 1e3),
            _number(cost_row.per_useful.get("cpu_s"), 1e-3),
            _number(cost_row.per_useful.get("stored_bytes"), 1e3),
            _number(cost_row.per_useful.get("browser_s")),
        )
        for cost_row in cost_rows
    ]
    print_table([(by, *HEAD, BROWSER), *rows])


def _facts(out: Path) -> tuple[dict[str, Labels], Totals]:
    """What run.json and the size of the directory say."""
    from nephila_harvest.cost import Labels, Totals

    try:
        run = OutputDirectory(out).read()
    except UserError:
        run = None  # the rows can be read without run.json
    stored = sum(
        path.stat().st_size
        for path in out.rglob("*")
        if path.is_file() and path.relative_to(out).parts[0] not in ("frontier", OLD)
    )
    if run is None:
        return {}, Totals(None, stored)
    labels = {name: Labels(run_job.tenant, run_job.site, run_job.browser_s) for name, run_job in run.jobs.items()}
    return labels, Totals(run.cpu_s or None, stored)


def _number(value: float | None, unit: float = 1.0) -> str:
    return "-" if value is None else f"{value / unit:,.2f}"
