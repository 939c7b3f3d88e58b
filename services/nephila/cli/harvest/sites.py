"""`nephila sites …`: sites and their directories, with inherited settings, and the program that starts their runs."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Unpack

import typer

from nephila.cli.jobs.table import print_table
from nephila.cli.options import DEFAULT_OUT, Json, Out, values, with_options
from nephila.cli.output import note, print_json
from nephila.cli.target import Bootstrap, ControlTarget, Server, TokenFile
from nephila.cli.terminal import sanitize
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.programs.options import CommandOptions

if TYPE_CHECKING:
    from nephila.control.api import Control
    from nephila.harvest.sites.planner import DirectoryPlan, DirectoryProgress
    from nephila.harvest.sites.resolve import Value
    from nephila.harvest.sites.site_documents import SiteDocument
    from nephila.harvest.sites.store import SiteStore
    from nephila.programs.site_runner import PageRows, SiteRunner

app = typer.Typer(add_completion=False, help="Sites and their directories, harvested by runs with a frequency.")

SitesFile = Annotated[
    str, typer.Option("--sites", metavar="FILE", help="File of the sites and their runs; by default DIR/sites.db.")
]
MAX_BYTES = 64 << 20
"""Of a CSV file."""


@app.command()
def apply(
    files: Annotated[
        list[str], typer.Option("--file", "-f", metavar="FILE", help="Files of Site documents; - is standard input.")
    ],
    out: Out = DEFAULT_OUT,
    sites: SitesFile = "",
    prune: Annotated[bool, typer.Option("--prune", help="Delete the sites that are not in the files.")] = False,
    json: Json = False,
) -> None:
    """Make the sites what the files say, all of them or, where one is wrong, none."""
    from nephila.harvest.sites.site_documents import distinct, load

    _apply(distinct(site for name in files for site in load(*_read(name))), out, sites, prune=prune, json=json)


@app.command("import")
def import_(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A CSV file; - is standard input.")],
    out: Out = DEFAULT_OUT,
    sites: SitesFile = "",
    prune: Annotated[bool, typer.Option("--prune", help="Delete the sites that are not in the file.")] = False,
    json: Json = False,
) -> None:
    """Apply the sites of a CSV file as `export` writes it: all of them or, where one is wrong, none."""
    from nephila.harvest.sites.csv_table import load

    _apply(load(*_read(file, MAX_BYTES)), out, sites, prune=prune, json=json)


@app.command()
def export(
    out: Out = DEFAULT_OUT,
    sites: SitesFile = "",
    format: Annotated[str, typer.Option("--format", metavar="csv|yaml", help="The format.")] = "csv",
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="By default standard output.")] = "",
    json: Annotated[bool, typer.Option("--json", help="Print the documents as JSON, one a line.")] = False,
) -> None:
    """Write all sites as CSV or as documents."""
    import io

    if format not in ("csv", "yaml"):
        raise UsageError(f"--format {format!r} is neither csv nor yaml")
    with _open(out, sites) as store:
        found = list(store.sites().sites.values())
    if json:
        for site in found:
            print_json(site.content)
        return
    stream = io.StringIO()
    if format == "csv":
        from nephila.harvest.sites.csv_table import write

        write(stream, found)
    else:
        import yaml

        yaml.safe_dump_all((site.content for site in found), stream, sort_keys=False, allow_unicode=True)
    if not output:
        typer.echo(stream.getvalue(), nl=False)
        return
    try:
        Path(output).write_text(stream.getvalue(), encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write {output}: {error.strerror}") from None
    note(f"{len(found):,} sites written to {output}")


@app.command("list")
def list_sites(
    out: Out = DEFAULT_OUT,
    sites: SitesFile = "",
    check: Annotated[bool, typer.Option("--check", help="End with exit code 1 when a list was not fetched.")] = False,
    json: Json = False,
) -> None:
    """Show the directories with their last and next runs, and the verdict on their lists: fetched, or a fault with its
    cause, its begin and a proposal."""
    from nephila.programs.site_runner import list_line

    with _open(out, sites) as store:
        rows = list(_rows(store))
        faults = [(name, one) for name, lists in store.lists().items() for one in lists if one.is_fault]
    if json:
        print_json(rows)
    elif not rows:
        note("there is no directory; see nephila sites apply")
    else:
        left_out = {
            "lists",
            "why",
            "paused",
            "description",
            *(text for text in ("country", "type") if not any(row[text] for row in rows)),
        }
        shown = [{name: value for name, value in row.items() if name not in left_out} for row in rows]
        table = [[_cell(value) for value in row.values()] for row in shown]
        print_table([[name.replace("_", " ") for name in shown[0]], *table])
        known = {row["directory"] for row in rows}
        for name, one in faults:
            if name in known:
                typer.echo(f"{name}: {sanitize(list_line(one), 2000)}")
        for row in rows:
            if row["why"]:
                typer.echo(f"{row['directory']}: {sanitize(row['why'], 2000)}")
    if check and any(one.fault for row in rows for one in row["lists"]):
        raise typer.Exit(1)


@app.command()
def explain(
    url: Annotated[str, typer.Argument(metavar="URL", help="Any URL of a site.")],
    out: Out = DEFAULT_OUT,
    sites: SitesFile = "",
    json: Json = False,
) -> None:
    """Show the directory of a URL, and which setting holds there from which origin."""
    from nephila.harvest.sites import resolve
    from nephila.native import UrlError

    with _open(out, sites) as store:
        try:
            found = resolve.explain(store.sites(), url)
        except UrlError as error:
            raise UsageError(f"{sanitize(url, 200)!r} is no URL: {error}") from None
    if json:
        print_json({**found._asdict(), "values": {path: value._asdict() for path, value in found.values.items()}})
        return
    if not found.site:
        raise UserError(f"no site or directory covers {sanitize(found.surt, 500)}")
    typer.echo(f"{sanitize(found.surt, 2000)}")
    where = f"directory {found.directory}" if found.directory else f"site {found.site}, in no directory"
    typer.echo(f"{where} (prefix {sanitize(found.prefix, 2000)})")
    print_table([("setting", "value", "from", "place"), *map(_line, found.values.items())], left=4)


@app.command()
def delete(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Names of sites.")],
    out: Out = DEFAULT_OUT,
    sites: SitesFile = "",
    json: Json = False,
) -> None:
    """Delete sites; `run` deletes the jobs of their directories. The rows of the table pages stay."""
    with _open(out, sites) as store:
        known = store.sites().sites
        for name in names:
            if name not in known:
                raise UserError(f"there is no site {sanitize(name, 200)!r}")
        _print_changes(store.apply((), names), json=json)


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
    from nephila.harvest.sites.planner import Planner
    from nephila.harvest.sites.store import only_runner
    from nephila.kernel.runtime.clock import SystemClock
    from nephila.programs.site_metrics import collectors, metrics_server
    from nephila.programs.site_runner import SiteRunner

    path = _file(out, sites)
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

    with _open(out, sites) as store, only_runner(path):
        target = ControlTarget(out, bootstrap, server, token_file)
        if target.is_directory and not _runs(out):
            from nephila.cli.services.up import run_up

            beside, given = partial(collectors, runners), values(options)
            given["browser"] = given["browser"] or bool(_rendered(store))
            raise typer.Exit(run_up(out, given, None, quiet=quiet, companion=serve, beside=beside))
        _run_remote(target, serve)


def _rendered(store: SiteStore) -> list[str]:
    """Directories whose pages a browser renders."""
    from nephila.harvest.sites import resolve

    sites = store.sites()
    return [name for name, part in sites.directories.items() if resolve.values(sites, *part)["render"].value != "never"]


def _page_rows(target: ControlTarget, place: str) -> PageRows | None:
    """Where the runner reads the rows of lists; None: what the control API shows."""
    import os

    from nephila.programs.output_directory import find_rows
    from nephila.programs.site_runner import StoredRows

    place = place or (str(target.out) if target.is_directory else os.environ.get("NEPHILA_STORAGE__STORE", ""))
    return StoredRows(find_rows(place)[0]) if place else None


def _run_remote(target: ControlTarget, serve: Any) -> None:
    from nephila.cli.client import call
    from nephila.kernel.runtime.stop_signals import stopped_by

    async def work(control: Control) -> None:
        stop = asyncio.Event()
        with stopped_by(asyncio.get_running_loop(), lambda _: stop.set()):
            await serve(control, stop)

    call(target, work)


def _runs(out: Path) -> bool:
    """Whether a program serves the control API in the directory."""
    from nephila.programs.output_directory import OutputDirectory

    return bool(OutputDirectory(out).holder())


def _file(out: Path, sites: str) -> Path:
    from nephila.harvest.sites.store import FILE

    return Path(sites) if sites else out / FILE


@contextmanager
def _open(out: Path, sites: str, *, create: bool = False) -> Iterator[SiteStore]:
    from nephila.harvest.sites.store import open_store

    with open_store(_file(out, sites), create=create) as store:
        yield store


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


def _apply(found: list[SiteDocument], out: Path, sites: str, *, prune: bool, json: bool) -> None:
    with _open(out, sites, create=True) as store:
        names = {site.name for site in found}
        removed = [name for name in store.sites().sites if name not in names] if prune else []
        _print_changes(store.apply(found, removed), json=json)
        if rendered := _rendered(store):
            from nephila.downloader.browser.installation import missing
            from nephila.downloader.config import DownloaderConfig

            if reason := missing(DownloaderConfig().browser_executable):
                note(f"{rendered[0]} needs a browser (render), and nephila sites run cannot start one here: {reason}")


def _print_changes(changes: Any, *, json: bool) -> None:
    if json:
        print_json([one._asdict() for one in changes])
        return
    for one in changes:
        typer.echo(f"{one.name}: {one.verdict} ({one.directories:,} directories)")


def _rows(store: SiteStore) -> Iterator[dict[str, Any]]:
    from nephila.harvest.sites import resolve
    from nephila.harvest.sites.verdicts import worst
    from nephila.programs.site_lists import shown as shown_list
    from nephila.programs.site_runner import plan_of

    sites, progress, runs, lists = store.sites(), store.progress(), store.last_runs(), store.lists()
    for name, settings in resolve.by_score(sites).items():
        last, own = runs.get(name), lists.get(name, [])
        shown = worst(own)
        yield {
            "directory": name,
            "frequency": settings["frequency"].value,
            "score": settings["score"].value,
            "last_run": _time(last.started_at) if last else "",
            "ended": "" if last is None else last.ended_by or "running",
            "new_pages": last.new_pages if last else 0,
            "verdict": shown.verdict if shown is not None else "",
            "status": shown.status or "" if shown is not None else "",
            "since": _time(shown.since) if shown is not None else "",
            "next_run": _next_run(plan_of(sites, name), progress.get(name)),
            "why": last.why if last else "",
            "paused": settings["paused"].value,
            **{text: settings[text].value if text in settings else "" for text in resolve.TEXTS},
            "lists": [shown_list(one) for one in own],
        }


def _next_run(plan: DirectoryPlan, progress: DirectoryProgress | None) -> str:
    if plan.paused:
        return "paused"
    return _time(plan.opens_at(progress.state.next_at)) if progress is not None else ""


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if at else ""


def _cell(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else sanitize(str(value), 60)


def _line(item: tuple[str, Value]) -> tuple[str, str, str, str]:
    path, value = item
    shown = value.value if isinstance(value.value, str) else _json(value.value)
    return path, sanitize(shown, 80), value.origin, value.location


def _json(value: Any) -> str:
    import msgspec

    return msgspec.json.encode(value).decode()
