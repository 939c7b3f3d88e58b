"""The change feed of a crawl: rows of the table `changes` behind a position. Read-only.

A position is a sequence number, the id of a change, or a time. Where the rows are on several servers the feed is the
merge of their feeds: the changes of a host keep their order, and the position is a vector, a sequence number per server
with "." between them. Every function raises `UserError` in one line.
"""

import heapq
from collections.abc import Collection
from datetime import UTC, datetime
from typing import NamedTuple

from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.kernel.runtime.late_pattern import late_pattern
from nephila.storage.changes import ChangeRow
from nephila.storage.ledgers.read_connection import NoTables, ReadConnection, only_jobs, open_for_reading
from nephila.storage.rows import iso
from nephila.storage.source import Source, each

_ID = late_pattern(r"[0-9a-f]{32}")
_NUMBER = late_pattern(r"[0-9]{1,18}")
_VECTOR = late_pattern(r"[0-9]{1,18}([.][0-9]{1,18})+")
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
    source: Source,
    *,
    since: str = "",
    jobs: Collection[str] | None = None,
    change: str = "",
    limit: int = 1000,
    newest: bool = False,
) -> FeedPart:
    """The first `limit` changes of these jobs, of all for None, behind `since`, or the last ones with `newest`, in the
    order of their numbers. By number the key serves the read; by id or time it is O(changes) once."""
    condition, named = only_jobs("job", jobs)
    where = "seq > :position" + condition + (" AND change = :change" if change else "")
    order = "DESC" if newest else "ASC"
    query = f"SELECT seq, {_COLUMNS} FROM changes WHERE {where} ORDER BY seq {order} LIMIT {int(limit)}"
    parse_since(since)
    try:
        with open_for_reading(source) as connection:
            position = _position(connection, since)
            values = {"position": position, "change": change, **named}
            rows = [FeedRow(seq, ChangeRow(*rest)) for seq, *rest in connection.execute(query, values)]
    except NoTables:
        return FeedPart([], 0)
    rows.sort(key=lambda row: row.seq)
    return FeedPart(rows, rows[-1].seq if rows else position)


class FeedPage(NamedTuple):
    """Some rows of one or several servers, and where to continue."""

    rows: list[FeedRow]
    next: str
    """Pass it as `since` for the next page."""


def feed(
    source: Source,
    *,
    since: str = "",
    jobs: Collection[str] | None = None,
    change: str = "",
    limit: int = 1000,
    newest: bool = False,
) -> FeedPage:
    """As `changes`, also of several servers. Raises `UsageError` for a position of another number of servers."""
    servers = each(source)
    positions = _split(parse_since(since), len(servers))
    parts = [
        changes(server, since=position, jobs=jobs, change=change, limit=limit, newest=newest)
        for server, position in zip(servers, positions, strict=True)
    ]
    if len(parts) == 1:
        return FeedPage(parts[0].rows, str(parts[0].position))
    merged = heapq.merge(
        *(_numbered(part, number) for number, part in enumerate(parts)), key=lambda entry: entry[0].change.at
    )
    rows = list(merged)
    taken = rows[-limit:] if newest else rows[:limit]
    ends = [part.position for part in parts]
    if not newest:
        for row, number in reversed(rows[limit:]):
            ends[number] = row.seq - 1
    return FeedPage([row for row, _ in taken], ".".join(map(str, ends)))


def _numbered(part: FeedPart, number: int) -> list[tuple[FeedRow, int]]:
    return [(row, number) for row in part.rows]


def _split(since: str, servers: int) -> list[str]:
    """The position of each server."""
    if servers == 1 and not _VECTOR.fullmatch(since):
        return [since]
    if not since or not (_NUMBER.fullmatch(since) or _ID.fullmatch(since) or _VECTOR.fullmatch(since)):
        return [since] * servers
    numbers = since.split(".")
    if len(numbers) != servers:
        raise UsageError(
            f"since {since!r} is no position of {servers} servers; pass the position of the last page, or a time"
        )
    return numbers


def parse_since(text: str) -> str:
    """A time as the table has it; numbers, ids and the empty string as they are. Raises `UsageError`."""
    if not text or any(form.fullmatch(text) for form in (_NUMBER, _ID, _VECTOR)):
        return text
    try:
        moment = datetime.fromisoformat(text.strip())
        instant = iso((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
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
