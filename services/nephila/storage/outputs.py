"""All outputs by their names in `--format`: one of `LEDGERS`, the databases, and any of `SINKS`, the files."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from nephila.kernel.runtime.errors import UsageError
from nephila.storage.config import StorageConfig
from nephila.storage.ledgers.contract import Ledger
from nephila.storage.ledgers.sqlite import Sqlite
from nephila.storage.retention import retention_days
from nephila.storage.sinks.contract import Sink
from nephila.storage.source import addresses, is_url, require_driver


def _postgres(config: StorageConfig) -> Ledger:
    # The driver is imported here: the import takes 0.1 s, which a crawl into a directory does not need.
    require_driver()
    from nephila.storage.ledgers.postgres import Postgres

    return Postgres(config)


def _shards(config: StorageConfig) -> Ledger:
    files = [name for name in config.formats if name in SINKS]
    if files:
        raise UsageError(f"the format {files[0]} needs one database; remove it, or name one server in store")
    if len(set(addresses(config.store))) < len(addresses(config.store)):
        raise UsageError("store names a server twice")
    require_driver()
    from nephila.storage.ledgers.shards import Shards

    return Shards(config)


def _sink(module: str, name: str) -> Callable[[StorageConfig, Ledger], Sink]:
    """A sink whose module is imported where it is chosen: most crawls have none, and some load libraries."""

    def build(config: StorageConfig, ledger: Ledger) -> Sink:
        sink: Sink = getattr(import_module(f"nephila.storage.sinks.{module}"), name)(config, ledger)
        return sink

    return build


LEDGERS: dict[str, Callable[[StorageConfig], Ledger]] = {"sqlite": Sqlite, "postgres": _postgres}
"""Databases; one of them is always used."""

SINKS: dict[str, Callable[[StorageConfig, Ledger], Sink]] = {
    "chunks": _sink("chunks", "Chunks"),
    "dataset": _sink("remote.dataset", "Dataset"),
    "items": _sink("item_files", "ItemFiles"),
    "jsonl": _sink("jsonl", "Jsonl"),
    "markdown": _sink("markdown", "Markdown"),
    "opensearch": _sink("remote.opensearch", "OpenSearch"),
    "parquet": _sink("parquet", "Parquet"),
    "raw": _sink("bodies", "Bodies"),
    "search": _sink("search_index", "SearchIndex"),
    "warc": _sink("warcs.warc", "Warc"),
}
"""Outputs in addition to the database."""

FORMATS = (*LEDGERS, *SINKS)


def ledger_of(config: StorageConfig) -> Ledger:
    """The database of a configuration, not yet open. Raises `UsageError`."""
    retention_days(config)
    if config.store:
        if not all(map(is_url, addresses(config.store))):
            raise UsageError("store is no URL of the form postgresql://user@host:5432/database")
        if len(addresses(config.store)) > 1:
            return _shards(config)
        return LEDGERS["postgres"](config)
    if "postgres" in config.formats:
        raise UsageError("the format postgres needs the URL of a database: --store, or NEPHILA_STORAGE__STORE")
    return LEDGERS["sqlite"](config)


def choose(config: StorageConfig, ledger: Ledger) -> list[Sink]:
    """The sinks of a configuration. Raises `UsageError` for an unknown name."""
    for name in config.formats:
        if name not in FORMATS:
            raise UsageError(f"unknown format {name!r}; known are {', '.join(FORMATS)}")
    return [SINKS[name](config, ledger) for name in dict.fromkeys(config.formats) if name in SINKS]


def check_outputs(config: StorageConfig) -> None:
    """Raise `UsageError` or `UserError` for settings of outputs that cannot work, before any file is created."""
    choose(config, ledger_of(config))
