"""`nephila pages` and `nephila hosts`: what the console lists, and the pace of a host, on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer
from nephila.cli.options import Json
from nephila.cli.output import note, print_json
from nephila.cli.progress import duration
from nephila.cli.terminal import sanitize
from nephila.kernel.runtime.errors import NotReadyError, UsageError
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
        help="Write hosts.parquet (each host with its harmonic centrality), host-links.parquet and domains.parquet "
        "(for crawl --ranks) into DIR, from the stored links (--links) of the crawl in --out.",
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
    search: Annotated[
        str, typer.Argument(metavar="[TEXT]", help="Part of the host's name; its whole name for a change.")
    ] = "",
    job: JobName = "",
    limit: Limit = 50,
    graph: Graph = None,
    *,
    retry: Annotated[
        bool, typer.Option("--retry", help="Fetch from the host again: end its pause and its back-off.")
    ] = False,
    pause: Annotated[
        str | None, typer.Option(metavar="TIME", help="Fetch nothing from the host for so long, 30d at most.")
    ] = None,
    delay: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Leave at least so much between two requests, 1d at most; 0: the delay of its jobs."
        ),
    ] = None,
    target: ControlTarget,
    json: Json = False,
) -> None:
    """List hosts with queued URLs: when the next request of each is due, and why it waits. Or change the pace of one
    host, for all jobs; it never becomes faster than robots.txt and its jobs allow. Or write their graph."""
    if graph is not None:
        _write_graph(target, job, graph)
        return
    if change := _change(search, retry=retry, pause=pause, delay=delay):
        _print_change(call(target, lambda control: control.change_host(change)), as_json=json)
        return
    request = screen_types.ListHosts(search=search, job=job, limit=limit)
    answer = call(target, lambda control: control.list_hosts(request))
    if answer.partitions and not answer.answered:
        raise NotReadyError("no scheduler has answered; see nephila service members, and repeat the command")
    if json:
        print_json(answer)
        return
    rank = ("rank",) if any(host.rank for host in answer.hosts) else ()
    rows: list[tuple[str, ...]] = [("host", "waits for", "seconds", "queued", "in flight", "delay", *rank)]
    for host in answer.hosts:
        numbers = (f"{host.wait_s:.1f}", f"{host.queued:,}", str(host.in_flight), f"{host.delay_s:g}")
        why = f"held back: {sanitize(host.domain)}" if host.domain else host.why
        rows.append((sanitize(host.name), why, *numbers, *(f"{host.rank:,}" if host.rank else "–" for _ in rank)))
    print_table(rows)
    if answer.total > len(answer.hosts):
        note(f"{answer.total - len(answer.hosts):,} more hosts")
    if answer.answered < answer.partitions:
        note(f"{answer.answered} of {answer.partitions} partitions answered; hosts of the others are missing")


def _change(host: str, *, retry: bool, pause: str | None, delay: str | None) -> screen_types.ChangeHost | None:
    """Returns None without a change. Raises `UsageError`."""
    texts = {"retry": "0" if retry else None, "pause": pause, "delay": delay}
    changes = [(action, text) for action, text in texts.items() if text is not None]
    if not changes:
        return None
    if len(changes) > 1 or not host:
        raise UsageError("a change of the pace: the name of a host, and one of --retry, --pause and --delay")
    ((action, text),) = changes
    from nephila.kernel.documents.field_types import parse_seconds  # not for each command: it loads RE2

    try:
        fields = {"name": host, "action": action, "seconds": parse_seconds(text)}
        return msgspec.convert(fields, screen_types.ChangeHost)
    except ValueError as error:
        raise UsageError(f"--{action}: {error}") from None


def _print_change(change: screen_types.HostChanged, *, as_json: bool) -> None:
    if as_json:
        print_json(change)
        return
    lines = {
        "retry": "its next request comes after its usual delay",
        "pause": f"nothing is fetched for {duration(change.seconds)}; --retry ends this",
        "delay": f"at least {change.seconds:g} s between two requests; --delay 0 ends this"
        if change.seconds
        else "the delay of its jobs counts",
    }
    typer.echo(f"{sanitize(change.name)}: {lines[change.action]}")


def _write_graph(target: ControlTarget, job: str, directory: Path) -> None:
    from nephila.programs.output_directory import find_rows

    if not target.is_directory:
        raise UsageError("--graph reads the rows of a crawl: give its directory with --out")
    source, _ = find_rows(str(target.out))
    loaded("nephila_tools.host_graph.files:write_host_graph", "--graph")(source, job or None, directory)
