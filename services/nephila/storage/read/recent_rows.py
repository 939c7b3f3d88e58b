"""Rows for screens: a page of rows with filters, one row with all that belongs to it, a page of items. Read-only.

Invariant: a query looks at no more than `LOOKED_AT` fetches or items, however many rows there are, and says where it
stopped. Rows are found by the table `fetches`, whose rows are short and in the order of time; the newest come first.
On PostgreSQL `fetches` has no index on `id`: there a page of rows costs a scan of that table.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

from nephila.storage.ledgers.read_connection import NoTables, ReadConnection, only_jobs, open_for_reading
from nephila.storage.rows import COLUMNS
from nephila.storage.source import Source

LOOKED_AT: Final = 200_000
"""Fetches of one query without a search: some 50 ms."""
SEARCHED: Final = 20_000
"""Fetches of one query whose rows are searched: some 100 ms."""
LINKS: Final = 500
"""Links of one page that are listed."""
ITEMS: Final = 100
"""Items of one page that are listed."""
TEXT_CHARS: Final = 200_000
"""Characters of a text that are listed."""
ROW: Final = (
    *("url", "url_key", "job", "outcome", "reason", "status", "title", "content_type", "bytes", "depth"),
    *("fetched_at", "fetch_no", "change"),
)
"""Columns of a row in a list."""


class FoundRows(NamedTuple):
    """Some rows, the newest first."""

    rows: list[dict[str, Any]]
    next: int
    """Pass it as `before` for older ones; 0: there are none."""


class StoredRow(NamedTuple):
    """One URL with all that is stored about it."""

    row: dict[str, Any]
    text_chars: int
    """Of the whole text; `row` has TEXT_CHARS of it at most."""
    links: list[tuple[str, str, str]]
    """(URL, text of the link, outcome of its row or the empty string)."""
    items: list[tuple[str, int, str]]
    """(rule, version, JSON)."""
    previous: dict[str, Any] | None
    """The text before the last change."""


class FoundItem(NamedTuple):
    """A row of the table `items`, with URL and title of its page."""

    job: str
    url_key: str
    rule: str
    ordinal: int
    rule_version: int
    data: str
    url: str


class FoundItems(NamedTuple):
    """Some items in the order of the key."""

    items: list[FoundItem]
    next: str
    """Pass it as `after` for more; empty: these were the last."""


def rows(
    source: Source,
    *,
    jobs: Collection[str] | None = None,
    outcome: str = "",
    reason: str = "",
    search: str = "",
    before: int = 0,
    limit: int = 50,
) -> FoundRows:
    """The newest rows of these jobs, of all for None, behind `before`. A URL is listed once, at its newest fetch.
    `search`: part of the URL or of the title; letters of ASCII in any case. Fewer rows than `limit` may be found
    although older ones follow: see `next`."""
    terms = {name: value for name, value in (("outcome", outcome), ("reason", reason)) if value}
    try:
        with open_for_reading(source) as connection:
            return _rows(connection, jobs, terms, search, before, limit)
    except NoTables:
        return FoundRows([], 0)


def _rows(
    connection: ReadConnection,
    jobs: Collection[str] | None,
    terms: Mapping[str, str],
    search: str,
    before: int,
    limit: int,
) -> FoundRows:
    first, last = connection.execute("SELECT min(id), max(id) FROM fetches", {}).fetchone()
    if last is None:
        return FoundRows([], 0)
    top = min(before, last + 1) if before else last + 1
    floor = max(top - (SEARCHED if search else LOOKED_AT), first)
    condition, named = only_jobs("f.job", jobs)
    where = condition + "".join(f" AND f.{name} = :{name}" for name in terms)
    values: dict[str, Any] = {**named, **terms, "top": top, "floor": floor, "limit": limit}
    if search:
        where += f" AND ({_contains('p.url')} OR {_contains('p.title')})"
        values["part"] = _pattern(search)
    query = (
        f"SELECT f.id, {', '.join(f'p.{name}' for name in ROW)} FROM fetches AS f"
        " JOIN pages AS p ON p.job = f.job AND p.url_key = f.url_key AND p.fetch_no = f.fetch_no"
        f" WHERE f.id >= :floor AND f.id < :top{where} ORDER BY f.id DESC LIMIT :limit"
    )
    found = connection.execute(query, values).fetchall()
    end = found[-1][0] if len(found) == limit else floor
    return FoundRows([dict(zip(ROW, row[1:], strict=True)) for row in found], end if end > first else 0)


def _contains(column: str) -> str:
    return f"lower({column}) LIKE :part ESCAPE '\\'"


def _pattern(search: str) -> str:
    """For LIKE; the letters of ASCII in lower case."""
    return "%" + "".join(f"\\{c}" if c in "\\%_" else c.lower() if c.isascii() else c for c in search) + "%"


def stored_row(source: Source, job: str, keys: list[bytes]) -> StoredRow | None:
    """All that is stored about a URL, by the first of its keys that has a row, of one job or, for the empty string, of
    the job that fetched it last. None without a row."""
    try:
        with open_for_reading(source) as connection:
            return next((found for key in keys if (found := _stored(connection, job, key.hex())) is not None), None)
    except NoTables:
        return None


def _stored(connection: ReadConnection, job: str, key: str) -> StoredRow | None:
    only = "job = :job AND " if job else ""
    names = COLUMNS[:-1]
    query = (
        f"SELECT {', '.join(names)}, substr(text, 1, {TEXT_CHARS}), length(text) FROM pages"
        f" WHERE {only}url_key = :key ORDER BY fetched_at DESC LIMIT 1"
    )
    found = connection.execute(query, {"job": job, "key": key}).fetchone()
    if found is None:
        return None
    row = dict(zip((*names, "text"), found[:-1], strict=True))
    values = {"job": row["job"], "key": key}
    links = connection.execute(
        "SELECT l.to_url, l.anchor, coalesce(p.outcome, '') FROM (SELECT * FROM links WHERE job = :job AND"
        f" from_key = :key LIMIT {LINKS}) AS l LEFT JOIN pages AS p ON p.job = l.job AND p.url_key = l.to_key",
        values,
    ).fetchall()
    items = connection.execute(
        "SELECT rule, rule_version, data FROM items WHERE job = :job AND url_key = :key"
        f" ORDER BY rule, ordinal LIMIT {ITEMS}",
        values,
    ).fetchall()
    columns = ("fetch_no", "changed_at", "fetched_at", "title", "text")
    previous = connection.execute(
        f"SELECT fetch_no, changed_at, fetched_at, title, substr(text, 1, {TEXT_CHARS}) FROM previous"
        " WHERE job = :job AND url_key = :key",
        values,
    ).fetchone()
    return StoredRow(
        row,
        int(found[-1]),
        [tuple(link) for link in links],
        [tuple(item) for item in items],
        dict(zip(columns, previous, strict=True)) if previous is not None else None,
    )


def items(
    source: Source, *, job: str = "", rule: str = "", search: str = "", after: str = "", limit: int = 50
) -> FoundItems:
    """Items behind a key, in its order: job, page, rule, number. `search`: part of the data. Raises `ValueError` for
    an `after` that is no key."""
    start = _key_of(after)
    try:
        with open_for_reading(source) as connection:
            return _items(connection, job, rule, search, start, limit)
    except NoTables:
        return FoundItems([], "")


def _key_of(after: str) -> tuple[str, str, str, int]:
    if not after:
        return "", "", "", -1
    found = json.loads(after)
    if not isinstance(found, list) or [type(one) for one in found] != [str, str, str, int]:
        raise ValueError(after)
    return found[0], found[1], found[2], found[3]


def _items(
    connection: ReadConnection, job: str, rule: str, search: str, start: tuple[str, str, str, int], limit: int
) -> FoundItems:
    # With a job the walk begins at its first item and ends at its last one: the key begins with the job.
    if job and start[0] < job:
        start = (job, "", "", -1)
    only = "AND job = :only" if job else ""
    walk = (
        "SELECT job, url_key, rule, ordinal, rule_version, data FROM items WHERE (job, url_key, rule, ordinal) >"
        f" (:job, :key, :after_rule, :ordinal) {only} ORDER BY job, url_key, rule, ordinal LIMIT :most"
    )
    where = "".join((" AND i.rule = :rule" if rule else "", f" AND {_contains('i.data')}" if search else ""))
    query = (
        f"SELECT i.job, i.url_key, i.rule, i.ordinal, i.rule_version, i.data, p.url FROM ({walk}) AS i"
        f" JOIN pages AS p ON p.job = i.job AND p.url_key = i.url_key WHERE 1 = 1{where}"
        " ORDER BY i.job, i.url_key, i.rule, i.ordinal LIMIT :limit"
    )
    values: dict[str, Any] = {
        **dict(zip(("job", "key", "after_rule", "ordinal"), start, strict=True)),
        "only": job,
        "rule": rule,
        "limit": limit,
        "most": SEARCHED if rule or search else limit,
    }
    if search:
        values["part"] = _pattern(search)
    found = [FoundItem(*row) for row in connection.execute(query, values).fetchall()]
    if len(found) == limit:
        last: tuple[Any, ...] | None = found[-1][:4]
    else:
        ends = f"SELECT job, url_key, rule, ordinal FROM ({walk}) AS w ORDER BY 1 DESC, 2 DESC, 3 DESC, 4 DESC LIMIT 1"
        reached = connection.execute(f"SELECT count(*) FROM ({walk}) AS w", values).fetchone()[0]
        last = connection.execute(ends, values).fetchone() if reached == values["most"] else None
    return FoundItems(found, json.dumps(list(last), ensure_ascii=False) if last is not None else "")


def rules_of_items(source: Source, job: str = "") -> list[str]:
    """Names of the rules that have items, of one job or of all, by a walk of `SEARCHED` items at most."""
    try:
        with open_for_reading(source) as connection:
            only = " WHERE job = :job" if job else ""
            query = f"SELECT DISTINCT rule FROM (SELECT rule FROM items{only} LIMIT {SEARCHED}) AS i ORDER BY rule"
            return [rule for (rule,) in connection.execute(query, {"job": job}).fetchall()]
    except NoTables:
        return []
