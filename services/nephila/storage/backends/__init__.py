"""`BACKENDS`: every place for rows, by the name it has in `--format`."""

from __future__ import annotations

from collections.abc import Callable

from nephila.kernel.errors import UsageError
from nephila.storage.backends.base import Backend
from nephila.storage.backends.jsonl import Jsonl
from nephila.storage.backends.parquet import Parquet
from nephila.storage.backends.sqlite import Sqlite
from nephila.storage.backends.warc import Warc
from nephila.storage.config import StorageConfig

LEDGER = "sqlite"
"""Always on; the names below are written besides it."""

BACKENDS: dict[str, Callable[[StorageConfig, Sqlite], Backend]] = {
    LEDGER: lambda config, ledger: ledger,
    "jsonl": Jsonl,
    "parquet": Parquet,
    "warc": Warc,
}


def choose(config: StorageConfig, ledger: Sqlite) -> list[Backend]:
    """The backends of a configuration without the ledger. Raises `UsageError` for a name that is in no row."""
    for name in config.formats:
        if name not in BACKENDS:
            raise UsageError(f"unknown format {name!r}; known are {', '.join(BACKENDS)}")
    return [BACKENDS[name](config, ledger) for name in dict.fromkeys(config.formats) if name != LEDGER]
