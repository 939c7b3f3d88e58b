"""DIR/raw-00000.gz …: the bodies of pages as they were fetched, for rules that are tried on them later (--keep-raw).

What stands in them is said in `kernel.rawfile`. A body that was kept lately is kept once: the member of a later page
says where it is. Beyond `raw_total_bytes` pages are noted without their bodies, which is told once. A 304 leaves
nothing: its body is that of the fetch before.
"""

from __future__ import annotations

import hashlib
import logging
from collections import OrderedDict
from typing import Final

from nephila.kernel import messages as m
from nephila.kernel.rawfile import PREFIX, SUFFIX, Head, member
from nephila.storage.config import StorageConfig
from nephila.storage.ledgers.contract import Ledger
from nephila.storage.rows import Batch, clean
from nephila.storage.sinks.series import FileSeries, SeriesBackend
from nephila.storage.sinks.warc_records import gzip_member

log = logging.getLogger(__name__)

REMEMBERED: Final = 100_000
"""Bodies of which the place is known; some 20 MB. Of those before them a second copy is kept."""
SMALL_BYTES: Final = 200
"""A shorter body costs less than the words that say where it is."""


class Bodies(SeriesBackend):
    """See `Backend`."""

    def __init__(self, config: StorageConfig, ledger: Ledger) -> None:
        super().__init__(FileSeries(config, ledger, PREFIX, SUFFIX, config.raw_bytes))
        self._limit = config.raw_total_bytes
        self._limit_logged = False
        self._locations: OrderedDict[bytes, tuple[str, int]] = OrderedDict()
        self._staged: list[bytes] = []

    def open(self) -> None:
        """See `Backend`; bodies of an earlier run are not remembered."""
        self._locations.clear()
        self._staged.clear()
        super().open()

    def stage(self, batch: Batch) -> None:
        """See `Backend`."""
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
                    "storage: %d bytes of bodies are kept (raw_total_bytes): pages from here on are kept without",
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
        """See `Backend`."""
        self._staged.clear()
        super().after_commit()

    def rollback(self) -> None:
        """See `Backend`; nobody may be sent to a body that is not there."""
        for digest in self._staged:
            self._locations.pop(digest, None)
        self._staged.clear()
        super().rollback()


def _head(page: m.Page, digest: bytes, size: int) -> Head:
    return Head(
        url=clean(page.url),
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
