"""IN: records, jobs and rules; with a raw sink also pages and other answers. OUT: receipts; items of platforms; over
Kafka changes.

The event loop collects records; one thread makes them durable, one flush at a time. Records that arrive during a flush
belong to the next one. Invariant: a receipt is published, and its record acknowledged, only after the transaction that
holds its row.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from operator import attrgetter
from types import MappingProxyType
from typing import TypeVar

from nephila.kernel import messages as m
from nephila.kernel.bus.contract import Bus, Delivery, Receipt, all_of, settle
from nephila.kernel.process.disk import DiskSpace, disk_space
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import PermanentError
from nephila.kernel.runtime.waits import OneTimer
from nephila.kernel.topics import CHANGES, EXCHANGES, JOBS, PAGES, RECEIPTS, RECORDS, RULES
from nephila.native import partition_of
from nephila.storage.batch_size import SLOW_S, BatchSize
from nephila.storage.changes import ChangeRow, copy_hash_of, page_change
from nephila.storage.config import StorageConfig
from nephila.storage.faults import StoreLost, StoreSlow
from nephila.storage.health import StoreHealth
from nephila.storage.lost_store import LostStore
from nephila.storage.published_items import ItemTopics, PublishedItems
from nephila.storage.raw import RawPages
from nephila.storage.rows import hide_credentials
from nephila.storage.writer import FlushResult, Writer, dead_letter_record

T = TypeVar("T")

log = logging.getLogger(__name__)

GROUP = "storage"
RAW_GROUP = "raw"
_KIND = attrgetter("change")


def build(
    config: StorageConfig,
    bus: Bus,
    clock: Clock,
    on_fatal: Callable[[BaseException], None] | None = None,
    item_topics: ItemTopics | None = None,
    *,
    publish_changes: bool = False,
) -> Storage:
    """The service, subscribed but not started. `publish_changes`: on the topic `changes`, for readers outside of the
    system. Raises `UsageError` for an unknown format.

    Build it before the readers of pages subscribe, so that a raw page arrives here before its record.
    """
    writer = Writer(config, clock, repeat_changes=publish_changes)
    return Storage(config, bus, clock, writer, on_fatal, item_topics, publish_changes=publish_changes)


class Storage:
    """The storage service; a `lifecycle.Service`."""

    def __init__(
        self,
        config: StorageConfig,
        bus: Bus,
        clock: Clock,
        writer: Writer,
        on_fatal: Callable[[BaseException], None] | None = None,
        item_topics: ItemTopics | None = None,
        *,
        publish_changes: bool = False,
    ) -> None:
        """`on_fatal` is called once, on the event loop, when a flush has failed permanently; no receipt follows it."""
        self.outcomes: Counter[str] = Counter()
        """Rows that this process added to the table, by outcome. If a replayed record replaces a dead letter's row, the
        row counts for the new outcome."""
        self.near_copies: Counter[str] = Counter()
        """Fetched pages that were near-copies of other pages: marked, skipped."""
        self.changes: Counter[str] = Counter()
        """Changes of pages that this process recorded, by kind."""
        self._publish_changes = publish_changes
        self.on_fatal = on_fatal
        self._config = config
        self._bus = bus
        self._clock = clock
        self._writer = writer
        self.flush_s, self.database_s = writer.flush_s, writer.database_s
        """Durations; see `Writer`."""
        self.batch_size = BatchSize(config.credits, min(config.batch_rows, config.credits) // 4 or 1)
        self._thread: ThreadPoolExecutor | None = None
        self._buffer: list[Delivery] = []
        self._bytes = 0
        self._received = 0
        self._receipted = 0
        self._flush_target = 0
        self._timer = OneTimer(clock, self._start_flush)
        self._task: asyncio.Task[None] | None = None
        self._opening: asyncio.Task[None] | None = None
        self._failed: BaseException | None = None
        self.last_fetches: dict[str, int] = {}
        """Highest fetch number of each job with rows; set when the frontier's log is lost."""
        self._closing = asyncio.Event()
        self._lost_store = LostStore(clock, self._closing)
        self._items = PublishedItems(config, item_topics, self._lost_store)
        self.health = StoreHealth(config, clock, self._lost_store, self.batch_size)
        self._raw = RawPages(self._schedule_flush, clock, config.raw_wait_s) if writer.raw else None
        if self._raw is not None:
            bus.subscribe(PAGES, RAW_GROUP, self._raw.on_page, credits=config.raw_credits)
            if writer.exchanges:
                bus.subscribe(EXCHANGES, RAW_GROUP, self._raw.on_exchange, credits=config.raw_credits)
        # Before records, so that a page is not stored with schemes that are known to be older.
        bus.subscribe(RULES, GROUP, self._on_rule, credits=config.credits)
        bus.subscribe(JOBS, GROUP, self._on_job, credits=config.credits)
        bus.subscribe(RECORDS, GROUP, self._on_record, credits=config.credits, on_dead=self._on_dead)

    @property
    def work(self) -> tuple[int, int]:
        """Pages stored since the start; no bytes are received here."""
        return self.outcomes["stored"], 0

    @property
    def disk(self) -> DiskSpace:
        """Disk of its directory."""
        return disk_space(self._config.directory)

    @property
    def trouble(self) -> str:
        """Why nothing can be made durable now, in one line; the service is not ready. Empty: no problem."""
        return self._lost_store.trouble

    @property
    def store(self) -> m.StoreStatus:
        """The state of the file or server of the rows."""
        return self.health.status(self.buffered)

    @property
    def evaluated(self) -> Counter[str]:
        """Stored pages that this process evaluated by changed schemes, by result."""
        return self._writer.evaluation.results

    @property
    def buffered(self) -> int:
        """Records that are received and not yet durable."""
        return self._received - self._receipted

    async def start(self, ended: Mapping[str, int] | None = MappingProxyType({})) -> None:
        """Open and recover the directory. With `wait_at_start` an unreachable database is opened later. `ended`: see
        `Writer.open`. Raises `UserError` in one line."""
        thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="nephila-storage")
        try:
            opening = partial(self._writer.open, ended)
            self.last_fetches = await asyncio.get_running_loop().run_in_executor(thread, opening)
        except StoreLost as error:
            if not self._config.wait_at_start:
                thread.shutdown(wait=False)
                raise
            self._lost_store.note(error)
            log.warning("storage: %s; retrying", error)
            self._opening = asyncio.get_running_loop().create_task(self._open_later(thread))
            return
        except BaseException:
            thread.shutdown(wait=False)
            raise
        self._thread = thread
        self.health.opened()
        self._schedule_flush()

    async def _open_later(self, thread: ThreadPoolExecutor) -> None:
        try:
            await self._in_thread(thread, self._writer.open)
        except Exception as error:
            thread.shutdown(wait=False)
            self._fail(error)
            return
        self._thread = thread
        self.health.opened()
        self._schedule_flush()

    async def flush(self) -> None:
        """Return when all records received so far are durable. Raises the error that made a flush fail."""
        self._flush_target = goal = self._received
        while self._receipted < goal or (self._raw is not None and self._raw.due):
            if self._failed is not None:
                raise self._failed
            self._start_flush()
            if self._task is None:
                raise RuntimeError("storage has not been started")
            await asyncio.shield(self._task)

    def abandon_pages(self, partitions: Container[int], recorded: Container[tuple[str, bytes]]) -> None:
        """No further record comes of what was fetched from these partitions so far: forget its raw pages, without those
        whose records have come (job and fingerprint)."""
        if self._raw is not None:
            self._raw.abandon(partitions, recorded)

    async def drain(self, grace_s: float) -> None:
        """Make received records durable, within `grace_s` seconds; a resumed crawl fetches the rest again."""
        if self._failed is None and self._thread is not None:
            try:
                await asyncio.wait_for(self.flush(), max(grace_s, 0.1))
            except TimeoutError:
                log.warning("storage: %d records were not written in time; they are fetched again", self.buffered)
            except Exception as error:
                log.debug("drain: an earlier flush failed: %s", error)

    async def close(self) -> None:
        """Wait for the running flush, finish and close the files. Raises `UserError` if a file cannot be finished."""
        self._timer.cancel()
        if self._raw is not None:
            self._raw.close()
        self._closing.set()
        for task in (self._opening, self._task):
            if task is not None:
                await asyncio.wait([task])
        await self._items.close()
        thread, self._thread = self._thread, None
        if thread is not None:
            try:
                await asyncio.get_running_loop().run_in_executor(thread, self._writer.close)
            finally:
                thread.shutdown(wait=False)

    def _on_job(self, delivery: Delivery) -> None:
        self._writer.evaluation.update_job(delivery.message)
        delivery.ack()
        self._schedule_flush()

    def _on_rule(self, delivery: Delivery) -> None:
        self._writer.evaluation.update_rule(delivery.message)
        delivery.ack()
        self._schedule_flush()

    def _on_record(self, delivery: Delivery) -> None:
        record = delivery.message
        if not record.outcome or len(record.url_key) != 16:
            raise PermanentError(f"record without outcome or url_key: {record.url[:200]!r}")
        if "@" in record.url or "@" in record.final_url:
            hide_credentials(record)
        self._buffer.append(delivery)
        self._received += 1
        self._bytes += len(record.text) + (sum(map(len, record.items)) if record.items else 0)
        if self._task is None:
            self._schedule_flush()

    def _on_dead(self, record: m.Record, error: BaseException) -> Iterable[Receipt]:
        """End the URL of a record that must not be written as failed(dead_letter), with a minimal record."""
        if not record.job or len(record.url_key) != 16:
            return ()
        written = Receipt()
        # The bus does not report the partition of the record; the fingerprint determines it.
        partition = partition_of(record.url_key, self._config.partitions)
        self._on_record(Delivery(dead_letter_record(record), partition, written.resolve_one))
        return (written,)

    @property
    def _batch_full(self) -> bool:
        return len(self._buffer) >= self._config.batch_rows or self._bytes >= self._config.batch_bytes

    def _schedule_flush(self) -> None:
        """Start a flush, or the timer for one, if records wait and no flush is running."""
        if self._thread is None or self._task is not None or self._failed is not None:
            return
        if (
            self._batch_full
            or self._receipted < self._flush_target
            or (self._writer.evaluation.due and not self._closing.is_set())
        ):
            self._start_flush()
        elif self._buffer or (self._raw is not None and self._raw.due):
            self._timer.start(self._config.flush_interval_s)

    def _start_flush(self) -> None:
        if self._thread is None or self._task is not None or self._failed is not None:
            return
        self._timer.cancel()
        # The task takes the buffer in the next turn of the loop, so a raw page published in this turn is included.
        self._task = asyncio.get_running_loop().create_task(self._flush(self._thread))

    async def _flush(self, thread: ThreadPoolExecutor) -> None:
        deliveries, self._buffer, self._bytes = self._buffer, [], 0
        records: list[m.Record] = [delivery.message for delivery in deliveries]
        pages: list[m.Page | None]
        raw = self._raw.take(records) if self._raw is not None else None
        pages, late = (raw.pages, raw.late) if raw is not None else ([None] * len(records), [])
        exchanges = raw.exchanges if raw is not None else []
        try:
            await self._items.publish(self._items.of(records), self.buffered)
            done = 0
            while True:
                others = (late, exchanges) if not done else ([], [])
                attempt = partial(self._commit, thread, records[done:], pages[done:], *others)
                count, result = await self._lost_store.repeat(attempt, self.buffered, self._config.patience_s)
                end = done + count
                self._receipt(deliveries[done:end], records[done:end], result)
                if raw is not None and end == len(records):
                    raw.ack()
                # The receipts are published: the remaining work on files is done before the next batch.
                await self._in_thread(thread, self._writer.after_commit)
                if (done := end) >= len(records):
                    break
            if self._writer.evaluation.due and not self._closing.is_set():
                await self._evaluate(thread)
        except Exception as error:
            self._fail(error)
        finally:
            self._task = None
        self._schedule_flush()

    async def _commit(
        self,
        thread: ThreadPoolExecutor,
        records: list[m.Record],
        pages: list[m.Page | None],
        late: list[m.Page],
        exchanges: list[m.Page],
    ) -> tuple[int, FlushResult]:
        """Make the first records durable, as many as the database is expected to take in time; their number and what
        became of them. Raises as `Writer.commit`."""
        count = min(self.batch_size.limit, len(records))
        began = self._clock.monotonic()
        self.health.begins()
        work = partial(self._writer.commit, records[:count], pages[:count], late, exchanges)
        try:
            result = await asyncio.get_running_loop().run_in_executor(thread, work)
        except StoreLost as error:
            self.health.ends(durable=False)
            if isinstance(error, StoreSlow) or self._clock.monotonic() - began > SLOW_S:
                self.batch_size.failed(count)
            raise
        self.health.ends(durable=True)
        self.batch_size.succeeded(count, self._clock.monotonic() - began)
        return count, result

    async def _in_thread(self, thread: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        """Run `work` in the writer's thread; repeat it while the database is lost. Raises `UserError` after
        `patience_s`, `StoreLost` if the service is closed meanwhile."""
        loop = asyncio.get_running_loop()
        patience_s = self._config.patience_s
        return await self._lost_store.repeat(lambda: loop.run_in_executor(thread, work), self.buffered, patience_s)

    async def _evaluate(self, thread: ThreadPoolExecutor) -> None:
        """Evaluate some stored pages by changed schemes."""
        part = await self._in_thread(thread, self._writer.next_evaluation)
        if part is None:
            return
        await self._items.publish(part.lines, self.buffered)
        await self._in_thread(thread, partial(self._writer.commit_evaluation, part))
        await self._in_thread(thread, self._writer.after_commit)

    def _receipt(self, deliveries: list[Delivery], records: list[m.Record], result: FlushResult) -> None:
        """Publish the receipts of these records, then acknowledge the records."""
        self.outcomes.update(result.new)
        self.near_copies.update(result.near_copies)
        batches: dict[tuple[str, int], list[m.Receipt]] = {}
        for delivery, record, outcome in zip(deliveries, records, result.outcomes, strict=True):
            same = outcome is record.outcome
            receipt = _receipt(record) if same else m.Receipt(record.url_key, record.fetch_no, outcome)
            batches.setdefault((record.job, delivery.partition), []).append(receipt)
        for record, error in result.dead:
            partition = next(sent.partition for sent, of in zip(deliveries, records, strict=True) if of is record)
            self._bus.dead_letter(RECORDS, GROUP, partition, record, error, 1)
        for (job, partition), receipts in batches.items():
            self._bus.publish(RECEIPTS, partition, m.Receipts(job, receipts))
        published = self._changes(result.changes)
        self._receipted += len(deliveries)
        # The lease repairs a lost receipt: the URL is fetched again, found durable, and a new receipt is published.
        if not published:
            settle([*deliveries])
        for delivery in deliveries if published else ():
            delivery.ack_after(published)

    def _changes(self, changes: list[ChangeRow]) -> list[Receipt]:
        """Count changes, and publish them. The records are acknowledged after it, so a crash in between repeats the
        changes with the same ids."""
        self.changes.update(map(_KIND, changes))
        if not self._publish_changes:
            return []
        published = []
        for change in changes:
            key, message = bytes.fromhex(change.url_key), page_change(change)
            published.append(self._bus.publish(CHANGES, partition_of(key, self._config.partitions), message))
        return [all_of(published)] if published else []

    def _fail(self, error: BaseException) -> None:
        self._failed = error
        self.health.fails(error)
        if isinstance(error, StoreLost) and self._closing.is_set():
            if self.buffered:
                log.warning("storage: %d records were not written: %s", self.buffered, error)
            return
        if self.on_fatal is not None:
            self.on_fatal(error)
        else:
            log.error("storage: %s", error, exc_info=log.isEnabledFor(logging.DEBUG))


def _receipt(record: m.Record) -> m.Receipt:
    return m.Receipt(
        record.url_key,
        record.fetch_no,
        record.outcome,
        copy_hash_of(record),
        record.not_modified,
        record.etag,
        record.last_modified,
        record.size_bytes,
        record.status,
    )
