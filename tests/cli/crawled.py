"""Directories as a crawl leaves them, made without a network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nephila.kernel.messages import Record
from nephila.storage.config import StorageConfig
from nephila.storage.writer import Writer


def store(directory: Path, records: Sequence[Record]) -> None:
    """Put rows into DIR/nephila.db."""
    writer = Writer(StorageConfig(directory=directory, fsync=False))
    writer.open()
    writer.commit(records, [None] * len(records), [])
    writer.close()
