"""The change feed of a crawl: rows of the table `changes` behind a position. Read-only.

A position is a sequence number, the id of a change, or a time. Every function raises `UserError` in one line.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import NamedTuple

from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.storage.changes import ChangeRow
from nephila.storage.ledgers.read_connection import NoTables, ReadConnection, open_for_reading
from nephila.storage.rows import iso
from nephila.storage.source import Source

_ID = re.compile(r"[0-9a-f]{32}")
_NUMBER = re.compile(r"[0-9]{1,18}")
_COLUMNS = ", ".join(ChangeRow._fields)


class UnknownChange(UserError):
    """No change has this id."""


class FeedRow(NamedTuple):
    """One change with its position."""

    seq: int
    """Rises in the order of commits."""
    change: ChangeRow


class FeedPart(NamedTuple):
    """Some rows, and where to continue."""

    rows: list[FeedRow]
    position: int
    """Sequence number of the last row that was examined; pass it as `since` for the next part."""


def changes(
    source: Source, *, since: str = "", job: str = "", change: str = "", limit: int = 1000, newest: bool = False
) -> FeedPart:
    """The first `limit` changes behind `since`, or the last ones with `newest`, in the order of their numbers. By
    number the key serves the read; by id or time it is O(changes) once."""
    terms = ["seq > :position", *(f"{name} = :{name}" for name, value in (("job", job), ("change", change)) if value)]
    order = "DESC" if newest else "ASC"
    query = f"SELECT seq, {_COLUMNS} FROM changes WHERE {' AND '.join(terms)} ORDER BY seq {order} LIMIT {int(limit)}"
    parse_since(since)
    try:
        with open_for_reading(source) as connection:
            position = _position(connection, since)
            values = {"position": position, "job": job, "change": change}
            found = [FeedRow(seq, ChangeRow(*rest)) for seq, *rest in connection.execute(query, values)]
    except NoTables:
        return FeedPart([], 0)
    found.sort(key=lambda row: row.seq)
    return FeedPart(found, found[-1].seq if found else position)


def parse_since(text: str) -> str:
    """A time as the table has it; numbers, ids and the empty string as they are. Raises `UsageError`."""
    if not text or _NUMBER.fullmatch(text) or _ID.fullmatch(text):
        return text
    try:
        found = datetime.fromisoformat(text.strip())
        instant = iso((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        instant = ""
    if len(instant) != len("2026-11-21T09:30:00.000Z"):  # a year of another length: times are compared as texts
        raise UsageError(
            f"since {text[:100]!r} is no time, number or id of a change; say 2026-11-21, 2026-11-21T09:30:00Z, or an id"
        )
    return instant


def _position(connection: ReadConnection, since: str) -> int:
    """The sequence number behind which `since` begins."""
    since = parse_since(since)
    if not since or _NUMBER.fullmatch(since):
        return int(since or 0)
    if _ID.fullmatch(since):
        row = connection.execute("SELECT seq FROM changes WHERE id = :id", {"id": since}).fetchone()
        if row is None:
            raise UnknownChange(f"there is no change with the id {since}")
        return int(row[0])
    query = "SELECT min(seq) - 1, (SELECT max(seq) FROM changes) FROM changes WHERE at >= :since"
    first, last = connection.execute(query, {"since": since}).fetchone()
    return int(first if first is not None else last or 0)
