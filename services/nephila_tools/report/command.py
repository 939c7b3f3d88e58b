"""`nephila report`: one HTML file about a crawl, to be read and passed on."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated

import typer
from nephila.cli.options import DEFAULT_OUT
from nephila.cli.output import note, print_json
from nephila.kernel.runtime.errors import UserError
from nephila.programs.output_directory import OutputDirectory, find_rows
from nephila.storage.source import display_name, is_url


def report(
    origin: Annotated[
        str, typer.Option("--out", metavar="DIR|URL", help="Directory of a crawl, or a database's URL.")
    ] = str(DEFAULT_OUT),
    out: Annotated[
        str,
        typer.Option("-o", "--output", metavar="FILE", help="Where to; - is standard output; default DIR/report.html."),
    ] = "",
    job: Annotated[str, typer.Option(metavar="NAME", help="Only rows of this job.")] = "",
    json: Annotated[bool, typer.Option("--json", help="Print the facts of the report as JSON.")] = False,
) -> None:
    """Write a report of a crawl as one HTML file that needs no other file."""
    from nephila import __version__

    from nephila_tools.report.document import ReportHead, render
    from nephila_tools.report.facts import gather, options_of

    source, only = find_rows(origin)
    head = ReportHead(name=display_name(source), program=f"nephila {__version__}", made_at=time.time())
    if not is_url(origin):
        head.name = Path(origin).resolve().name
        try:
            run = OutputDirectory(Path(origin)).read()
        except UserError as error:
            note(f"{error}; the report is made without it")
            run = None
        if run is not None:
            head.seeds = run.seeds or ([run.seed_file] if run.seed_file else [])
            head.reason, head.left, head.started_at = run.reason, run.left, run.started_at
            head.options, head.degraded = options_of(run), run.degraded_rules
    facts = gather(source, job or only)
    if json:
        print_json(facts)
        return
    page = render(facts, head).encode("utf-8", "replace")
    if out == "-":
        typer.get_binary_stream("stdout").write(page)
        return
    target = Path(out) if out else (Path(origin) if not is_url(origin) else Path()) / "report.html"
    part = target.with_name(target.name + ".part")
    try:
        part.write_bytes(page)
        os.replace(part, target)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise UserError(f"cannot write {target}: {error.strerror}; name another file with -o") from None
    note(f"report written to {target}")
