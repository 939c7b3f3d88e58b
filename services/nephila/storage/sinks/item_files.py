"""DIR/items.NAME.jsonl: the items of each rule or platform, one JSON object per line; their lengths are in the ledger.

A line is the item with `id`, `resource`, `url` and `time`; items of keyword schemes have these fields themselves. A new
copy of a page appends its items again: the last line of an id is valid; one with `"removed": true` says that changed
schemes no longer match the page. A file is created with its first item.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

import msgspec

from nephila.kernel.pages.item_parts import is_part
from nephila.storage.append_file import AppendFile, refuse_unknown_file
from nephila.storage.config import StorageConfig
from nephila.storage.ledgers.contract import Ledger
from nephila.storage.rows import FETCHED_AT, JOB, URL, URL_KEY, Items, Row, RowBatch

_PREFIX, _SUFFIX = "items.", ".jsonl"
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class ItemFiles:
    """The sink makes one write and one fsync for each file of a batch."""

    raw = False

    def __init__(self, config: StorageConfig, ledger: Ledger) -> None:
        self._directory = config.directory
        self._fsync = config.fsync
        self._ledger = ledger
        self._files: dict[str, AppendFile] = {}

    def open(self) -> None:
        for name, committed in self._ledger.sinks().items():
            if name.startswith(_PREFIX) and name.endswith(_SUFFIX):
                self._files[name] = AppendFile(self._directory / name, committed, self._fsync)

    @property
    def lengths(self) -> Mapping[str, int]:
        return {name: file.length for name, file in self._files.items()}

    def stage(self, batch: RowBatch) -> None:
        buffers: defaultdict[str, bytearray] = defaultdict(bytearray)
        for row in batch.rows:
            items = batch.items.get((row[JOB], row[URL_KEY]))
            if items is not None and items.rule and not is_part(items.rule):
                for line in item_lines(row, items):
                    buffers[f"{_PREFIX}{items.rule}{_SUFFIX}"] += line + b"\n"
        for page in batch.evaluated:
            for data in batch.items[page.job, page.url_key].data if (page.job, page.url_key) in batch.items else ():
                buffers[f"{_PREFIX}{page.rule}{_SUFFIX}"] += data.encode() + b"\n"
        for platform, line in batch.removed:
            buffers[f"{_PREFIX}{platform}{_SUFFIX}"] += line + b"\n"
        for name, buffer in buffers.items():
            self._file(name).append(buffer)

    def after_commit(self) -> None:
        for file in self._files.values():
            file.after_commit()

    def rollback(self) -> None:
        for file in self._files.values():
            file.rollback()

    def restore(self) -> str:
        return "; ".join(filter(None, (file.restore() for file in self._files.values())))

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        self._files.clear()

    def _file(self, name: str) -> AppendFile:
        file = self._files.get(name)
        if file is None:
            path = self._directory / name
            refuse_unknown_file(path)
            self._ledger.register(name)
            file = self._files[name] = AppendFile(path, 0, self._fsync)
        return file


def item_lines(row: Row, items: Items) -> Iterator[bytes]:
    """Each item of a page as JSON, with the fields that identify it."""
    for ordinal, data in enumerate(items.data):
        item = _decode(data)
        if "id" not in item:
            number = f"-{ordinal}" if len(items.data) > 1 else ""
            page = {"id": row[URL_KEY] + number, "resource": items.rule, "url": row[URL], "time": row[FETCHED_AT]}
            yield _encode({**page, **item})
        else:
            yield data.encode()
