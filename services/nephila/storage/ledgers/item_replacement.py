"""Replaces the items of stored pages in nephila.db, for rules that are applied again.

Invariants: the items of a page are replaced together with rule and rule_version of its row; the caller holds the lock
of the directory, or checks in the same transaction that the copy is still the one that was read (`copies`).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
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
        query = "SELECT sha256 FROM pages WHERE url_key = ? AND sha256 != '' AND job = ?"
        # The primary key begins with the job: list the jobs, then look up the key in each.
        jobs = [job for (job,) in self._db.execute("SELECT DISTINCT job FROM pages")]
        rows = {job: self._db.execute(query, (key, job)).fetchone() for job in jobs}
        return {job: str(row[0]) for job, row in rows.items() if row}

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
