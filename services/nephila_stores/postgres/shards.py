"""The ledger over several PostgreSQL servers: each has the rows of a part of the hosts.

A row belongs to the server of the first four bytes of its url_key, which are those of its host. A flush is one
transaction per server, and these commit independently. Invariant: a record is acknowledged only after all of them. A
flush that was committed on some servers is delivered again; `durable` finds its rows there, so each row, history line
and change exists once. Locks: buckets are taken server by server in ascending order; after that a transaction waits
for its own server alone, so two writers cannot wait for each other over two servers.

Files would need one transaction for their lengths, so a configuration with several servers has none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

import msgspec
from nephila.kernel.runtime.errors import UserError
from nephila.storage.changes import ChangeRow, StoredVersion
from nephila.storage.config import StorageConfig
from nephila.storage.faults import StoreLost
from nephila.storage.ledgers.contract import Key
from nephila.storage.ledgers.read_connection import ReadConnection
from nephila.storage.rows import FETCH_ID, JOB, URL_KEY, RowBatch
from nephila.storage.source import HOST_DIGITS, addresses, shard_of

from nephila_stores.postgres.ledger import Postgres


class Shards:
    """Each server has a connection of its own, used by one thread at a time."""

    def __init__(self, config: StorageConfig) -> None:
        self.path = config.directory
        self._servers = [Postgres(msgspec.structs.replace(config, store=url)) for url in addresses(config.store)]
        self._threads: ThreadPoolExecutor | None = None
        self._staged: dict[int, RowBatch] = {}

    @property
    def reading(self) -> ReadConnection:
        """Raises `UserError`: what needs it reads rows of all hosts."""
        raise UserError("keyword schemes are evaluated in one database, and `store` names several servers")

    def examine(self, ended: Mapping[str, int]) -> None:
        """Servers check their own pages."""

    def last_fetches(self) -> dict[str, int]:
        numbers: dict[str, int] = defaultdict(int)
        for server in self._servers:
            for job, fetch_no in server.last_fetches().items():
                numbers[job] = max(numbers[job], fetch_no)
        return dict(numbers)

    def open(self) -> None:
        """All servers are opened: a flush nearly always has rows of each."""
        self._threads = ThreadPoolExecutor(len(self._servers), "shard")
        try:
            for server in self._servers:
                server.open()
        except BaseException:
            self.close()
            raise

    def durable(self, keys_by_job: Mapping[str, Iterable[str]]) -> dict[Key, StoredVersion]:
        """A transaction begins on each server."""
        parts: list[dict[str, list[str]]] = [defaultdict(list) for _ in self._servers]
        for job, keys in keys_by_job.items():
            for key in keys:
                parts[self._number(key)][job].append(key)
        versions: dict[Key, StoredVersion] = {}
        for server, part in zip(self._servers, parts, strict=True):
            versions |= server.durable(part)
        return versions

    def copies(self, keys: Iterable[Key]) -> dict[Key, tuple[str, bytes]]:
        parts: dict[int, list[Key]] = defaultdict(list)
        for job, key in keys:
            parts[self._number(key)].append((job, key))
        return {key: copy for number, part in parts.items() for key, copy in self._servers[number].copies(part).items()}

    def simhashes(self, job: str) -> Iterable[tuple[str, str]]:
        """Fingerprints come in the order of the fetches of each server."""
        for server in self._servers:
            yield from server.simhashes(job)

    def pages_by_prefix(self, job: str, prefix: str) -> Iterable[tuple[str, str, str]]:
        last = self._number(prefix[:HOST_DIGITS].ljust(HOST_DIGITS, "f"))
        for server in self._servers[self._number(prefix) : last + 1]:
            yield from server.pages_by_prefix(job, prefix)

    def recorded_changes(self, ids: Collection[str]) -> list[ChangeRow]:
        """Changes come in the order of each server."""
        return [change for server in self._servers for change in server.recorded_changes(ids)]

    def sinks(self) -> dict[str, int]:
        """A database has no files."""
        return {}

    def register(self, name: str, length: int = 0, last_fetch: int = 0) -> None:
        """Raises `UserError`."""
        raise UserError(f"{name}: files need one database, and `store` names several servers")

    def stage(self, batch: RowBatch) -> None:
        """The rows are sent by `commit`, to all servers at the same time."""
        self._staged = split(batch, self._number)

    def commit(self, lengths: Mapping[str, int]) -> None:
        """Errors are raised after all servers have ended; some may have committed then."""
        staged, self._staged = self._staged, {}

        def write(number: int) -> None:
            server = self._servers[number]
            if number in staged:
                server.stage(staged[number])
            server.commit({})

        self._on_all(write)

    def after_commit(self) -> None:
        for server in self._servers:
            server.after_commit()

    def rollback(self) -> None:
        self._staged = {}
        for server in self._servers:
            server.rollback()

    def restore(self) -> str:
        """Servers need no restore."""
        return ""

    def close(self) -> None:
        threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown()
        for server in self._servers:
            server.close()

    def _number(self, url_key: str) -> int:
        return shard_of(url_key, len(self._servers))

    def _on_all(self, work: Callable[[int], None]) -> None:
        """Call for each server at the same time. Of several errors a permanent one counts."""
        if self._threads is None:
            raise RuntimeError("the database is not open")
        waiting = [self._threads.submit(work, number) for number in range(len(self._servers))]
        errors = [error for future in waiting if (error := future.exception()) is not None]
        if errors:
            raise next((error for error in errors if not isinstance(error, StoreLost)), errors[0])


def split(batch: RowBatch, number_of: Callable[[str], int]) -> dict[int, RowBatch]:
    """The part of each server, by its number. Raw pages and Markdown are for files and are left out."""
    parts: dict[int, RowBatch] = defaultdict(RowBatch)
    for name in ("rows", "not_modified", "copy_kept"):
        for row in getattr(batch, name):
            part = parts[number_of(row[URL_KEY])]
            getattr(part, name).append(row)
    for part in parts.values():
        fetched = {(row[JOB], row[FETCH_ID]) for row in part.fetches()}
        part.attempt_and_old_hash = {key: batch.attempt_and_old_hash[key] for key in fetched}
    for job, key in batch.changed:
        parts[number_of(key)].changed.append((job, key))
    for change in batch.changes:
        parts[number_of(change.url_key)].changes.append(change)
    for job, key, links in batch.links:
        parts[number_of(key)].links.append((job, key, links))
    for (job, key), items in batch.items.items():
        parts[number_of(key)].items[job, key] = items
    return dict(parts)
