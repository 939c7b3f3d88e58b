"""All outputs by their names in `--format`: one of `LEDGERS`, the databases, and any of `SINKS`, the files."""

from __future__ import annotations

from collections.abc import Callable

from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.runtime.extensions import extension, loaded
from nephila.storage.config import StorageConfig
from nephila.storage.ledgers.contract import Ledger
from nephila.storage.ledgers.sqlite import Sqlite
from nephila.storage.retention import retention_days
from nephila.storage.sinks.contract import Sink
from nephila.storage.source import addresses, is_url, require_driver


def _postgres(config: StorageConfig) -> Ledger:
    # The driver is imported here: the import takes 0.1 s, which a crawl into a directory does not need.
    require_driver()
    ledger: Ledger = extension("postgres-ledger")(config)
    return ledger


def _shards(config: StorageConfig) -> Ledger:
    files = [name for name in config.formats if name in SINKS]
    if files:
        raise UsageError(f"the format {files[0]} needs one database; remove it, or name one server in store")
    if len(set(addresses(config.store))) < len(addresses(config.store)):
        raise UsageError("store names a server twice")
    require_driver()
    ledger: Ledger = extension("postgres-shards")(config)
    return ledger


def _sink(path: str) -> Callable[[StorageConfig, Ledger], Sink]:
    """A sink whose module is imported where it is chosen: most crawls have none, and some load libraries. `path`:
    module:class."""

    def build(config: StorageConfig, ledger: Ledger) -> Sink:
        sink: Sink = loaded(path, "this output")(config, ledger)
        return sink

    return build


LEDGERS: dict[str, Callable[[StorageConfig], Ledger]] = {"sqlite": Sqlite, "postgres": _postgres}
"""Databases; one of them is always used."""

SINKS: dict[str, Callable[[StorageConfig, Ledger], Sink]] = {
    "chunks": _sink("nephila_stores.formats.chunks:Chunks"),
    "dataset": _sink("nephila_stores.remote.dataset:Dataset"),
    "items": _sink("nephila.storage.sinks.item_files:ItemFiles"),
    "jsonl": _sink("nephila.storage.sinks.jsonl:Jsonl"),
    "markdown": _sink("nephila_stores.formats.markdown:Markdown"),
    "opensearch": _sink("nephila_stores.remote.opensearch:OpenSearch"),
    "parquet": _sink("nephila_stores.formats.parquet:Parquet"),
    "raw": _sink("nephila_stores.bodies:Bodies"),
    "search": _sink("nephila_stores.search.search_index:SearchIndex"),
    "warc": _sink("nephila_stores.warcs.warc:Warc"),
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
