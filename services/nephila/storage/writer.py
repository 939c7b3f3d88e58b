"""The writer: all work of the storage service's one thread. It takes records and returns what is durable.

A flush: look up which fetches are durable already → make rows of the others → write and fsync the sinks → commit rows
and file lengths in one transaction. Invariant: after an error nothing of the batch is durable, and the writer accepts
no further batch. The exception is a lost database: the same batch may then be committed again, any number of times; the
writer first checks whether the last commit succeeded.
"""

from __future__ import annotations

import logging
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType

import msgspec

from nephila.kernel import messages as m
from nephila.kernel.pages.requisites import level_of
from nephila.kernel.runtime.clock import Clock, SystemClock
from nephila.kernel.runtime.errors import UserError
from nephila.kernel.runtime.failpoints import reach
from nephila.kernel.runtime.histogram import NETWORK_S, Histogram
from nephila.storage.append_file import keep_tail
from nephila.storage.changes import (
    AWAY,
    CHANGED,
    DEAD_LETTER,
    MOVED,
    NEW,
    RETURNED,
    STORED,
    ChangeRow,
    StoredVersion,
    change_id,
    change_of,
    copy_hash_of,
    feed_change,
    is_durable,
)
from nephila.storage.config import StorageConfig
from nephila.storage.evaluation import JobEvaluation, Slice, make_evaluation
from nephila.storage.faults import StoreLost, busy, commit_unknown, write_fault
from nephila.storage.ledgers import scheme_pages
from nephila.storage.ledgers.contract import Key, Ledger
from nephila.storage.near_copies import NearCopies, skipped_record
from nephila.storage.outputs import choose, ledger_of
from nephila.storage.rows import (
    CHANGED_AT,
    FETCH_ID,
    FETCH_NO,
    FETCHED_AT,
    FINAL_URL,
    FIRST_AT,
    JOB,
    OUTCOMES,
    TEXT,
    TEXT_HASH,
    TITLE,
    URL,
    URL_KEY,
    Row,
    RowBatch,
    iso,
    items_of,
    row_of,
)
from nephila.storage.sinks.contract import Sink
from nephila.storage.text_diff import text_diff

log = logging.getLogger(__name__)

_NONE_ENDED: Mapping[str, int] = MappingProxyType({})


class FlushResult(msgspec.Struct):
    """The result of one flush, in the order of its records."""

    outcomes: list[m.Outcome] = msgspec.field(default_factory=list)
    """The durable outcome of each record; of a fetch that was durable before, the outcome in the database."""
    new: Counter[str] = msgspec.field(default_factory=Counter)
    """Rows that this flush adds to the table, by outcome; negative where another outcome replaced a row."""
    changes: list[ChangeRow] = msgspec.field(default_factory=list)
    """Changes of its records; with `repeat_changes` also those that an earlier flush recorded of the same fetches."""
    dead: list[tuple[m.Record, str]] = msgspec.field(default_factory=list)
    """Records that could not be converted to rows, with the error; they ended as failed(dead_letter)."""
    near_copies: Counter[str] = msgspec.field(default_factory=Counter)
    """Near-copies among the records: marked, skipped."""


