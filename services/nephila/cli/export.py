"""`nephila export`: the result of a crawl in a format for other programs; reads DIR, also while the crawl runs."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import typer

from nephila.cli.options import DEFAULT_OUT, replaced
from nephila.cli.output import note
from nephila.cli.terminal import escape_controls
from nephila.kernel.runtime.errors import UsageError, none_of
from nephila.kernel.runtime.extensions import extension
from nephila.programs.output_directory import find_rows
from nephila.storage.source import Source, display_name, is_url


class Choices(NamedTuple):
    """The options of an export."""

    result: Annotated[
        str, typer.Option("--out", metavar="DIR|URL", help="Directory of a crawl, or a database's URL.")
    ] = str(DEFAULT_OUT)
    format: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="jsonl|csv|parquet|markdown|chunks|blocks|cdxj|wacz",
            help="What to write; default with --broken-links: csv.",
        ),
    ] = ""
    json: Annotated[bool, typer.Option("--json", help="The same as --format jsonl.")] = False
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
    ] = "-"
    all_outcomes: Annotated[
        bool, typer.Option("--all", help="Also rows that were denied, failed or dropped, with their reason.")
    ] = False
    raw_csv: Annotated[
        bool,
        typer.Option(
            "--raw-csv", help="CSV cells unchanged: without the ' before a cell that a spreadsheet reads as a formula."
        ),
    ] = False
    links: Annotated[
        Literal["inline", "reference", "none"],
        typer.Option(help="Links in Markdown and chunks: [text](URL), [text][1], or their text alone."),
    ] = "inline"
    changes: Annotated[
        bool,
        typer.Option(
            "--changes", help="Only pages that are new or whose text has changed; the column `change` names which."
        ),
    ] = False
    job: Annotated[str, typer.Option(metavar="NAME", help="Only rows of this job.")] = ""
    items: Annotated[
        bool, typer.Option("--items", help="The items that rules extracted, a row per item: jsonl, csv or parquet.")
    ] = False
    columns: Annotated[
        str,
        typer.Option(metavar="A,B", help="Only these, in this order; meta.NAME of pages, price.amount of --items."),
    ] = ""
    explode: Annotated[
        str,
        typer.Option(metavar="FIELD", help="With --items: a row for each element of this list, as of variants."),
    ] = ""
    chunk_chars: Annotated[
        int, typer.Option("--chunk-chars", metavar="N", help="Maximum characters of a chunk, for --format chunks.")
    ] = 2000
    chunk_overlap: Annotated[
        int,
        typer.Option("--chunk-overlap", metavar="N", help="Characters of a chunk that the next one repeats."),
    ] = 200
    broken_links: Annotated[
        bool,
        typer.Option(
            "--broken-links", help="Links to URLs that failed: from, to, status, reason, anchor; needs --links."
        ),
    ] = False
    check_external: Annotated[
        bool,
        typer.Option(
            "--check-external",
            help="With --broken-links: request links that the crawl did not follow, once each, at its pace.",
        ),
    ] = False
    check_requisites: Annotated[
        bool,
        typer.Option(
            "--check-requisites",
            help="With --broken-links: pictures, styles and scripts of kept pages as well; needs --keep-raw or WARC.",
        ),
    ] = False
    check_fragments: Annotated[
        bool,
        typer.Option(
            "--check-fragments",
            help="With --broken-links: places (#name) that links name as well; needs --keep-raw or WARC.",
        ),
    ] = False
    since: Annotated[
        str, typer.Option("--since", metavar="ISO", help="With --changes: at or after this instant, in UTC.")
    ] = ""

    @property
    def target(self) -> Path | None:
        """None: standard output."""
        return None if self.out == "-" else Path(self.out)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(name.strip() for name in self.columns.split(",") if name.strip())

    @property
    def chunk(self) -> tuple[int, int]:
        """Characters of a chunk, and of its overlap."""
        return self.chunk_chars, self.chunk_overlap

    @property
    def checks(self) -> tuple[bool, bool, bool]:
        """What is checked beside the links of the crawl."""
        return self.check_external, self.check_requisites, self.check_fragments


@replaced("choices", Choices)
def export(choices: Choices) -> None:
    """Write the pages of a crawl as JSON lines, CSV, Parquet, Markdown, or chunks for language models."""
    if choices.json and choices.format not in ("", "jsonl"):
        raise UsageError(f"--json is --format jsonl, not {choices.format}")
    if choices.json:
        choices = choices._replace(format="jsonl")
    write = _writer(choices)
    source, only = find_rows(choices.result)
    write(choices, source, choices.job or only)


def _check(choices: Choices) -> None:
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
    if choices.explode.strip() and not choices.items:
        raise UsageError("--explode needs --items")
    if choices.format == "chunks":
        extension("chunk-size")(*choices.chunk, ("--chunk-chars", "--chunk-overlap"))


def _writer(choices: Choices) -> Callable[[Choices, Source, str | None], None]:
    """What writes the rows that are wanted. Raises `UsageError` for options that do not fit together."""
    from nephila.storage.read.export import ARCHIVES

    if choices.broken_links or any(choices.checks):
        if choices.changes or choices.all_outcomes or choices.items or choices.names or not choices.broken_links:
            raise UsageError("checks go with --broken-links, and both with no other choice of rows")
        return _broken_links
    _check(choices)
    if choices.format in ARCHIVES:
        return _archive
    return _items if choices.items else _pages


def _broken_links(choices: Choices, source: Source, job: str | None) -> None:
    report = extension("broken-links")
    format = choices.format or "csv"
    report(choices.result, source, format, choices.target, job, raw_csv=choices.raw_csv, checks=choices.checks)


def _pages(choices: Choices, source: Source, job: str | None) -> None:
    from nephila.storage.read.export import Layout
    from nephila.storage.read.export import export as write

    layout = Layout(choices.names, choices.raw_csv, chunk=choices.chunk, shown=escape_controls)
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


def _items(choices: Choices, source: Source, job: str | None) -> None:
    from nephila.storage.read.export import export_items

    rows = export_items(
        source,
        choices.format,
        choices.target,
        job=job,
        raw_csv=choices.raw_csv,
        columns=choices.names,
        explode=choices.explode.strip(),
        shown=escape_controls,
    )
    if choices.out != "-":
        note(f"{rows:,} items written to {choices.out}")
    elif not rows:
        note(f"{display_name(source)} has no items; see nephila crawl --rules DIR")


def _archive(choices: Choices, source: Source, job: str | None) -> None:
    result, format, target = choices.result, choices.format, choices.target
    if choices.changes or choices.all_outcomes or choices.items or choices.names:
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
