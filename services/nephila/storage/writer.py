"""The writer: what happens in the storage service's one thread. Takes records, gives back what is durable.

A flush: rows made and those already durable set aside → sinks written and synced → rows and file lengths committed in
one transaction. Invariant: after an error nothing of the batch is durable, and no later batch is accepted.
"""

from __future__ import annotations

import logging
import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from nephila.kernel import messages as m
from nephila.kernel.errors import UserError
from nephila.kernel.failpoints import reach
from nephila.storage.backends import choose
from nephila.storage.backends.base import Backend
from nephila.storage.backends.sqlite import Sqlite
from nephila.storage.config import StorageConfig
from nephila.storage.faults import unsure, write_fault
from nephila.storage.rows import OUTCOMES, Batch, row_of

log = logging.getLogger(__name__)

_NUMBERS = {name: m.Outcome(number) for number, name in enumerate(OUTCOMES)}


@dataclass(slots=True)
class Committed:
    """What became of the records of one flush, in their order."""

    outcomes: list[m.Outcome] = field(default_factory=list)
    """The durable outcome of each; of a fetch that was durable already, the one that stands in the database."""
    new: Counter[str] = field(default_factory=Counter)
    """Rows of this flush by outcome."""
    dead: list[tuple[m.Record, str]] = field(default_factory=list)
    """Records no row could be made of, with the error; they ended as failed(dead_letter)."""


class Writer:
    """All files of one directory. Every method is called by one thread."""

    def __init__(self, config: StorageConfig) -> None:
        """Raises `UsageError` for an unknown format."""
        self._config = config
        self._ledger = Sqlite(config)
        self._sinks: list[Backend] = choose(config, self._ledger)
        self._broken: BaseException | None = None

    @property
    def raw(self) -> bool:
        """True when a sink keeps raw pages."""
        return any(sink.raw for sink in self._sinks)

    def open(self) -> None:
        """Make the directory, open and recover everything in it. Raises `UserError`."""
        directory = self._config.directory
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._ledger.open()
            for sink in self._sinks:
                sink.open()
        except BaseException as error:
            self._abandon()
            fault = write_fault(error, directory)
            if fault is error:
                raise
            raise fault from error

    def commit(self, records: Sequence[m.Record], pages: Sequence[m.Page | None], late: Sequence[m.Page]) -> Committed:
        """Make the records durable, each with its raw page if it has one, and the `late` pages of earlier records.

        Raises `UserError` when the disk does not take them, anything else for a fault of this program; in both cases
        nothing of it is durable and the writer takes no more.
        """
        if self._broken is not None:
            raise self._broken
        try:
            batch, result = self._prepare(records, pages)
            batch.pages += late
            if batch.rows or batch.touched or batch.pages:
                self._write(batch)
        except BaseException as error:
            self._broken = write_fault(error, self._ledger.path)
            if self._broken is error:
                raise
            raise self._broken from error
        return result

    def settle(self) -> None:
        """What may follow a commit: rotation of files and upkeep of the log. Raises `UserError`."""
        try:
            for sink in self._sinks:
                sink.committed()
            self._ledger.committed()
        except (OSError, sqlite3.Error) as error:
            self._broken = write_fault(error, self._config.directory)
            raise self._broken from error

    def close(self) -> None:
        """Finish and close all files. Raises `UserError` when that cannot be done; the rows are safe in any case."""
        first: BaseException | None = None
        for backend in (*self._sinks, self._ledger):
            try:
                backend.close()
            except (OSError, sqlite3.Error, UserError) as error:
                first = first or write_fault(error, self._config.directory)
        if first is not None and self._broken is None:
            raise first

    def _prepare(self, records: Sequence[m.Record], pages: Sequence[m.Page | None]) -> tuple[Batch, Committed]:
        batch, result = Batch(), Committed()
        durable = self._durable(records)
        touched_attempts = []
        for record, page in zip(records, pages, strict=True):
            known = durable.get((record.job, record.url_key))
            if known is not None and known[0] >= record.fetch_no:
                result.outcomes.append(known[1])
                continue
            row, attempt, outcome = None, record.attempt, record.outcome
            try:
                row = row_of(record)
            except Exception as error:  # one impossible record must not cost its 255 neighbours
                log.error("storage: dead letter: %s: %s", type(error).__name__, error)
                result.dead.append((record, f"{type(error).__name__}: {error}"))
                outcome = m.Outcome.FAILED
                row = row_of(_tombstone(record))
            if record.not_modified:
                batch.touched.append(row)
                touched_attempts.append(attempt)
            else:
                batch.rows.append(row)
                batch.attempts.append(attempt)
                if record.links is not None:
                    batch.links.append((record.job, record.url_key.hex(), record.links))
            if page is not None:
                batch.pages.append(page)
            durable[record.job, record.url_key] = (record.fetch_no, outcome)
            result.outcomes.append(outcome)
            result.new[OUTCOMES[outcome]] += 1
        batch.attempts += touched_attempts
        return batch, result

    def _durable(self, records: Sequence[m.Record]) -> dict[tuple[str, bytes], tuple[int, m.Outcome]]:
        # Asked for every batch, resumed or not: 1 µs per row, and it warms the index pages the insert needs next.
        found: dict[tuple[str, bytes], tuple[int, m.Outcome]] = {}
        jobs: dict[str, list[str]] = {}
        for record in records:
            jobs.setdefault(record.job, []).append(record.url_key.hex())
        for job, keys in jobs.items():
            for key, (fetch_no, outcome) in self._ledger.durable(job, keys).items():
                found[job, bytes.fromhex(key)] = (fetch_no, _NUMBERS[outcome])
        return found

    def _write(self, batch: Batch) -> None:
        try:
            lengths: dict[str, int] = {}
            for sink in self._sinks:
                sink.stage(batch)
                lengths.update(sink.lengths)
            reach("sink_flush_before")
            self._ledger.stage(batch)
            self._ledger.commit(lengths)
            reach("sink_flush_after")
        except BaseException as error:
            self._roll_back(error)
            raise

    def _roll_back(self, error: BaseException) -> None:
        # A commit whose sync failed may come back to life from the log: then the files must have kept their bytes.
        # The next open decides by what the database says.
        backends: tuple[Backend, ...] = (self._ledger,) if unsure(error) else (self._ledger, *self._sinks)
        for backend in backends:
            try:
                backend.rollback()
            except (OSError, sqlite3.Error) as second:
                log.warning("storage: not rolled back now, will be on the next open: %s", second)

    def _abandon(self) -> None:
        for backend in (*self._sinks, self._ledger):
            try:
                backend.close()
            except (OSError, sqlite3.Error, UserError) as error:
                log.debug("closing after a failed open: %s", error)


def _tombstone(record: m.Record) -> m.Record:
    """The least that ends a URL: what identifies it, and nothing that could be broken."""
    url = record.url if isinstance(record.url, str) else ""
    return m.Record(
        job=record.job,
        url_key=record.url_key,
        url=url,
        fetch_no=record.fetch_no,
        attempt=record.attempt,
        outcome=m.Outcome.FAILED,
        reason="dead_letter",
    )
