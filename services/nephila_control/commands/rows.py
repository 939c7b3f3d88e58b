"""`nephila pages` and `nephila hosts`: what the console lists, on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer
from nephila.cli.options import Json
from nephila.cli.output import note, print_json
from nephila.cli.terminal import sanitize
from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.runtime.extensions import loaded

from nephila_control import screen_types
from nephila_control.commands.client import call
from nephila_control.commands.jobs.table import print_table
from nephila_control.commands.target import ControlTarget, with_target

Limit = Annotated[int, typer.Option(metavar="N", min=1, max=200, help="At most so many.")]
JobName = Annotated[str, typer.Option(metavar="NAME", help="Only of this job.")]

Graph = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Write hosts.parquet (each host with its harmonic centrality) and host-links.parquet into DIR, from the "
        "stored links (--links) of the crawl in --out.",
    ),
]


@with_target()
def pages(
    search: Annotated[str, typer.Argument(metavar="[TEXT]", help="Part of the URL or of the title.")] = "",
    job: JobName = "",
    outcome: Annotated[str, typer.Option(metavar="stored|denied|failed|dropped", help="Only with this outcome.")] = "",
    reason: Annotated[str, typer.Option(metavar="REASON", help="Only with this reason, as http_404.")] = "",
    before: Annotated[int, typer.Option(metavar="N", min=0, help="Continue behind the `next` of a list.")] = 0,
    limit: Limit = 50,
    *,
    target: ControlTarget,
    json: Json = False,
) -> None:
    """List URLs that have ended, the newest first. A list looks at the newest 20,000 fetches behind --before."""
    fields = {"search": search, "job": job, "outcome": outcome, "reason": reason, "before": before, "limit": limit}
    try:
        request = msgspec.convert(fields, screen_types.ListPages)
    except msgspec.ValidationError as error:
        raise UsageError(str(error)) from None
    answer = _pages(target, request)
    if json:
        print_json(answer)
        return
    for page in answer.pages:
        ended = f"{page.outcome}({page.reason})" if page.reason else page.outcome
        title = sanitize(page.title, 100)
        typer.echo(f"{page.fetched_at}  {ended:<20}  {sanitize(page.url, 2000)}" + (f"  {title}" if title else ""))
    if answer.next:
        note(f"older ones: --before {answer.next}")


def _pages(target: ControlTarget, request: screen_types.ListPages) -> screen_types.PageList:
    if target.is_directory:
        from nephila.programs.output_directory import find_rows

        from nephila_control.stored_rows import page_list

        source, _ = find_rows(str(target.out))
        return page_list(source, request, [request.job] if request.job else None)
    return call(target, lambda control: control.list_pages(request))


@with_target()
def hosts(
    search: Annotated[str, typer.Argument(metavar="[TEXT]", help="Part of the host's name.")] = "",
    job: JobName = "",
    limit: Limit = 50,
    graph: Graph = None,
    *,
    target: ControlTarget,
    json: Json = False,
) -> None:
    """List hosts with queued URLs: when the next request of each is due, and why it waits. Or write their graph."""
    if graph is not None:
        _write_graph(target, job, graph)
        return
    request = screen_types.ListHosts(search=search, job=job, limit=limit)
    answer = call(target, lambda control: control.list_hosts(request))
    if json:
        print_json(answer)
        return
    rows: list[tuple[str, ...]] = [("host", "waits for", "seconds", "queued", "in flight", "delay")]
    for host in answer.hosts:
        numbers = (f"{host.wait_s:.1f}", f"{host.queued:,}", str(host.in_flight), f"{host.delay_s:g}")
        why = f"held back: {sanitize(host.domain)}" if host.domain else host.why
        rows.append((sanitize(host.name), why, *numbers))
    print_table(rows)
    if answer.total > len(answer.hosts):
        note(f"{answer.total - len(answer.hosts):,} more hosts")


def _write_graph(target: ControlTarget, job: str, directory: Path) -> None:
    from nephila.programs.output_directory import find_rows

    if not target.is_directory:
        raise UsageError("--graph reads the rows of a crawl: give its directory with --out")
    source, _ = find_rows(str(target.out))
    loaded("nephila_tools.host_graph.files:write_host_graph", "--graph")(source, job or None, directory)
