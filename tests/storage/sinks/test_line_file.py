"""Sinks of one file of lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from nephila.storage.config import StorageConfig
from nephila.storage.ledgers.sqlite import Sqlite
from nephila.storage.sinks.jsonl import Jsonl


def test_a_file_that_is_not_open_is_named(tmp_path: Path) -> None:
    """Also after a failed start: closing is no error, and nothing is written."""
    config = StorageConfig(directory=tmp_path)
    sink = Jsonl(config, Sqlite(config))
    with pytest.raises(RuntimeError, match=r"pages\.jsonl is not open"):
        sink.after_commit()
    sink.close()
    assert list(tmp_path.iterdir()) == []
