"""DIR/<job>-<start>-00000.warc.gz ...: every HTTP answer as it was on the wire (WARC 1.1).

A gzip member is a record.

Of each answer a request and a response, of a 304 a revisit that names the record it confirms, of a page a metadata
record beside it. Rows without an answer leave nothing here. A file that has reached `warc_bytes` is closed and the next
begun; each begins with a warcinfo record. The committed length of every file stands in the ledger.
"""

from __future__ import annotations

import re
from pathlib import Path

from nephila.storage.config import StorageConfig
from nephila.storage.ledgers.contract import Ledger
from nephila.storage.rows import Batch
from nephila.storage.sinks.captures import Captures
from nephila.storage.sinks.series import FileSeries, SeriesBackend
from nephila.storage.sinks.warc_records import gzip_member, metadata, page_records, warc_date, warcinfo

_NAME = re.compile(r"[^A-Za-z0-9._-]+")


class Warc(SeriesBackend):
    """See `Backend`."""

    exchanges = True

    def __init__(self, config: StorageConfig, ledger: Ledger) -> None:
        stem = _NAME.sub("_", config.archive or "nephila") + "-"
        super().__init__(FileSeries(config, ledger, "", ".warc.gz", config.warc_bytes, stem))
        self._directory = config.directory
        self._captures = Captures(self._committed)

    def _committed(self) -> list[tuple[Path, int]]:
        return [(self._directory / name, length) for name, length in self._files.committed_files().items()]

    def stage(self, batch: Batch) -> None:
        """See `Backend`."""
        pages = [*batch.exchanges, *batch.pages]
        if not pages:
            return
        self._files.rotate()
        buffer = bytearray()
        if self._files.length == 0:
            buffer += gzip_member(warcinfo(self._files.name, pages[0]))
        for page in pages:
            earlier = self._captures.find(page) if page.not_modified else None
            response = b""
            for response in page_records(page, earlier):
                buffer += gzip_member(response)
            self._captures.note(page, response)
            record = batch.records.get(id(page))
            if record is not None:
                buffer += gzip_member(metadata(page, record, response, warc_date(page)))
        self._files.append(buffer)