class Writer:
    """All files of one directory, and the database. One thread calls all methods."""

    def __init__(self, config: StorageConfig, clock: Clock | None = None, *, repeat_changes: bool = False) -> None:
        """`repeat_changes`: a record that is delivered again returns its recorded change again, since the program may
        have ended before it published it. Raises `UsageError` for an unknown format."""
        self._repeat_changes = repeat_changes
        self._config = config
        self._clock = clock or SystemClock()
        self.flush_s = Histogram(NETWORK_S)
        """Flushes: look-up, files with fsync, database."""
        self.database_s = Histogram(NETWORK_S)
        """Transactions: rows sent and committed."""
        self._ledger = ledger_of(config)
        self._near_copies = NearCopies(self._ledger, config.near_copy_entries, config.near_copy_distance)
        self._sinks: list[Sink] = choose(config, self._ledger)
        self.evaluation = JobEvaluation(lambda: make_evaluation(self._ledger, config.writer, self._clock))
        self._broken: BaseException | None = None
        self._lost = False
        self._in_doubt: dict[str, int] = {}

    @property
    def _all(self) -> tuple[Sink | Ledger, ...]:
        return (*self._sinks, self._ledger)

    @property
    def exchanges(self) -> bool:
        """Whether a sink stores answers that are not pages."""
        return any(getattr(sink, "exchanges", False) for sink in self._sinks)

    @property
    def raw(self) -> bool:
        """Whether a sink stores raw pages."""
        return any(sink.raw for sink in self._sinks)

    def open(self, ended: Mapping[str, int] | None = _NONE_ENDED) -> dict[str, int]:
        """Create the directory, open and recover its contents. Raises `UserError`.

        `ended`: number of ended URLs of each job. A database with fewer rows of a job is refused before any change.
        None: the frontier's log is lost. Bytes beyond the committed lengths of files are then saved beside them, and
        the highest fetch number of each job is returned.
        """
        directory = self._config.directory
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._ledger.examine(ended or _NONE_ENDED)
            self._ledger.open()
            last_fetches = {}
            if ended is None:
                last_fetches = self._ledger.last_fetches()
                self._keep_tails()
            for sink in self._sinks:
                sink.open()
        except BaseException as error:
            self._abandon()
            fault = write_fault(error, directory)
            if fault is error:
                raise
            raise fault from error
        return last_fetches

    def _keep_tails(self) -> None:
        for name, committed in self._ledger.sinks().items():
            path = self._config.directory / name
            if path.exists() and path.stat().st_size > committed:
                keep_tail(path, committed)

    def commit(
        self,
        records: Sequence[m.Record],
        pages: Sequence[m.Page | None],
        late: Sequence[m.Page],
        exchanges: Sequence[m.Page] = (),
    ) -> FlushResult:
        """Make the records durable, each with its raw page if it has one; also the `late` pages of earlier records and
        the `exchanges`, answers that are not pages.

        Raises `StoreLost` when the database is lost: call again with the same batch. Raises `UserError` for an error of
        the disk, other exceptions for an error of this program; then nothing of the batch is durable and the writer
        accepts no further batch.
        """
        began = self._clock.monotonic()
        with self._failing():
            self._check_files_in_place()
            if self._lost and self._reopen():
                late, exchanges = [], []
            batch, result = self._prepare(records, pages)
            for page in late:
                _add_raw(batch, page)
            batch.exchanges += exchanges
            if batch.rows or batch.not_modified or batch.copy_kept or batch.pages or batch.exchanges:
                self._write(batch)
            else:
                self._ledger.rollback()
        self.flush_s.observe(self._clock.monotonic() - began)
        return result

    def next_evaluation(self) -> Slice | None:
        """The next stored pages, evaluated by changed schemes and not yet written. Raises as `commit`."""
        with self._failing():
            if self._lost:
                self._reopen()
            return self.evaluation.next()

    def commit_evaluation(self, part: Slice) -> None:
        """Make evaluated pages durable, unless their rows have changed since. Raises as `commit`."""
        evaluation = self.evaluation.current
        with self._failing():
            self._check_files_in_place()
            if self._lost and self._reopen():
                evaluation.committed(part)
                return
            self._ledger.durable({part.job: part.fetches})
            if evaluation.is_current(part):
                self._write(part.batch)
                evaluation.committed(part)
            else:
                self._ledger.rollback()
                evaluation.repeat(part)

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Refuse the block after an error of the disk or the program, and translate its errors."""
        if self._broken is not None:
            raise self._broken
        try:
            yield
        except StoreLost:
            self._lost = True
            raise
        except BaseException as error:
            if busy(error):  # all of it was rolled back: the next attempt begins from scratch
                raise StoreLost(f"{self._ledger.path} is locked by another program") from error
            self._broken = write_fault(error, self._ledger.path)
            if self._broken is error:
                raise
            raise self._broken from error

    def _check_files_in_place(self) -> None:
        """Raise `UserError` if a file was deleted or replaced during the crawl, after saving what can be saved."""
        losses = [what for output in self._all if (what := output.restore())]
        if losses:
            raise UserError("; ".join([*losses, "run again with --resume"]))

    def after_commit(self) -> None:
        """Work after a commit: rotate files, checkpoint the log. Raises `UserError`; `StoreLost` if it has to be called
        again."""
        try:
            for sink in self._sinks:
                sink.after_commit()
            self._ledger.after_commit()
        except (OSError, sqlite3.Error) as error:
            if busy(error):
                raise StoreLost(f"{self._ledger.path} is locked by another program") from error
            self._broken = write_fault(error, self._config.directory)
            raise self._broken from error

    def close(self) -> None:
        """Finish and close all files. Raises `UserError` if that fails; the rows are durable in any case."""
        first: BaseException | None = None
        if self._broken is None and not self._lost:
            try:
                self._check_files_in_place()
            except UserError as error:
                first = error
        for output in self._all:
            try:
                output.close()
            except (OSError, sqlite3.Error, UserError) as error:
                first = first or write_fault(error, self._config.directory)
        if first is not None and self._broken is None:
            raise first

    def _prepare(self, records: Sequence[m.Record], pages: Sequence[m.Page | None]) -> tuple[RowBatch, FlushResult]:
        batch, result = RowBatch(), FlushResult()
        self._near_copies.begin_batch()
        durable = self._durable(records)
        feed: list[tuple[str, Row]] = []
        repeated: list[str] = []
        for record, page in zip(records, pages, strict=True):
            key = (record.job, record.url_key.hex())
            stored = durable.get(key)
            if stored is not None and is_durable(record, stored):
                result.outcomes.append(stored.outcome)
                if self._repeat_changes and stored.fetch_no == record.fetch_no and stored.copy:
                    repeated.append(change_id(*key, record.fetch_no))
                continue
            try:
                version = self._add(batch, record, stored, feed, result.near_copies)
            except Exception as error:  # one invalid record must not fail the 255 others
                log.error("storage: dead letter: %s: %s", type(error).__name__, error)
                result.dead.append((record, f"{type(error).__name__}: {error}"))
                version = self._add(batch, dead_letter_record(record), stored, feed, result.near_copies)
            durable[key] = version
            if page is not None and version.outcome is record.outcome:
                _add_raw(batch, page)
                batch.records[id(page)] = record
            result.outcomes.append(version.outcome)
            result.new[OUTCOMES[version.outcome]] += 1
            if stored is not None:
                result.new[OUTCOMES[stored.outcome]] -= 1
            else:
                batch.added[record.job] += 1
        self.evaluation.stored(batch, records, durable)
        batch.changes = self._changes(batch, feed)
        result.changes = [*(self._ledger.recorded_changes(repeated) if repeated else ()), *batch.changes]
        return batch, result

    def _changes(self, batch: RowBatch, feed: list[tuple[str, Row]]) -> list[ChangeRow]:
        """The rows of the change feed, each compared with the copy before it."""
        at = iso(self._clock.now())
        keys = {(row[JOB], row[URL_KEY]) for change, row in feed if change != NEW}
        copies = self._ledger.copies(keys) if keys else {}
        rows = []
        for change, row in feed:
            key, diff, old_hash, title = (row[JOB], row[URL_KEY]), "", "", row[TITLE]
            if change == CHANGED:
                diff = text_diff(copies[key][1], row[TEXT]) if key in copies else ""
                old_hash = batch.attempt_and_old_hash[row[JOB], row[FETCH_ID]][1]
            elif change in (*AWAY, RETURNED) and key in copies:
                title = copies[key][0]
            if change == MOVED:
                diff = f"+{row[FINAL_URL]}"
            if key in keys and change in (NEW, CHANGED):
                copies[key] = (title, row[TEXT])
            id = change_id(*key, row[FETCH_NO])
            hashes = (old_hash, row[TEXT_HASH])
            rows.append(ChangeRow(id, at, *key, row[FETCH_NO], change, row[URL], title, row[FETCHED_AT], *hashes, diff))
        return rows

    def _add(
        self,
        batch: RowBatch,
        record: m.Record,
        stored: StoredVersion | None,
        feed: list[tuple[str, Row]],
        near_copies: Counter[str],
    ) -> StoredVersion:
        """Add the record to the right list of the batch, and its change to the feed; returns the new version of its
        URL. Atomic: on an error nothing is added."""
        near = self._near_copies.find(record)
        # A page that was stored before stays: its new text is marked only.
        skipped = near is not None and record.near_copies is m.NearCopies.SKIP and (stored is None or not stored.copy)
        if skipped:
            record = skipped_record(record)
        change = change_of(record, stored)
        row = row_of(record, stored, change, near)
        old = stored.copy_hash.hex() if stored is not None and change == CHANGED else ""
        batch.attempt_and_old_hash[row[JOB], row[FETCH_ID]] = (record.attempt, old)
        copy, copy_hash = bool(record.sha256), copy_hash_of(record)
        stays = record.not_modified or record.outcome is not STORED
        if stored is not None and stored.copy and stays:
            copy, copy_hash = True, stored.copy_hash
        if record.not_modified:
            batch.not_modified.append(row)
        elif copy and stays:
            batch.copy_kept.append(row)
        else:
            batch.rows.append(row)
            self._near_copies.replaced(record, near)
            if change == CHANGED:
                batch.changed.append((row[JOB], row[URL_KEY]))
            if record.links is not None:
                batch.links.append((record.job, row[URL_KEY], record.links))
            if record.items or (stored is not None and stored.copy):
                batch.items[row[JOB], row[URL_KEY]] = items_of(record, row[FETCH_ID])
        if kind := feed_change(change, stored):
            feed.append((kind, row))
        if near is not None:
            near_copies["skipped" if skipped else "marked"] += 1
        is_away = change in AWAY or (not change and stored is not None and stored.is_away)
        instants = row[FIRST_AT], row[CHANGED_AT]
        is_dead_letter = record.reason == DEAD_LETTER
        return StoredVersion(record.fetch_no, record.outcome, copy, copy_hash, *instants, is_away, is_dead_letter)

    def _durable(self, records: Sequence[m.Record]) -> dict[Key, StoredVersion]:
        # For every batch, resumed or not: 1 µs per row, and it loads the index pages that the insert needs next.
        jobs: dict[str, list[str]] = {}
        for record in records:
            jobs.setdefault(record.job, []).append(record.url_key.hex())
            if record.context is not None and record.context.platform:
                # The pages that it leads to are evaluated again if they are stored.
                jobs[record.job] += scheme_pages.leads_of(record)
        return self._ledger.durable(jobs)

    def _write(self, batch: RowBatch) -> None:
        try:
            lengths: dict[str, int] = {}
            for sink in self._sinks:
                sink.stage(batch)
                lengths.update(sink.lengths)
            reach("sink_flush_before")
            began = self._clock.monotonic()
            self._ledger.stage(batch)
            self._in_doubt = lengths
            self._ledger.commit(lengths)
            self._in_doubt = {}
            self.database_s.observe(self._clock.monotonic() - began)
            reach("sink_flush_after")
        except StoreLost:
            # The database decides whether this is durable, once it is back; until then the files keep their bytes.
            raise
        except BaseException as error:
            self._roll_back(error)
            raise

    def _reopen(self) -> bool:
        """Reopen the database and the files at its state. Returns whether the last batch was committed."""
        in_doubt, self._in_doubt = self._in_doubt, {}
        for output in self._all:
            output.close()
        try:
            self._ledger.open()
            committed = self._ledger.sinks()
            for sink in self._sinks:
                sink.open()
        except StoreLost:
            self._in_doubt = in_doubt
            raise
        self._lost = False
        log.info("storage: the database is back")
        return bool(in_doubt) and all(committed.get(name) == length for name, length in in_doubt.items())

    def _roll_back(self, error: BaseException) -> None:
        # After a failed fsync the log may still hold the commit: then the files must have kept their bytes.
        # The next open follows the database.
        outputs: tuple[Sink | Ledger, ...] = (self._ledger,) if commit_unknown(error) else self._all
        for output in outputs:
            try:
                output.rollback()
            except (OSError, sqlite3.Error, UserError) as second:
                log.warning("storage: the rollback failed and is repeated on the next open: %s", second)

    def _abandon(self) -> None:
        for output in self._all:
            try:
                output.close()
            except (OSError, sqlite3.Error, UserError) as error:
                log.debug("close after a failed open: %s", error)


def dead_letter_record(record: m.Record) -> m.Record:
    """The minimal record that ends a URL: its identity, and no field that could be invalid."""
    url = record.url if isinstance(record.url, str) else ""
    return m.Record(
        job=record.job,
        url_key=record.url_key,
        url=url,
        fetch_no=record.fetch_no,
        attempt=record.attempt,
        outcome=m.Outcome.FAILED,
        reason=DEAD_LETTER,
    )


def _add_raw(batch: RowBatch, page: m.Page) -> None:
    """Add a raw page for the sinks. A requisite is an answer that is not a page."""
    (batch.exchanges if level_of(page.context) else batch.pages).append(page)
