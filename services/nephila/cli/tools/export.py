"""`nephila export`: the result of a crawl in a format for other programs; reads DIR, also while the crawl runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from nephila.cli.options import DEFAULT_OUT
from nephila.cli.output import note
from nephila.cli.terminal import escape_controls
from nephila.kernel.runtime.errors import UsageError
from nephila.programs.output_directory import find_rows
from nephila.storage.source import Source, display_name, is_url


def export(
    place: Annotated[
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
    since: Annotated[
        str, typer.Option("--since", metavar="ISO", help="With --changes: at or after this instant, in UTC.")
    ] = "",
) -> None:
    """Write the pages of a crawl as JSON lines, CSV, Parquet, Markdown, or chunks for language models."""
    from nephila.storage.read.export import ARCHIVES
    from nephila.storage.read.export import export as write
    from nephila.storage.sinks.markdown_file import RowMarkdown

    if json and format not in ("", "jsonl"):
        raise UsageError(f"--json is --format jsonl, not {format}")
    if json:
        format = "jsonl"
    if broken_links or check_external:
        if changes or all_outcomes or items or columns or not broken_links:
            raise UsageError("--check-external goes with --broken-links, and both with no other choice of rows")
        from nephila.cli.tools.broken_links import export_broken_links

        source, only = find_rows(place)
        target = None if out == "-" else Path(out)
        export_broken_links(
            place, source, format or "csv", target, job or only, raw_csv=raw_csv, external=check_external
        )
        return
    if not format:
        raise UsageError("--format is missing: jsonl, csv, parquet, markdown, chunks, blocks, cdxj or wacz")
    _check_options(format, raw_csv=raw_csv, items=items, changes=changes, since=since, all_outcomes=all_outcomes)
    if format == "chunks":
        from nephila.storage.sinks.chunks import check_chunk_size

        check_chunk_size(chunk_chars, chunk_overlap, ("--chunk-chars", "--chunk-overlap"))
    source, only = find_rows(place)
    if format in ARCHIVES:
        if changes or all_outcomes or items or columns:
            raise UsageError(f"--format {format} is of WARC files: leave --changes, --all, --items and --columns out")
        _archive(place, source, format, out, job or only)
        return
    chosen = tuple(name.strip() for name in columns.split(",") if name.strip())
    if items:
        _items(source, format, out, job or only, chosen, raw_csv=raw_csv)
        return
    texts = RowMarkdown(links)
    rows = write(
        source,
        format,
        None if out == "-" else Path(out),
        all_outcomes=all_outcomes,
        job=job or only,
        raw_csv=raw_csv,
        changes=changes,
        since=since,
        text=texts,
        chunk=(chunk_chars, chunk_overlap),
        columns=chosen,
        shown=escape_controls,
    )
    if texts.plain:
        note(
            f"{texts.plain:,} of {texts.rows:,} pages are plain text: their rows have no structure, because an earlier "
            "version stored them, or the Python fallback; they get it when they are fetched again"
        )
    if format == "parquet" and out == "-":
        out = str((source if isinstance(source, Path) else Path()) / "export.parquet")
    if out != "-":
        note(f"{rows:,} rows written to {out}")
    elif not rows:
        none = "no page that is new or has changed" if changes else "no stored page"
        note(f"{display_name(source)} has {none}; --all shows what became of its URLs")


def _check_options(format: str, *, raw_csv: bool, items: bool, changes: bool, since: str, all_outcomes: bool) -> None:
    """Options that fit together. Raises `UsageError`."""
    from nephila.storage.read.export import ARCHIVES, FORMATS

    if format not in (*FORMATS, *ARCHIVES):
        raise UsageError(f"--format {format!r} is none of {', '.join((*FORMATS, *ARCHIVES))}")
    if raw_csv and format != "csv":
        raise UsageError("--raw-csv needs --format csv")
    if since and not changes:
        raise UsageError("--since needs --changes")
    if items and (changes or all_outcomes):
        raise UsageError("--items are those of stored pages: leave --changes and --all out")


def _items(source: Source, format: str, out: str, job: str | None, columns: tuple[str, ...], *, raw_csv: bool) -> None:
    from nephila.storage.read.export import export_items

    target = None if out == "-" else Path(out)
    rows = export_items(source, format, target, job=job, raw_csv=raw_csv, columns=columns, shown=escape_controls)
    if out != "-":
        note(f"{rows:,} items written to {out}")
    elif not rows:
        note(f"{display_name(source)} has no items; see nephila crawl --rules DIR")


def _archive(place: str, source: Source, format: str, out: str, job: str | None) -> None:
    from nephila.storage.read.export import export_archive

    if is_url(place):
        raise UsageError(f"--format {format} reads WARC files: name the directory of a crawl, not a database")
    target = None if out == "-" else Path(out)
    number, missing = export_archive(Path(place), source, format, target, job=job, shown=escape_controls)
    if missing:
        note(
            f"{missing:,} stored pages are in no WARC file and not in the package;"
            f" nephila crawl --refresh --format warc --out {place} fetches them again"
        )
    if format == "wacz":
        note(f"{number:,} pages written to {target or Path(place, 'export.wacz')}")
    elif target is not None:
        note(f"{number:,} records listed in {out}")
