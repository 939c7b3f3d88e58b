"""The files of each output in the directory of a crawl, as glob patterns. A new crawl in the directory moves them."""

from __future__ import annotations

from typing import Final

FILES: Final[dict[str, tuple[str, ...]]] = {
    "sqlite": ("nephila.db", "nephila.db-wal", "nephila.db-shm"),
    "postgres": (),
    "chunks": ("chunks.jsonl",),
    "dataset": ("dataset-*.spool", "dataset-*.part"),
    "items": ("items.*.jsonl",),
    "jsonl": ("pages.jsonl",),
    "markdown": ("markdown",),
    "opensearch": ("opensearch-*.spool", "opensearch-dead.jsonl"),
    "parquet": ("pages-*.parquet",),
    "raw": ("raw-*.gz",),
    "warc": ("*.warc.gz", "*.cdxj"),
}
"""Format → names of its files and directories."""
RECOVERED: Final = ("*.cut-*", "*.rescued")
"""What a start after a crash, or the end of a crawl whose file was deleted, has saved of any file."""
EXPORTS: Final = ("export.parquet", "export.wacz", "report.html")
"""Default names of exports and of the report."""


def patterns() -> list[str]:
    """The patterns of all files, unfinished ones among them."""
    names = [name for files in FILES.values() for name in files] + list(EXPORTS)
    return [*names, *(f"{name}.part" for name in names), *RECOVERED]
