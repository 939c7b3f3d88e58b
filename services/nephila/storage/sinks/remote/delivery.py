"""Base class of sinks that deliver records to a server, from a spool.

A record is one line. After each commit the committed lines are delivered in order; the offset behind those that the
server has accepted is in the ledger. A crash between the two repeats records: the server, or its readers, have to
recognise them. Records that the server refuses for their content go to DIR/<kind>-dead.jsonl. While the server is
unreachable the spool grows, and the attempts become rarer.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Final

from nephila.kernel.runtime.errors import TemporaryError, UserError
from nephila.storage.config import StorageConfig
from nephila.storage.ledgers.contract import Ledger
from nephila.storage.rows import Batch
from nephila.storage.sinks.remote.spool import Spool

log = logging.getLogger(__name__)

SEGMENT_BYTES: Final = 64 << 20
_DELIVERY_BYTES: Final = 5 << 20
_MAX_SKIPPED: Final = 256
"""Flushes between two attempts while the server is unreachable."""


class SpooledDelivery:
    """See `Sink`. Subclasses define `lines`, `check` and `deliver`."""

    raw = False

    def __init__(self, config: StorageConfig, ledger: Ledger, kind: str, setting: str, place: str) -> None:
        """`setting` and `place` name the server in messages."""
        self._spool = Spool(config, ledger, kind)
        self._ledger = ledger
        self._setting, self._place = setting, place
        self._dead = config.directory / f"{kind}-dead.jsonl"
        self._reached = False
        self._sent = 0
        self._to_skip = self._skipped = 0

    def lines(self, batch: Batch) -> bytearray:
        """The records of a batch, one per line."""
        raise NotImplementedError

    def check(self) -> None:
        """Return if the server answers. Raises `TemporaryError`."""
        raise NotImplementedError

    def deliver(self, lines: Sequence[bytes]) -> None:
        """Deliver records, and call `bury` with the refused ones. Raises `TemporaryError`: all are repeated later."""
        raise NotImplementedError

    @property
    def lengths(self) -> Mapping[str, int]:
        """See `Sink`."""
        return self._spool.lengths

    @property
    def _offset_name(self) -> str:
        return self._spool.name + ".sent"

    def open(self) -> None:
        """See `Sink`. Raises `UserError` if the server is unreachable at the first start."""
        if not self._reached:
            try:
                self.check()
            except TemporaryError as error:
                raise UserError(f"{self._setting}: {error}") from error
            self._reached = True
        self._spool.open()
        self._sent = self._ledger.sinks().get(self._offset_name, 0)

    def stage(self, batch: Batch) -> None:
        """See `Sink`."""
        if buffer := self.lines(batch):
            self._spool.append(buffer)

    def after_commit(self) -> None:
        """See `Sink`. Delivers what is committed."""
        self._spool.after_commit()
        if self._spool.file.length >= SEGMENT_BYTES:
            self._spool.seal()
        if self._skipped < self._to_skip:
            self._skipped += 1
            return
        if self._deliver_all():
            self._to_skip = 0
        else:
            self._to_skip = min(max(self._to_skip * 2, 1), _MAX_SKIPPED)
        self._skipped = 0

    def rollback(self) -> None:
        """See `Sink`."""
        self._spool.rollback()

    def restore(self) -> str:
        """See `Sink`."""
        return self._spool.file.restore()

    def close(self) -> None:
        """Deliver everything. Raises `UserError` if the server is unreachable; the next start continues."""
        if not self._spool.is_open:
            return
        try:
            if self._spool.is_settled and not self._deliver_all():
                raise UserError(
                    f"{self._setting}: {self._place} is unreachable; the rest waits in"
                    f" {self._spool.file.path.parent}, run again with --resume"
                )
        finally:
            self._spool.close()

    def bury(self, records: Sequence[bytes], errors: Sequence[str]) -> None:
        """Write refused records, JSON objects, to the file of dead letters. Raises `OSError`."""
        if not records:
            return
        with self._dead.open("ab") as file:
            file.write(b"".join(one + b"\n" for one in records))
            file.flush()
            os.fsync(file.fileno())
        log.warning(
            "storage: %s refused %d records; they are in %s: %s", self._place, len(records), self._dead, errors[0]
        )

    def _deliver_all(self) -> bool:
        try:
            for segment in list(self._spool.sealed):
                with segment.open("rb") as file:
                    self._deliver_from(file, segment.stat().st_size)
                self._set_sent(0)
                self._spool.delivered(segment)
            with self._spool.file.path.open("rb") as file:
                self._deliver_from(file, self._spool.file.length)
        except TemporaryError as error:
            log.warning("storage: %s; records wait", error)
            return False
        return True

    def _deliver_from(self, file: IO[bytes], length: int) -> None:
        file.seek(self._sent)
        for lines in _parts(file, length - self._sent):
            self.deliver(lines)
            self._set_sent(file.tell())

    def _set_sent(self, offset: int) -> None:
        if offset != self._sent:
            self._ledger.register(self._offset_name, offset)
            self._sent = offset


def _parts(file: IO[bytes], length: int) -> Iterator[list[bytes]]:
    """Lines, at most 5 MB at once. The position of the file is behind those returned."""
    while length > 0:
        lines, size = [], 0
        while size < _DELIVERY_BYTES and length > 0:
            line = file.readline()
            size += len(line)
            length -= len(line)
            lines.append(line.rstrip(b"\n"))
        yield lines
