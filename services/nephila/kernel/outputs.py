"""What each output leaves in the directory of a crawl, and what it is made of. A new crawl there moves the files."""

from __future__ import annotations

from typing import Final, NamedTuple


class OutputRow(NamedTuple):
    files: tuple[str, ...]
    """Glob patterns of its files and directories."""
    is_database: bool = False
    """One of the databases is always written."""
    of_database: bool = False
    """A database, or made of it: it has all rows, whenever it is added."""
    of_bodies: bool = False
    """Keeps the bodies of pages."""


OUTPUTS: Final[dict[str, OutputRow]] = {
    "sqlite": OutputRow(("nephila.db", "nephila.db-wal", "nephila.db-shm"), is_database=True, of_database=True),
    "postgres": OutputRow((), is_database=True, of_database=True),
    "chunks": OutputRow(("chunks.jsonl",)),
    "dataset": OutputRow(("dataset-*.spool", "dataset-*.part")),
    "items": OutputRow(("items.*.jsonl",)),
    "jsonl": OutputRow(("pages.jsonl",)),
    "markdown": OutputRow(("markdown",)),
    "opensearch": OutputRow(("opensearch-*.spool", "opensearch-dead.jsonl")),
    "parquet": OutputRow(("pages-*.parquet",), of_database=True),
    "raw": OutputRow(("raw-*.gz",), of_bodies=True),
    "search": OutputRow(("search.db", "search.db-wal", "search.db-shm"), of_database=True),
    "warc": OutputRow(("*.warc.gz", "*.cdxj"), of_bodies=True),
}
"""Name in `--format` and `spec.sinks` → output. `storage/outputs.py` has what makes each of them."""
RECOVERED: Final = ("*.cut-*", "*.rescued")
"""What a start after a crash, or the end of a crawl whose file was deleted, has saved of any file."""
EXPORTS: Final = ("export.parquet", "export.wacz", "report.html")
"""Default names of exports and of the report."""


def patterns() -> list[str]:
    """The patterns of all files, unfinished ones among them."""
    names = [name for output in OUTPUTS.values() for name in output.files] + list(EXPORTS)
    return [*names, *(f"{name}.part" for name in names), *RECOVERED]
