"""`nephila export`: the result of a crawl in a format for other programs; reads DIR, also while the crawl runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import typer

from nephila.cli.options import DEFAULT_OUT
from nephila.cli.output import note
from nephila.cli.terminal import escape_controls
from nephila.kernel.runtime.errors import UsageError, none_of
from nephila.kernel.runtime.extensions import extension
from nephila.programs.output_directory import find_rows
from nephila.storage.source import Source, display_name, is_url


def export(
    result: Annotated[
        str, typer.Option("--out", metavar="DIR|URL", help="Directory of a crawl, or a database's URL.")
    ] = str(DEFAULT_OUT),
    format: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="jsonl|csv|parquet|markdown|chunks|blocks|cdxj|wacz",
            help="What to write; default with --broken-links: csv.",
        ),
    ] = "",
    json: Annotated[bool, typer.Option("--json", help="The same as --format jsonl.")] = False,
    out: Annotated[
        str,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Output; default: standard output, for Parquet DIR/export.parquet, for WACZ DIR/export.wacz. For "
            "Markdown, a path ending in .jsonl is one file of JSON lines, any other path a directory with a file per "
            "page.",
        ),
    ] = "-",
    all_outcomes: Annotated[
        bool, typer.Option("--all", help="Also rows that were denied, failed or dropped, with their reason.")
    ] = False,
    raw_csv: Annotated[
        bool,
        typer.Option(
            "--raw-csv", help="CSV cells unchanged: without the ' before a cell that a spreadsheet reads as a formula."
        ),
    ] = False,
    links: Annotated[
        Literal["inline", "reference", "none"],
        typer.Option(help="Links in Markdown and chunks: [text](URL), [text][1], or their text alone."),
    ] = "inline",
    changes: Annotated[
        bool,
        typer.Option(
            "--changes", help="Only pages that are new or whose text has changed; the column `change` names which."
        ),
    ] = False,
    job: Annotated[str, typer.Option(metavar="NAME", help="Only rows of this job.")] = "",
    items: Annotated[
        bool, typer.Option("--items", help="The items that rules extracted, a row per item: jsonl, csv or parquet.")
    ] = False,
    columns: Annotated[
        str,
        typer.Option(metavar="A,B", help="Only these, in this order; meta.NAME of pages, price.amount of --items."),
    ] = "",
    explode: Annotated[
        str,
        typer.Option(metavar="FIELD", help="With --items: a row for each element of this list, as of variants."),
    ] = "",
    chunk_chars: Annotated[
        int, typer.Option("--chunk-chars", metavar="N", help="Maximum characters of a chunk, for --format chunks.")
    ] = 2000,
    chunk_overlap: Annotated[
        int,
        typer.Option("--chunk-overlap", metavar="N", help="Characters of a chunk that the next one repeats."),
    ] = 200,
    broken_links: Annotated[
        bool,
        typer.Option(
            "--broken-links", help="Links to URLs that failed: from, to, status, reason, anchor; needs --links."
        ),
    ] = False,
    check_external: Annotated[
        bool,
        typer.Option(
            "--check-external",
            help="With --broken-links: request links that the crawl did not follow, once each, at its pace.",
        ),
    ] = False,
    check_requisites: Annotated[
        bool,
        typer.Option(
            "--check-requisites",
            help="With --broken-links: pictures, styles and scripts of kept pages as well; needs --keep-raw or WARC.",
        ),
    ] = False,
    check_fragments: Annotated[
        bool,
        typer.Option(
            "--check-fragments",
            help="With --broken-links: places (#name) that links name as well; needs --keep-raw or WARC.",
        ),
    ] = False,
    since: Annotated[
        str, typer.Option("--since", metavar="ISO", help="With --changes: at or after this instant, in UTC.")
    ] = "",
) -> None:
    """Write the pages of a crawl as JSON lines, CSV, Parquet, Markdown, or chunks for language models."""
    if json and format not in ("", "jsonl"):
        raise UsageError(f"--json is --format jsonl, not {format}")
    choices = _Choices(
        result=result,
        format="jsonl" if json else format,
        out=out,
        all_outcomes=all_outcomes,
        raw_csv=raw_csv,
        links=links,
        changes=changes,
        job=job,
        items=items,
        columns=tuple(name.strip() for name in columns.split(",") if name.strip()),
        explode=explode.strip(),
        chunk=(chunk_chars, chunk_overlap),
        since=since,
    )
    checks = (check_external, check_requisites, check_fragments)
    if broken_links or any(checks):
        if changes or all_outcomes or items or columns or not broken_links:
            raise UsageError("checks go with --broken-links, and both with no other choice of rows")
        _broken_links(choices, checks)
        return
    _check(choices)
    source, only = find_rows(result)
    _writer(choices)(choices, source, job or only)


class _Choices(NamedTuple):
    """The options of an export."""

    result: str
    format: str
    out: str
    all_outcomes: bool
    raw_csv: bool
    links: Literal["inline", "reference", "none"]
    changes: bool
    job: str
    items: bool
    columns: tuple[str, ...]
    explode: str
    chunk: tuple[int, int]
    """Characters of a chunk, and of its overlap."""
    since: str

    @property
    def target(self) -> Path | None:
        """None: standard output."""
        return None if self.out == "-" else Path(self.out)


def _check(choices: _Choices) -> None:
    """Options that fit together. Raises `UsageError`."""
    from nephila.storage.read.export import ARCHIVES, FORMATS

    if not choices.format:
        raise UsageError("--format is missing: jsonl, csv, parquet, markdown, chunks, blocks, cdxj or wacz")
    if choices.format not in (*FORMATS, *ARCHIVES):
        raise UsageError(f"--format {choices.format!r} {none_of(choices.format, (*FORMATS, *ARCHIVES))}")
    if choices.raw_csv and choices.format != "csv":
        raise UsageError("--raw-csv needs --format csv")
    if choices.since and not choices.changes:
        raise UsageError("--since needs --changes")
    if choices.items and (choices.changes or choices.all_outcomes):
        raise UsageError("--items are those of stored pages: leave --changes and --all out")
    if choices.explode and not choices.items:
        raise UsageError("--explode needs --items")
    if choices.format == "chunks":
        extension("chunk-size")(*choices.chunk, ("--chunk-chars", "--chunk-overlap"))


def _writer(choices: _Choices) -> Callable[[_Choices, Source, str | None], None]:
    """What writes the rows that are wanted."""
    from nephila.storage.read.export import ARCHIVES

    if choices.format in ARCHIVES:
        return _archive
    return _items if choices.items else _pages


def _broken_links(choices: _Choices, checks: tuple[bool, bool, bool]) -> None:
    source, only = find_rows(choices.result)
    job = choices.job or only
    format = choices.format or "csv"
    export = extension("broken-links")
    export(choices.result, source, format, choices.target, job, raw_csv=choices.raw_csv, checks=checks)


def _pages(choices: _Choices, source: Source, job: str | None) -> None:
    from nephila.storage.read.export import Layout
    from nephila.storage.read.export import export as write

    layout = Layout(choices.columns, choices.raw_csv, chunk=choices.chunk, shown=escape_controls)
    texts = extension("row-markdown")(choices.links) if choices.format in ("markdown", "chunks") else None
    rows = write(
        source,
        choices.format,
        choices.target,
        all_outcomes=choices.all_outcomes,
        job=job,
        changes=choices.changes,
        since=choices.since,
        layout=layout._replace(text=texts) if texts else layout,
    )
    if texts and texts.plain:
        note(
            f"{texts.plain:,} of {texts.rows:,} pages are plain text: their rows have no structure, because the Python "
            "fallback stored them; they get it when they are fetched again"
        )
    out = choices.out
    if choices.format == "parquet" and out == "-":
        out = str((source if isinstance(source, Path) else Path()) / "export.parquet")
    if out != "-":
        note(f"{rows:,} rows written to {out}")
    elif not rows:
        none = "no page that is new or has changed" if choices.changes else "no stored page"
        note(f"{display_name(source)} has {none}; --all shows what became of its URLs")


def _items(choices: _Choices, source: Source, job: str | None) -> None:
    from nephila.storage.read.export import export_items

    rows = export_items(
        source,
        choices.format,
        choices.target,
        job=job,
        raw_csv=choices.raw_csv,
        columns=choices.columns,
        explode=choices.explode,
        shown=escape_controls,
    )
    if choices.out != "-":
        note(f"{rows:,} items written to {choices.out}")
    elif not rows:
        note(f"{display_name(source)} has no items; see nephila crawl --rules DIR")


def _archive(choices: _Choices, source: Source, job: str | None) -> None:
    result, format, target = choices.result, choices.format, choices.target
    if choices.changes or choices.all_outcomes or choices.items or choices.columns:
        raise UsageError(f"--format {format} is of WARC files: leave --changes, --all, --items and --columns out")
    if is_url(result):
        raise UsageError(f"--format {format} reads WARC files: name the directory of a crawl, not a database")
    number, missing = extension("archives")(Path(result), source, format, target, job=job, shown=escape_controls)
    if missing:
        note(
            f"{missing:,} stored pages are in no WARC file and not in the package;"
            f" nephila crawl --refresh --format warc --out {result} fetches them again"
        )
    if format == "wacz":
        note(f"{number:,} pages written to {target or Path(result, 'export.wacz')}")
    elif target is not None:
        note(f"{number:,} records listed in {target}")
