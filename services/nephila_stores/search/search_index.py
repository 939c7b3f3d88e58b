"""The search index as an output (`--format search`): it reads on as the crawl writes, so that a search finds it ready.

Without it the first search makes the index, of the same database by the same code. A failure of the index loses
nothing and stops no crawl: it reads on behind the last fetch that it has.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from nephila.kernel.runtime.errors import UserError
from nephila.storage.config import StorageConfig
from nephila.storage.ledgers.contract import Ledger
from nephila.storage.rows import RowBatch
from nephila.storage.source import Source, addresses

from nephila_stores.search.contract import BATCH
from nephila_stores.search.search import open_index

log = logging.getLogger(__name__)
STEP_S: Final = 0.5
"""Longest time that one flush spends on it."""


class SearchIndex:
    raw = False
    lengths: Mapping[str, int] = {}

    def __init__(self, config: StorageConfig, ledger: Ledger) -> None:
        self._source: Source = config.store if len(addresses(config.store)) == 1 else Path(config.directory)
        self._pending = 0

    def open(self) -> None:
        """The index is opened for each reading."""

    def stage(self, batch: RowBatch) -> None:
        """The sink only counts: the rows are first durable in the database."""
        self._pending += len(batch.rows)

    def after_commit(self) -> None:
        """Read on when a batch is there."""
        if self._pending >= BATCH:
            self._read_on(STEP_S)

    def rollback(self) -> None: ...

    def restore(self) -> str:
        """The index is made of the rows; a file that is gone is made again."""
        return ""

    def close(self) -> None:
        """Read the rest."""
        if self._pending:
            self._read_on(float("inf"))

    def _read_on(self, seconds: float) -> None:
        self._pending = 0
        try:
            with open_index(self._source) as index:
                for _ in index.read_on(self._source, seconds):
                    pass
        except UserError as error:
            log.warning("the search index waits: %s", error)
