"""DIR/pages.jsonl: one JSON object per ended fetch, with the column names of the table.

Of several objects of one (job, url_key) the one with the highest fetch_no is valid. An object without sha256 brought no
copy, a 304 (reason not_modified) or an end without a page: the earlier copy stays, and outcome, reason, status,
final_url, fetched_at, fetch_no, fetch_id and change are those of the new object. `items` holds the items that a rule
extracted. `change` states what the fetch changed: see changes.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from nephila.storage.append_file import AppendFile, refuse_unknown_file
from nephila.storage.config import StorageConfig
from nephila.storage.ledgers.contract import Ledger
from nephila.storage.rows import COLUMNS, FETCH_ID, JOB, META, TEXT, URL_KEY, Batch, Row

NAME = "pages.jsonl"


class Jsonl:
    """See `Sink`."""

    raw = False

    def __init__(self, config: StorageConfig, ledger: Ledger) -> None:
        self._path: Path = config.directory / NAME
        self._fsync = config.fsync
        self._ledger = ledger
        self._file: AppendFile | None = None
        self._buffer = bytearray()

    def open(self) -> None:
        """See `Sink`."""
        committed = self._ledger.sinks().get(NAME)
        if committed is None:
            refuse_unknown_file(self._path)
            self._ledger.register(NAME)
        self._file = AppendFile(self._path, committed or 0, self._fsync)

    @property
    def lengths(self) -> Mapping[str, int]:
        """See `Sink`."""
        return {NAME: self._open_file.length}

    def stage(self, batch: Batch) -> None:
        """See `Sink`."""
        buffer = self._buffer
        for row in batch.rows:
            items = batch.items.get((row[JOB], row[URL_KEY]))
            append_line(buffer, row, items.data if items is not None and items.fetch_id == row[FETCH_ID] else ())
        for row in chain(batch.not_modified, batch.copy_kept):
            append_line(buffer, row)
        try:
            if buffer:
                self._open_file.append(buffer)
        finally:
            self._buffer = bytearray()

    def after_commit(self) -> None:
        """See `Sink`."""
        self._open_file.after_commit()

    def rollback(self) -> None:
        """See `Sink`."""
        self._open_file.rollback()

    def restore(self) -> str:
        """See `Sink`."""
        return self._open_file.restore()

    def close(self) -> None:
        """See `Sink`."""
        if self._file is not None:
            self._file.close()

    @property
    def _open_file(self) -> AppendFile:
        if self._file is None:
            raise RuntimeError(f"{self._path} is not open")
        return self._file


_encoder = msgspec.json.Encoder()


def append_line(buffer: bytearray, row: Row, items: Sequence[str] = ()) -> None:
    """Append the row as one line of JSON, with the items of the page if there are any."""
    value: dict[str, Any] = dict(zip(COLUMNS, row, strict=True))
    text = row[TEXT]
    value["text"] = text if isinstance(text, str) else str(text, "utf-8")
    value["meta"] = json_object(row[META])
    if items:
        value["items"] = [msgspec.Raw(one.encode()) for one in items]
    _encoder.encode_into(value, buffer, -1)
    buffer += b"\n"


def json_object(text: str) -> dict[str, Any] | str:
    """The value of a JSON text; the text itself if it is invalid, because one page must not damage the file."""
    if not text:
        return {}
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text
    return value if isinstance(value, dict) else text
