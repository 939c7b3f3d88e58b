"""Positions and dead letters of webhooks: in DIR/webhooks.db, or in tables of the database on a server.

A position moves only forward by the sender and by `replay`, each as compare-and-swap: of two of them one wins, and the
other reads it again. Every method is one transaction. A power cut may lose the last positions in webhooks.db: then
deliveries are repeated with the same ids.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from nephila.kernel.runtime.errors import UserError
from nephila.storage.changes import ChangeRow
from nephila.storage.source import Source, display_name, require_driver

from nephila_harvest.change_feed import FeedRow
from nephila_harvest.webhooks.database import Database

_LOCK_FILE = "webhooks.lock"
_LOCK = (0x6E657068, -4)
"""Advisory lock of the sender in PostgreSQL ("neph"; -1 to -3 are those of the ledger)."""
_CHANGE = ", ".join(ChangeRow._fields)
_TABLES = (
    "CREATE TABLE IF NOT EXISTS webhook_positions (name TEXT PRIMARY KEY, seq BIGINT NOT NULL,"
    " failures BIGINT NOT NULL, failing_since TEXT NOT NULL, error TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS webhook_dead (name TEXT NOT NULL, dead_at TEXT NOT NULL, error TEXT NOT NULL,"
    " replay BIGINT NOT NULL, seq BIGINT NOT NULL, "
    + ", ".join(f"{name} {'BIGINT' if name == 'fetch_no' else 'TEXT'} NOT NULL" for name in ChangeRow._fields)
    + ", PRIMARY KEY (name, seq))",
)


class FeedPosition(NamedTuple):
    """How far a webhook is."""

    seq: int
    """Number of the last change that is settled: delivered, left out, or a dead letter."""
    failures: int = 0
    """Failed attempts since the last success."""
    failing_since: str = ""
    """Seconds since 1970 UTC as text; empty while deliveries succeed."""
    error: str = ""
    """The last failure, in one line."""


class DeadDelivery(NamedTuple):
    """A change that was not delivered."""

    name: str
    dead_at: str
    error: str
    replay: bool
    """It waits for another delivery."""
    row: FeedRow


class WebhookStore:
    """Positions and dead letters of the webhooks. Methods raise `UserError` in one line."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._database = Database(source, _TABLES)
        self._open = self._database.open

    def close(self) -> None:
        """Close the connection; the next use opens another one."""
        self._database.close()

    def position(self, name: str) -> FeedPosition | None:
        """The position of a webhook; None before its first one."""
        query = "SELECT seq, failures, failing_since, error FROM webhook_positions WHERE name = :name"
        with self._open() as execute:
            row = execute(query, {"name": name}).fetchone()
        return FeedPosition(*row) if row is not None else None

    def begin(self, name: str, seq: int) -> FeedPosition:
        """The stored position, or this one where there is none."""
        query = "INSERT INTO webhook_positions VALUES (:name, :seq, 0, '', '') ON CONFLICT (name) DO NOTHING"
        with self._open() as execute:
            execute(query, {"name": name, "seq": seq})
        return self.position(name) or FeedPosition(seq)

    def advance(self, name: str, before: FeedPosition, seq: int) -> bool:
        """Settle the changes up to a number after a success. False: the position was changed meanwhile."""
        return self._swap(name, before, FeedPosition(seq))

    def fail(self, name: str, before: FeedPosition, after: FeedPosition) -> bool:
        """Store a failure at the same number. False: the position was changed meanwhile."""
        return self._swap(name, before, after)

    def bury(self, name: str, before: FeedPosition, after: FeedPosition, row: FeedRow, dead_at: str) -> bool:
        """Store a dead letter and the position behind it, together."""
        columns = f"name, dead_at, error, replay, seq, {_CHANGE}"
        names = ", ".join(f":{column}" for column in columns.split(", "))
        query = f"INSERT INTO webhook_dead ({columns}) VALUES ({names}) ON CONFLICT (name, seq) DO NOTHING"
        values = {"name": name, "dead_at": dead_at, "error": after.error, "replay": 0, "seq": row.seq}
        with self._open() as execute:
            if not self._swapped(execute, name, before, after):
                return False
            execute(query, {**values, **row.change._asdict()})
            return True

    def replay(self, name: str, seq: int) -> None:
        """Deliver again from behind this number. Raises `UserError` for an unknown webhook."""
        query = (
            "UPDATE webhook_positions SET seq = :seq, failures = 0, failing_since = '', error = '' WHERE name = :name"
        )
        with self._open() as execute:
            if not execute(query, {"name": name, "seq": seq}).rowcount:
                raise UserError(f"there is no webhook {name!r} here; see nephila webhooks list")

    def replay_dead(self, name: str) -> int:
        """Mark the dead letters of a webhook for another delivery; returns their number."""
        query = "UPDATE webhook_dead SET replay = 1 WHERE name = :name AND replay = 0"
        with self._open() as execute:
            return int(execute(query, {"name": name}).rowcount)

    def dead(self, name: str = "", *, replay: bool = False, limit: int = 1000) -> list[DeadDelivery]:
        """Dead letters in order; with `replay` only those that wait for another delivery."""
        terms = [*(["name = :name"] if name else []), *(["replay = 1"] if replay else [])]
        where = f"WHERE {' AND '.join(terms)}" if terms else ""
        query = (
            f"SELECT name, dead_at, error, replay, seq, {_CHANGE} FROM webhook_dead {where}"
            f" ORDER BY name, seq LIMIT {int(limit)}"
        )
        with self._open() as execute:
            rows = execute(query, {"name": name}).fetchall()
        return [
            DeadDelivery(name, at, error, bool(replay), FeedRow(seq, ChangeRow(*rest)))
            for name, at, error, replay, seq, *rest in rows
        ]

    def delivered_dead(self, name: str, seq: int) -> None:
        """A replayed dead letter was delivered."""
        with self._open() as execute:
            execute("DELETE FROM webhook_dead WHERE name = :name AND seq = :seq", {"name": name, "seq": seq})

    def dead_again(self, name: str, seq: int, error: str) -> None:
        """A replayed dead letter failed again."""
        query = "UPDATE webhook_dead SET replay = 0, error = :error WHERE name = :name AND seq = :seq"
        with self._open() as execute:
            execute(query, {"name": name, "seq": seq, "error": error})

    def positions(self) -> dict[str, tuple[FeedPosition, int]]:
        """Name → position and number of dead letters."""
        query = (
            "SELECT name, (SELECT count(*) FROM webhook_dead WHERE webhook_dead.name = webhook_positions.name),"
            " seq, failures, failing_since, error FROM webhook_positions ORDER BY name"
        )
        with self._open() as execute:
            return {name: (FeedPosition(*rest), dead) for name, dead, *rest in execute(query, {}).fetchall()}

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Hold the lock of the one sender. Raises `UserError` while another program sends."""
        with self._postgres_lock() if isinstance(self._source, str) else self._file_lock(self._source):
            yield

    def _swap(self, name: str, before: FeedPosition, after: FeedPosition) -> bool:
        with self._open() as execute:
            return self._swapped(execute, name, before, after)

    @staticmethod
    def _swapped(execute: Any, name: str, before: FeedPosition, after: FeedPosition) -> bool:
        query = (
            "UPDATE webhook_positions SET seq = :seq, failures = :failures, failing_since = :failing_since,"
            " error = :error WHERE name = :name AND seq = :old_seq AND failures = :old_failures"
        )
        values = {**after._asdict(), "name": name, "old_seq": before.seq, "old_failures": before.failures}
        return bool(execute(query, values).rowcount)

    @contextmanager
    def _file_lock(self, directory: Path) -> Iterator[None]:
        path = directory / _LOCK_FILE
        try:
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise UserError(f"cannot write {path}: {error.strerror}") from None
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise self._in_use() from None
            yield
        finally:
            os.close(lock)

    @contextmanager
    def _postgres_lock(self) -> Iterator[None]:
        require_driver()
        from nephila_stores.postgres.link import connect, translate_errors

        url = str(self._source)
        connection = connect(url)
        try:
            with translate_errors(url):
                row = connection.execute("SELECT pg_try_advisory_lock(%s, %s)", _LOCK).fetchone()
            if row is None or not row[0]:
                raise self._in_use()
            yield
        finally:
            connection.close()

    def _in_use(self) -> UserError:
        return UserError(f"another program sends the webhooks of {display_name(self._source)}")
