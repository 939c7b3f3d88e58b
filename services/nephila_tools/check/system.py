"""`nephila check` of a system over Kafka, while it crawls: receipts on the broker against rows in the database.

A receipt says that a row is durable. A row that is missing, or older than its receipt, was lost by the database: a
forced deletion, a restore of an older state. The broker keeps records as long as receipts (seven days), so a lost row
is written again from its record, without a fetch. With `storage.retention` below seven days, rows that it has dropped
are found as well. Each record is read at most once. Memory: the receipts of one set of partitions, a sixteenth of the
system, or of one lane where there are fewer lanes.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from nephila.kernel.bus.contract import LogBus, Receipt, all_of, newest
from nephila.kernel.messages import CrawlJob, Record
from nephila.kernel.runtime.errors import TemporaryError, UserError
from nephila.kernel.topics import JOBS, RECEIPTS, RECORDS
from nephila.storage.ledgers.read_connection import ReadConnection, open_each
from nephila.storage.source import shard_of
from nephila_cluster.system_log import open_log, read, sets_of

from nephila_tools.check.result import JobCheck

Key = tuple[str, bytes]
_KEYS: Final = 500
"""Keys in one query."""


class Rows(Protocol):
    """The rows as the check reads them."""

    def __call__(self, uid: str, keys: Iterable[bytes]) -> Mapping[bytes, int]:
        """Key → number of its stored fetch, of those that have a row."""


def check(path: str, *, repair: bool) -> list[JobCheck]:
    """Each job of the system of a settings file. Raises `UserError`."""
    system, config = read(path, with_rows=True)

    async def main() -> list[JobCheck]:
        with open_each(system.rows) as servers:
            async with open_log(system, config) as bus:
                return await check_log(bus, rows_of(servers), repair=repair)

    try:
        return asyncio.run(main())
    except TemporaryError as error:
        raise UserError(f"{system.place}: {error}; repeat the command") from None


def rows_of(servers: Sequence[ReadConnection]) -> Rows:
    """The rows of all servers, each key from its own."""

    def stored(uid: str, keys: Iterable[bytes]) -> Mapping[bytes, int]:
        of_server: dict[int, list[str]] = defaultdict(list)
        for key in keys:
            of_server[shard_of(key.hex(), len(servers))].append(key.hex())
        numbers: dict[bytes, int] = {}
        for number, left in of_server.items():
            for part in (left[at : at + _KEYS] for at in range(0, len(left), _KEYS)):
                numbers.update(_stored(servers[number], uid, part))
        return numbers

    return stored


def _stored(server: ReadConnection, uid: str, keys: Sequence[str]) -> Iterator[tuple[bytes, int]]:
    names = ", ".join(f":k{number}" for number in range(len(keys)))
    query = f"SELECT url_key, fetch_no FROM pages WHERE job = :job AND url_key IN ({names})"
    values = {f"k{number}": key for number, key in enumerate(keys)}
    for key, fetch_no in server.execute(query, {"job": uid, **values}):
        yield bytes.fromhex(key), fetch_no


async def check_log(bus: LogBus, rows: Rows, *, repair: bool) -> list[JobCheck]:
    """Compare one set of partitions after another. Raises `TemporaryError`."""
    jobs: dict[str, CrawlJob] = await newest(bus, JOBS)
    checks = {uid: JobCheck(job=uid, ended=0) for uid, job in sorted(jobs.items()) if not job.deleted}
    for partitions in sets_of(bus, bus.layout, RECEIPTS, RECORDS):
        lost = _missing(await _receipts(bus, partitions, checks), rows, checks)
        if lost:
            records = await _records(bus, partitions, lost)
            await _tell(bus, records.values(), checks, repair=repair)
    return list(checks.values())


async def _receipts(bus: LogBus, partitions: range, jobs: Mapping[str, JobCheck]) -> dict[Key, int]:
    """The highest number of a fetch with a receipt, for each URL of a set of partitions.

    A receipt from before a split is on the partition that was split, and one that was forwarded is on both: they are in
    one set. A lane may have messages of other sets."""
    numbers: dict[Key, int] = {}
    async for _, messages in bus.read(RECEIPTS, await bus.bounds(RECEIPTS, partitions)):
        for _, batch in messages:
            for receipt in batch.receipts if batch.job in jobs else ():
                if bus.layout.of(receipt.url_key) in partitions:
                    key = (batch.job, receipt.url_key)
                    numbers[key] = max(numbers.get(key, 0), receipt.fetch_no)
    return numbers


def _missing(numbers: Mapping[Key, int], rows: Rows, checks: Mapping[str, JobCheck]) -> dict[Key, int]:
    of_job: dict[str, list[bytes]] = {}
    for uid, url_key in numbers:
        of_job.setdefault(uid, []).append(url_key)
    lost: dict[Key, int] = {}
    for uid, keys in of_job.items():
        stored = rows(uid, keys)
        gone = [key for key in keys if stored.get(key, 0) < numbers[uid, key]]
        lost.update(((uid, key), numbers[uid, key]) for key in gone)
        checks[uid].ended += len(keys)
        checks[uid].lost += len(gone)
    return lost


async def _records(bus: LogBus, partitions: range, lost: Mapping[Key, int]) -> dict[Key, Record]:
    """The last record of each lost row."""
    records: dict[Key, Record] = {}
    async for _, messages in bus.read(RECORDS, await bus.bounds(RECORDS, partitions)):
        for _, record in messages:
            key = (record.job, record.url_key)
            if lost.get(key) == record.fetch_no:
                records[key] = record
    return records


async def _tell(bus: LogBus, records: Iterable[Record], checks: Mapping[str, JobCheck], *, repair: bool) -> None:
    receipts: list[Receipt] = []
    for record in records:
        checks[record.job].urls.append(record.url)
        if repair:
            receipts.append(bus.publish(RECORDS, bus.layout.of(record.url_key), record))
            checks[record.job].repaired += 1
    await all_of(receipts)
