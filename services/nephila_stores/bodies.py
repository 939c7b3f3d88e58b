"""DIR/raw-00000.gz …: bodies of pages as they were fetched, for later trials of rules (--keep-raw).

The file format is defined in `kernel.rawfile`. A recently stored body is stored once: the entry of a later page refers
to it. Beyond `raw_total_bytes` pages are listed without bodies, and one warning is logged. A 304 is not listed: its
body is that of the earlier fetch.
"""

from __future__ import annotations

import hashlib
import logging
from collections import OrderedDict
from typing import Final

from nephila.kernel import messages as m
from nephila.kernel.url_credentials import without_credentials
from nephila.storage.config import StorageConfig
from nephila.storage.ledgers.contract import Ledger
from nephila.storage.rows import RowBatch, clean

from nephila_stores.raw_file import PREFIX, SUFFIX, RawPageHead, member
from nephila_stores.series import FileSeries, SeriesBackend
from nephila_stores.warcs.warc_records import gzip_member

log = logging.getLogger(__name__)

REMEMBERED: Final = 100_000
"""Bodies whose location is remembered, some 20 MB. An older body is stored a second time."""
SMALL_BYTES: Final = 200
"""A shorter body is smaller than a reference to it."""


class Bodies(SeriesBackend):
    def __init__(self, config: StorageConfig, ledger: Ledger) -> None:
        super().__init__(FileSeries(config, ledger, PREFIX, SUFFIX, config.raw_bytes))
        self._limit = config.raw_total_bytes
        self._limit_logged = False
        self._locations: OrderedDict[bytes, tuple[str, int]] = OrderedDict()
        self._staged: list[bytes] = []

    def open(self) -> None:
        """Bodies of an earlier run are not remembered."""
        self._locations.clear()
        self._staged.clear()
        super().open()

    def stage(self, batch: RowBatch) -> None:
        if not batch.pages:
            return
        self._files.rotate()
        buffer = bytearray()
        for page in batch.pages:
            if not page.not_modified:
                buffer += gzip_member(self._member(page, len(buffer)))
        self._files.append(buffer)

    def _member(self, page: m.Page, staged_bytes: int) -> bytes:
        body = page.body if type(page.body) is bytes else bytes(page.body)
        digest = hashlib.sha256(body).digest()
        head = _head(page, digest, len(body))
        location = self._locations.get(digest)
        if location is not None:
            self._locations.move_to_end(digest)
            head.kept_in, head.kept_at = location
            return member(head, b"")
        if self._files.total_bytes + staged_bytes >= self._limit > 0:
            head.left_out = "the limit of bodies was reached"
            if not self._limit_logged:
                self._limit_logged = True
                log.warning(
                    "storage: %d bytes of bodies are stored (raw_total_bytes): bodies of further pages are not",
                    self._files.total_bytes,
                )
            return member(head, b"")
        if len(body) >= SMALL_BYTES:
            self._remember(digest, self._files.length + staged_bytes)
        return member(head, body)

    def _remember(self, digest: bytes, offset: int) -> None:
        self._locations[digest] = (self._files.name, offset)
        self._staged.append(digest)
        if len(self._locations) > REMEMBERED:
            self._locations.popitem(last=False)

    def after_commit(self) -> None:
        self._staged.clear()
        super().after_commit()

    def rollback(self) -> None:
        """No reference may lead to a body that was rolled back."""
        for digest in self._staged:
            self._locations.pop(digest, None)
        self._staged.clear()
        super().rollback()


def _head(page: m.Page, digest: bytes, size: int) -> RawPageHead:
    return RawPageHead(
        url=clean(without_credentials(page.url)),
        job=clean(page.job),
        url_key=page.url_key.hex(),
        fetch_no=page.fetch_no,
        attempt=page.attempt,
        status=page.status,
        content_type=clean(page.content_type),
        charset=clean(page.charset),
        fetched_at=page.fetched_at,
        sha256=digest.hex(),
        bytes=size,
    )
