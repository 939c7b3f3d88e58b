"""Replaces the items of stored pages in nephila.db, for rules that are applied again.

Invariants: the items of a page are replaced together with rule and rule_version of its row; the caller holds the lock
of the directory, or checks in the same transaction that the copy is still the one that was read (`copies`).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from nephila import __version__
from nephila.kernel.reasons.table import Reason
from nephila.kernel.runtime.errors import UserError
from nephila.storage.faults import sqlite_fault
from nephila.storage.ledgers import item_parts
from nephila.storage.ledgers.read_connection import ReadConnection
from nephila.storage.ledgers.schema import DATABASE, holds_tables, prepare
from nephila.storage.rows import Items, item_rows


class ItemReplacement:
    """nephila.db of a directory, opened to replace items. A context manager: one transaction."""

    def __init__(self, directory: Path, *, write: bool) -> None:
        self._path = directory / DATABASE
        self._write = write
        if not self._path.is_file():
            raise UserError(f"no database at {self._path}; is {directory} the output directory of a crawl?")
        self._db = sqlite3.connect(
            f"{self._path.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None, timeout=30
        )
        self._reading = ReadConnection(self._db)

    def __enter__(self) -> ItemReplacement:
        try:
            if self._write:
                prepare(self._db, self._path, f"nephila {__version__}")
            else:
                holds_tables(self._db, self._path)
            self._db.execute("BEGIN IMMEDIATE" if self._write else "BEGIN")
        except BaseException:
            self._db.close()
            raise
        return self

    def __exit__(self, kind: object, error: object, at: object) -> None:
        try:
            self._db.execute("COMMIT" if kind is None else "ROLLBACK")
        except sqlite3.Error as fault:
            raise sqlite_fault(fault, self._path) from fault
        finally:
            self._db.close()

    def copies(self, key: str) -> dict[str, str]:
        """Returns job → sha256, for each job that has a copy of a page."""
        return {job: sha256 for job in self._jobs if (sha256 := self.copy(job, key))}

    @cached_property
    def _jobs(self) -> list[str]:
        """The jobs with pages. The primary key of pages begins with the job, so a key is looked up in each. They are
        read once, since the transaction sees no other."""
        return [job for (job,) in self._db.execute("SELECT DISTINCT job FROM pages")]

    def copy(self, job: str, key: str) -> str:
        """Returns the sha256 of the copy of a page that a job has; an empty string if it has none."""
        row = self._db.execute("SELECT sha256 FROM pages WHERE job = ? AND url_key = ?", (job, key)).fetchone()
        return str(row[0]) if row else ""

    def of_page(self, job: str, key: str) -> list[Any]:
        """The items of a page as values."""
        query = "SELECT data FROM items WHERE job = ? AND url_key = ? ORDER BY rule, ordinal"
        return [json.loads(data) for (data,) in self._db.execute(query, (job, key))]

    def target(self, job: str, url: str) -> str:
        """The target of a URL's redirect; "" if it has none."""
        query = (
            "SELECT final_url FROM pages WHERE job = ? AND url_key = ? AND outcome = 'dropped'"
            f" AND reason = '{Reason.REDIRECT}'"
        )
        row = self._db.execute(query, (job, item_parts.key_of(url))).fetchone()
        return str(row[0]) if row else ""

    def put(self, job: str, key: str, rule: str, version: int, data: Sequence[str]) -> None:
        items = Items(rule, version, tuple(data), "")
        self._db.execute("DELETE FROM items WHERE job = ? AND url_key = ?", (job, key))
        self._db.executemany("INSERT INTO items VALUES (?, ?, ?, ?, ?, ?)", item_rows({(job, key): items}))
        # These notes of the parser describe the replaced items.
        meta = "CASE WHEN json_valid(meta) THEN json_remove(meta, '$.degraded', '$.items_left_out') ELSE meta END"
        self._db.execute(
            f"UPDATE pages SET rule = ?, rule_version = ?, meta = {meta} WHERE job = ? AND url_key = ?",
            (rule, version, job, key),
        )
        item_parts.put(self._reading, job, key, items)
        item_parts.settle(self._reading, job, key)
