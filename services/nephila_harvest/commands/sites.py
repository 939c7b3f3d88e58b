"""`nephila sites …`: sites and their directories, with inherited settings, and the program that starts their runs."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Unpack

import typer
from nephila.cli.options import DEFAULT_OUT, Json, Out, values, with_options
from nephila.cli.output import note, print_json
from nephila.cli.terminal import sanitize
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.programs.options import CommandOptions
from nephila_control.commands.jobs.table import print_table
from nephila_control.commands.target import Bootstrap, ControlTarget, Server, TokenFile, with_target

from nephila_harvest.commands.sites_target import SitesFile, SitesTarget, all_sites, open_sites, sites_target

if TYPE_CHECKING:
    from nephila_control import site_types
    from nephila_control.api import Control

    from nephila_harvest.site_runner import PageRows, SiteRunner
    from nephila_harvest.sites.resolve import Value
    from nephila_harvest.sites.site_documents import SiteDocument
    from nephila_harvest.sites.store import AppliedSite, SiteStore

app = typer.Typer(add_completion=False, help="Sites and their directories, harvested by runs with a frequency.")

MAX_BYTES = 64 << 20
"""Of a CSV file."""


@app.command()
@with_target(sites_target)
def apply(
    files: Annotated[
        list[str], typer.Option("--file", "-f", metavar="FILE", help="Files of Site documents; - is standard input.")
    ],
    *,
    prune: Annotated[bool, typer.Option("--prune", help="Delete the sites that are not in the files.")] = False,
    target: SitesTarget,
    json: Json = False,
) -> None:
    """Make the sites what the files say, all of them or, where one is wrong, none."""
    from nephila_harvest.sites.site_documents import distinct, load

    _apply(distinct(site for name in files for site in load(*_read(name))), target, prune=prune, json=json)


@app.command("import")
@with_target(sites_target)
def import_(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A CSV file; - is standard input.")],
    *,
    prune: Annotated[bool, typer.Option("--prune", help="Delete the sites that are not in the file.")] = False,
    target: SitesTarget,
    json: Json = False,
) -> None:
    """Apply the sites of a CSV file as `export` writes it: all of them or, where one is wrong, none."""
    from nephila_harvest.sites.csv_table import load

    _apply(load(*_read(file, MAX_BYTES)), target, prune=prune, json=json)


@app.command()
@with_target(sites_target)
def export(
    format: Annotated[str, typer.Option("--format", metavar="csv|yaml", help="The format.")] = "csv",
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="By default standard output.")] = "",
    *,
    target: SitesTarget,
    json: Annotated[bool, typer.Option("--json", help="Print the documents as JSON, one a line.")] = False,
) -> None:
    """Write all sites as CSV or as documents."""
    import io

    if format not in ("csv", "yaml"):
        raise UsageError(f"--format {format!r} is neither csv nor yaml")
    exported = list(all_sites(target).values())
    if json:
        for site in exported:
            print_json(site.content)
        return
    stream = io.StringIO()
    if format == "csv":
        from nephila_harvest.sites.csv_table import write

        write(stream, exported)
    else:
        import yaml

        yaml.safe_dump_all((site.content for site in exported), stream, sort_keys=False, allow_unicode=True)
    if not output:
        typer.echo(stream.getvalue(), nl=False)
        return
    try:
        Path(output).write_text(stream.getvalue(), encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write {output}: {error.strerror}") from None
    note(f"{len(exported):,} sites written to {output}")


@app.command("list")
@with_target(sites_target)
def list_sites(
    check: Annotated[bool, typer.Option("--check", help="End with exit code 1 when a list was not fetched.")] = False,
    *,
    target: SitesTarget,
    json: Json = False,
) -> None:
    """Show the directories with their last and next runs, and the verdict on their lists: fetched, or a fault with its
    cause, its begin and a proposal."""
    from nephila_control.sites import directories, list_line

    if target.server:
        from nephila_control import requests
        from nephila_control.commands.client import call

        rows = call(target, lambda control: control.list_directories(requests.Empty())).directories
    else:
        with open_sites(target) as store:
            rows = directories(store, None, time.time())
    if json:
        print_json([_row(row) for row in rows])
    elif not rows:
        note("there is no directory; see nephila sites apply")
    else:
        texts = (
            text for text in ("country", "type", "recorded", "left_out") if not any(getattr(row, text) for row in rows)
        )
        left_out = {"lists", "why", "paused", "description", "news_at", "days", *texts}
        table = [{name: value for name, value in _row(row).items() if name not in left_out} for row in rows]
        print_table(
            [
                [name.replace("_", " ") for name in table[0]],
                *([_cell(value) for value in row.values()] for row in table),
            ]
        )
        for row in rows:
            for list_state in row.lists:
                if list_state.fault:
                    typer.echo(f"{row.name}: {sanitize(list_line(list_state), 2000)}")
        for row in rows:
            if row.why:
                typer.echo(f"{row.name}: {sanitize(row.why, 2000)}")
    if check and any(list_state.fault for row in rows for list_state in row.lists):
        raise typer.Exit(1)


@app.command()
@with_target(sites_target)
def explain(
    url: Annotated[str, typer.Argument(metavar="URL", help="Any URL of a site.")],
    *,
    target: SitesTarget,
    json: Json = False,
) -> None:
    """Show the directory of a URL, and which setting holds there from which origin."""
    from nephila.native import UrlError

    from nephila_harvest.sites import resolve
    from nephila_harvest.sites.site_documents import Sites

    try:
        explained = resolve.explain(Sites(all_sites(target)), url)
    except UrlError as error:
        raise UsageError(f"{sanitize(url, 200)!r} is no URL: {error}") from None
    if json:
        print_json(
            {**explained._asdict(), "values": {path: value._asdict() for path, value in explained.values.items()}}
        )
        return
    if not explained.site:
        raise UserError(f"no site or directory covers {sanitize(explained.surt, 500)}")
    typer.echo(f"{sanitize(explained.surt, 2000)}")
    where = f"directory {explained.directory}" if explained.directory else f"site {explained.site}, in no directory"
    typer.echo(f"{where} (prefix {sanitize(explained.prefix, 2000)})")
    print_table([("setting", "value", "from", "place"), *map(_line, explained.values.items())], left=4)


@app.command()
@with_target(sites_target)
def delete(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Names of sites, or SITE.DIRECTORY.")],
    *,
    target: SitesTarget,
    json: Json = False,
) -> None:
    """Delete sites or directories; `run` ends their runs and deletes their jobs. The rows of the table pages stay."""
    from nephila_harvest.sites.site_documents import Sites
    from nephila_harvest.sites.store import without

    if not target.server:
        with open_sites(target) as store:
            _print_changes(_changes(store.edit(lambda present: without(present, names))), json=json)
        return
    from nephila_control import site_types
    from nephila_control.commands.client import call

    present = Sites(all_sites(target))
    edit = without(present, names)
    etags = {site.name: present.sites[site.name].etag for site in edit.sites}

    async def work(control: Control) -> list[site_types.SiteChange]:
        request = site_types.ApplySites(sites=[site.content for site in edit.sites], etags=etags)
        changes = list((await control.apply_sites(request)).sites) if edit.sites else []
        for name in edit.deleted:
            request_of = site_types.DeleteSite(name=name, etag=present.sites[name].etag)
            changes.append(await control.delete_site(request_of))
        return changes

    _print_changes(call(target, work), json=json)


@app.command()
@with_options("up")
def run(
    out: Out = DEFAULT_OUT,
    sites: SitesFile = "",
    bootstrap: Bootstrap = "",
    server: Server = "",
    token_file: TokenFile = "",
    parallel: Annotated[
        int, typer.Option(metavar="N", min=1, max=10_000, help="Runs of directories at the same time.")
    ] = 16,
    pages_per_day: Annotated[
        int, typer.Option("--pages-per-day", metavar="N", min=0, help="Pages of all runs of a UTC day; 0 = no limit.")
    ] = 0,
    rows: Annotated[
        str,
        typer.Option(
            "--rows",
            metavar="DIR|URL",
            help="Where the rows are, for the verdicts on lists; by default those of DIR, or NEPHILA_STORAGE__STORE.",
        ),
    ] = "",
    metrics_port: Annotated[
        int | None,
        typer.Option(metavar="PORT", min=1, max=65535, help="Serve /healthz, /readyz and /metrics of the runs here."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print only errors.")] = False,
    **options: Unpack[CommandOptions],
) -> None:
    """Start the runs of directories when they are due, until it is stopped: in a program of its own in DIR as
    `nephila up`, or over the control API of one that runs in DIR, of a server or of a broker."""
    from nephila.kernel.runtime.clock import SystemClock

    from nephila_harvest.site_metrics import collectors, metrics_server
    from nephila_harvest.site_runner import SiteRunner
    from nephila_harvest.sites.planner import Planner
    from nephila_harvest.sites.store import only_runner

    sites_directory = SitesTarget(out, sites=sites)
    print_line = (lambda _: None) if quiet else partial(print, flush=True)

    runners: list[SiteRunner] = []

    async def serve(control: Control, stop: asyncio.Event) -> None:
        planner = Planner(parallel, pages_per_day)
        runners.append(SiteRunner(store, control, SystemClock(), planner, print_line, _page_rows(target, rows)))
        if metrics_port is None:
            await runners[0].run(stop)
            return
        server = metrics_server(partial(collectors, runners), metrics_port)
        await server.open()
        try:
            await runners[0].run(stop)
        finally:
            await server.close()

    with open_sites(sites_directory) as store, only_runner(sites_directory.file):
        target = ControlTarget(out, bootstrap, server, token_file)
        if target.is_directory and not _runs(out):
            from nephila_control.commands.up import run_up

            beside, settings = partial(collectors, runners), values(options)
            settings["browser"] = settings["browser"] or bool(_rendered(store))
            code = run_up(out, settings, None, quiet=quiet, companion=serve, beside=beside, sites=sites_directory.file)
            raise typer.Exit(code)
        _run_remote(target, serve)


def _rendered(store: SiteStore) -> list[str]:
    """Directories whose pages a browser renders."""
    from nephila_harvest.sites import resolve

    sites = store.sites()
    return [name for name, part in sites.directories.items() if resolve.values(sites, *part)["render"].value != "never"]


def _page_rows(target: ControlTarget, origin: str) -> PageRows | None:
    """Where the runner reads the rows of lists; None: what the control API shows."""
    import os

    from nephila.programs.output_directory import find_rows

    from nephila_harvest.site_runner import StoredRows

    origin = origin or (str(target.out) if target.is_directory else os.environ.get("NEPHILA_STORAGE__STORE", ""))
    return StoredRows(find_rows(origin)[0]) if origin else None


def _run_remote(target: ControlTarget, serve: Any) -> None:
    from nephila.kernel.process.stop_signals import stopped_by
    from nephila_control.commands.client import call

    async def work(control: Control) -> None:
        stop = asyncio.Event()
        with stopped_by(asyncio.get_running_loop(), lambda _: stop.set()):
            await serve(control, stop)

    call(target, work)


def _runs(out: Path) -> bool:
    """Whether a program serves the control API in the directory."""
    from nephila.programs.output_directory import OutputDirectory

    return bool(OutputDirectory(out).holder())


def _read(name: str, limit: int = 0) -> tuple[bytes, str]:
    """Content and title of a file."""
    from nephila.kernel.documents.yaml import MAX_BYTES as MAX_YAML_BYTES

    limit = limit or MAX_YAML_BYTES
    try:
        if name == "-":
            data, title = sys.stdin.buffer.read(limit + 1), "standard input"
        else:
            with Path(name).open("rb") as file:
                data, title = file.read(limit + 1), name
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror}") from None
    if len(data) > limit:
        raise UsageError(f"{title}: larger than {limit >> 20} MiB")
    return data, title


def _apply(new: list[SiteDocument], target: SitesTarget, *, prune: bool, json: bool) -> None:
    if target.server:
        from nephila_control import site_types
        from nephila_control.commands.client import call

        request = site_types.ApplySites(sites=[site.content for site in new], prune=prune)
        _print_changes(call(target, lambda control: control.apply_sites(request)).sites, json=json)
        return
    with open_sites(target, create=True) as store:
        names = {site.name for site in new}
        removed = [name for name in store.sites().sites if name not in names] if prune else []
        _print_changes(_changes(store.apply(new, removed)), json=json)
        if rendered := _rendered(store):
            from nephila.downloader.config import DownloaderConfig
            from nephila_browser.installation import missing

            if reason := missing(DownloaderConfig().browser.executable):
                note(f"{rendered[0]} needs a browser (render), and nephila sites run cannot start one here: {reason}")


def _changes(changes: Iterable[AppliedSite]) -> list[site_types.SiteChange]:
    from nephila_control.sites import change_answer

    return [change_answer(site) for site in changes]


def _print_changes(changes: list[site_types.SiteChange], *, json: bool) -> None:
    if json:
        print_json(changes)
        return
    for change in changes:
        typer.echo(f"{change.name}: {change.verdict} ({change.directories:,} directories)")
        for name in change.removed:
            rest = "its rows stay"
            if name in change.running:
                rest = "its run is open; nephila sites run ends it and deletes its job, its rows stay"
            elif name in change.jobs:
                rest = "nephila sites run deletes its job, its rows stay"
            typer.echo(f"{name}: removed; {rest}")


def _row(row: site_types.Directory) -> dict[str, Any]:
    from nephila_harvest.sites import resolve

    first = next((list_state for list_state in row.lists if list_state.fault), row.lists[0] if row.lists else None)
    return {
        "directory": row.name,
        "frequency": row.frequency,
        "score": row.score,
        "last_run": _time(row.last_run),
        "ended": row.ended or ("running" if row.last_run else ""),
        "new_pages": row.new_pages,
        "recorded": row.recorded,
        "left_out": row.left_out,
        "verdict": first.verdict if first is not None else "",
        "status": first.status or "" if first is not None else "",
        "since": _time(first.since) if first is not None else "",
        "next_run": _time(row.next_run),
        "why": row.why,
        "paused": row.paused,
        **{text: getattr(row, text) for text in resolve.TEXTS},
        "lists": row.lists,
    }


def _time(text: str) -> str:
    """An instant without its milliseconds."""
    return f"{text[:19]}Z" if text[:1].isdecimal() else text


def _cell(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else sanitize(str(value), 60)


def _line(item: tuple[str, Value]) -> tuple[str, str, str, str]:
    path, value = item
    text = value.value if isinstance(value.value, str) else _json(value.value)
    return path, sanitize(text, 80), value.origin, value.location


def _json(value: Any) -> str:
    import msgspec

    return msgspec.json.encode(value).decode()
