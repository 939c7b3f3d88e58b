"""`nephila what-if`: the recorded history of recrawls against other frequencies and budgets."""

from __future__ import annotations

from typing import Annotated

import typer
from nephila.cli.options import DEFAULT_OUT, Json
from nephila.cli.output import note, print_json
from nephila.kernel.documents.field_types import check_duration, seconds
from nephila.kernel.runtime.errors import UsageError
from nephila.programs.output_directory import find_rows
from nephila_control.commands.jobs.table import print_table

HEAD = ("scenario", "requests", "a day", "× recorded", "found in time (95 %)", "mean delay", "versions lost")


def what_if(
    scenarios: Annotated[
        list[str],
        typer.Argument(metavar="SCENARIO…", help="6h; 1h..14d (adaptive); 1d@5000 (at most 5,000 requests a day)."),
    ],
    out: Annotated[
        str,
        typer.Option("--out", metavar="DIR|URL", help="Directory of the crawl, or the URL of a database with rows."),
    ] = str(DEFAULT_OUT),
    job: Annotated[str, typer.Option(metavar="NAME", help="Only pages of this job.")] = "",
    within: Annotated[str, typer.Option(metavar="TIME", help="A change counts as found in time within this.")] = "12h",
    json: Json = False,
) -> None:
    """Replay what pages did against other frequencies: requests, and changes that would have been found in time."""
    from nephila_harvest.what_if.compare import MAX_SCENARIOS, compare

    if len(scenarios) > MAX_SCENARIOS:
        raise UsageError(f"at most {MAX_SCENARIOS} scenarios")
    try:
        within_s = seconds(check_duration(within))
    except ValueError as error:
        raise UsageError(f"--within {within!r}: {error}") from None
    source, only = find_rows(out)
    result = compare(source, job or only or "", scenarios, within_s)
    if json:
        print_json({**result._asdict(), "outcomes": [outcome._asdict() for outcome in result.outcomes]})
        return
    base = max(result.outcomes[0].requests, 1)
    rows = []
    for outcome in result.outcomes:
        share = outcome.within
        in_time = f"{share.estimate:.1%} ({share.low:.1%} to {share.high:.1%})" if share else "no change"
        spent = (f"{outcome.requests:,}", f"{outcome.per_day:,.0f}", f"{outcome.requests / base:.2f}")
        rows.append(
            (outcome.name, *spent, in_time, f"{outcome.mean_delay_s / 3600:.1f} h", f"{outcome.versions_lost:,}")
        )
    print_table([HEAD, *rows])
    note(f"{result.pages:,} of {result.of:,} pages with a history, {result.days:.1f} days, in time = within {within}")
    for outcome in result.outcomes:
        if outcome.cut:
            note(f"{outcome.name}: only the first {outcome.requests:,} requests were replayed")
