"""DIR/nephila-00000.warc.gz …: requests and responses as they were on the wire (WARC 1.1, one gzip member a record).

Rows without a page leave nothing here. A file that has reached `warc_bytes` is closed and the next begun; each begins
with a warcinfo record. The committed length of every file stands in the ledger.
"""

from __future__ import annotations

from nephila.storage.backends.series import FileSeries, SeriesBackend
from nephila.storage.backends.warc_records import gzip_member, page_records, warc_date, warcinfo
from nephila.storage.config import StorageConfig
from nephila.storage.ledger import Ledger
from nephila.storage.rows import Batch


class Warc(SeriesBackend):
    """See `Backend`."""

    def __init__(self, config: StorageConfig, ledger: Ledger) -> None:
        super().__init__(FileSeries(config, ledger, "nephila-", ".warc.gz", config.warc_bytes))

    def stage(self, batch: Batch) -> None:
        """See `Backend`."""
        if not batch.pages:
            return
        self._files.rotate()
        buffer = bytearray()
        if self._files.length == 0:
            buffer += gzip_member(warcinfo(self._files.name, warc_date(batch.pages[0])))
        for page in batch.pages:
            for record in page_records(page):
                buffer += gzip_member(record)
        self._files.append(buffer)
