"""DIR/<job>-<start>-00000.warc.gz ...: each HTTP answer as received (WARC 1.1), one gzip member per record.

An answer has a request and a response record; a 304 has a revisit record, which names the record it confirms; a page
also has a metadata record. Rows without an answer have no record. At `warc_bytes` the next file begins, with a warcinfo
record. The ledger stores the committed length of each file.
"""

from __future__ import annotations

import re
from pathlib import Path

from nephila.storage.config import StorageConfig
from nephila.storage.ledgers.contract import Ledger
from nephila.storage.rows import Batch
from nephila.storage.sinks.series import FileSeries, SeriesBackend
from nephila.storage.sinks.warcs.captures import Captures
from nephila.storage.sinks.warcs.warc_records import gzip_member, metadata, page_records, warc_date, warcinfo

_NAME = re.compile(r"[^A-Za-z0-9._-]+")


class Warc(SeriesBackend):
    """See `Sink`."""

    exchanges = True

    def __init__(self, config: StorageConfig, ledger: Ledger) -> None:
        stem = _NAME.sub("_", config.archive or "nephila") + "-"
        super().__init__(FileSeries(config, ledger, "", ".warc.gz", config.warc_bytes, stem))
        self._directory = config.directory
        self._captures = Captures(self._committed)

    def _committed(self) -> list[tuple[Path, int]]:
        return [(self._directory / name, length) for name, length in self._files.committed_files().items()]

    def stage(self, batch: Batch) -> None:
        """See `Sink`."""
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
