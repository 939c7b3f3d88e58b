"""Statements that write pages and fetches in PostgreSQL, for tables with and without partitions by day.

With partitions the column `day` comes after all others and is part of each key; the table `page_keys` then holds what a
flush looks up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from nephila.storage.changes import AWAY, DEAD_LETTER
from nephila.storage.ledgers.schema import BLOBS, INTEGERS
from nephila.storage.ledgers.versions import INTO, ON_CONFLICT
from nephila.storage.rows import STORED_COLUMNS

DAY: Final = "day"
_NUMBERS: Final = INTEGERS | {"attempt", "ordinal"}
_HISTORY_COLUMNS: Final = (
    *("job", "url_key", "fetch_no", "outcome", "reason", "status", "fetched_at", "bytes", "sha256", "change"),
    *("text_hash", "attempt", "old_hash"),
)
_GUARD: Final = " WHERE excluded.fetch_no >= pages.fetch_no"
_FETCH: Final = (
    ", ".join(
        f"{name} = excluded.{name}" for name in ("outcome", "status", "final_url", "fetched_at", "fetch_id", "fetch_no")
    )
    + f", change = CASE WHEN excluded.change = '' AND pages.change IN {AWAY} THEN pages.change ELSE excluded.change END"
)
"""Columns of a fetch that brought no copy. A page stays away until a fetch brings it: a time-out is no statement."""
_STORED: Final = (
    f"fetch_no, outcome, sha256 <> '', text_hash, first_at, changed_at, change IN {AWAY}, reason = '{DEAD_LETTER}'"
)


class Statements(NamedTuple):
    """The statements of one layout; rows are passed as one array per column."""

    durable: str
    keep_previous: str
    upsert: str
    not_modified: str
    copy_kept: str
    history: str


def arrays(names: Sequence[str]) -> str:
    """Arrays of columns as a table."""
    return f"unnest({', '.join(map(_array, names))})"


def _array(name: str) -> str:
    kind = "bigint" if name in _NUMBERS else "date" if name == DAY else "bytea" if name in BLOBS else "text"
    return f"%s::{kind}[]"


def statements(*, by_day: bool) -> Statements:
    """The statements of a layout."""
    day = (DAY,) if by_day else ()
    columns, key = (*STORED_COLUMNS, *day), ("job", "url_key", *day)
    insert = (
        f"INSERT INTO pages ({', '.join(columns)}) SELECT * FROM {arrays(columns)}"
        f" ON CONFLICT ({', '.join(key)}) DO UPDATE SET "
    )
    history, history_key = (*_HISTORY_COLUMNS, *day), ("job", "url_key", "fetch_no", *day)
    stored = "page_keys" if by_day else "pages"
    looked_up = "fetch_no, outcome, copy, text_hash, first_at, changed_at, gone, dead_letter, day::text"
    return Statements(
        durable=f"SELECT url_key, {looked_up if by_day else _STORED} FROM {stored}"
        " WHERE job = %s AND url_key = ANY (%s::text[])",
        keep_previous=f"{INTO} WHERE ({', '.join(key)}) IN (SELECT * FROM {arrays(key)}) {ON_CONFLICT}",
        upsert=insert + _set(columns, key) + _GUARD,
        not_modified=f"{insert}{_FETCH}, reason = CASE pages.sha256 WHEN '' THEN excluded.reason ELSE '' END{_GUARD}",
        copy_kept=f"{insert}{_FETCH}, reason = excluded.reason{_GUARD}",
        history=f"INSERT INTO fetches ({', '.join(history)}) SELECT * FROM {arrays(history)}"
        f" ON CONFLICT ({', '.join(history_key)}) DO UPDATE SET {_set(history, history_key)}"
        f" WHERE fetches.reason = '{DEAD_LETTER}'",
    )


def _set(columns: Sequence[str], key: Sequence[str]) -> str:
    return ", ".join(f"{name} = excluded.{name}" for name in columns if name not in key)
