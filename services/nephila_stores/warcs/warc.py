"""DIR/<job>-<start>-00000.warc.gz ...: each HTTP answer as received (WARC 1.1), one gzip member per record.

An answer has a request and a response record; a 304 has a revisit record, which names the record it confirms; a page
also has a metadata record, and a rendered one resource records of its document and captures. Rows without an answer
have no record. At `warc_bytes` the next file begins, with a warcinfo
record. The ledger stores the committed length of each file.

Each file has an index beside it, <name>.cdxj (cdxj.py), written when the file ends and when the program ends. Its lines
are collected in memory, some 300 bytes per answer; a resumed file is read once for them.
"""

from __future__ import annotations

import re
from pathlib import Path

from nephila.storage.config import StorageConfig
from nephila.storage.ledgers.contract import Ledger
from nephila.storage.rows import RowBatch

from nephila_stores.series import FileSeries, SeriesBackend
from nephila_stores.warcs.captures import Captures
from nephila_stores.warcs.cdxj import cdxj_line, index_path, lines_of_file, write_index
from nephila_stores.warcs.warc_records import (
    gzip_member,
    metadata,
    page_records,
    resource_records,
    warc_date,
    warcinfo,
)

_NAME = re.compile(r"[^A-Za-z0-9._-]+")


class Warc(SeriesBackend):
    exchanges = True

    def __init__(self, config: StorageConfig, ledger: Ledger) -> None:
        stem = _NAME.sub("_", config.archive or "nephila") + "-"
        super().__init__(FileSeries(config, ledger, "", ".warc.gz", config.warc_bytes, stem))
        self._directory = config.directory
        self._captures = Captures(self._committed)
        self._lines: list[str] = []
        self._staged_lines: list[str] = []

    def _committed(self) -> list[tuple[Path, int]]:
        return [(self._directory / name, length) for name, length in self._files.committed_files().items()]

    def open(self) -> None:
        """The sink reads the file that it writes to, for its index, and files whose index is missing."""
        super().open()
        self._staged_lines = []
        *finished, (current, length) = self._committed()
        for path, size in finished:
            if not index_path(path).exists():
                write_index(path, lines_of_file(path, size))
        self._lines = list(lines_of_file(current, length))

    def stage(self, batch: RowBatch) -> None:
        pages = [*batch.exchanges, *batch.pages]
        if not pages:
            return
        before = self._files.name
        self._files.rotate()
        if self._files.name != before:
            write_index(self._directory / before, self._lines)
            self._lines = []
        buffer = bytearray()
        if self._files.length == 0:
            buffer += gzip_member(warcinfo(self._files.name, pages[0]))
        for page in pages:
            earlier = self._captures.find(page) if page.not_modified else None
            response, member = b"", b""
            for response in page_records(page, earlier):
                buffer += member
                member = gzip_member(response)
            self._index(response, self._files.length + len(buffer), len(member))
            buffer += member
            for resource in resource_records(page, response):
                buffer += gzip_member(resource)
            self._captures.note(page, response)
            record = batch.records.get(id(page))
            if record is not None:
                buffer += gzip_member(metadata(page, record, response, warc_date(page)))
        self._files.append(buffer)

    def _index(self, response: bytes, offset: int, length: int) -> None:
        if line := cdxj_line(response, offset, length, self._files.name):
            self._staged_lines.append(line)

    def after_commit(self) -> None:
        super().after_commit()
        self._lines += self._staged_lines
        self._staged_lines = []

    def rollback(self) -> None:
        super().rollback()
        self._staged_lines = []

    def close(self) -> None:
        """The index of the last file is written; if that fails, an export reads the file instead."""
        if self._lines and not self._staged_lines:
            write_index(self._directory / self._files.name, self._lines)
        self._lines = []
        super().close()
