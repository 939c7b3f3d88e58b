"""Rows for screens: a page of rows with filters, one row with all that belongs to it. Read-only.

Invariant: a query looks at no more than `LOOKED_AT` fetches, however many rows there are, and says where it
stopped. Rows are found by the table `fetches`, whose rows are short and in the order of time; the newest come first.
On PostgreSQL `fetches` has no index on `id`: there a page of rows costs a scan of that table.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

from nephila.storage.ledgers.read_connection import NoTables, ReadConnection, only_jobs, open_for_reading
from nephila.storage.read.steps import JOBS, OF_ANY_JOB, SPAN
from nephila.storage.rows import COLUMNS
from nephila.storage.source import Source

from nephila_control.rows.patterns import contains, pattern

LOOKED_AT: Final = 200_000
"""Fetches of one query without a search: some 50 ms."""
SEARCHED: Final = 20_000
"""Fetches of one query whose rows are searched: some 100 ms."""
LINKS: Final = 500
"""Links of one page, or to one page, that are listed."""
LINKS_LOOKED_AT: Final = 300_000
"""Links of one query for those that lead to a page: some 100 ms. The table has no index on targets, since a page has
some fifty links and each would be a write at a random place."""
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
    first, last = connection.execute(SPAN, {}).fetchone()
    if last is None:
        return FoundRows([], 0)
    top = min(before, last + 1) if before else last + 1
    floor = max(top - (SEARCHED if search else LOOKED_AT), first)
    condition, named = only_jobs("f.job", jobs)
    where = condition + "".join(f" AND f.{name} = :{name}" for name in terms)
    values: dict[str, Any] = {**named, **terms, "top": top, "floor": floor, "limit": limit}
    if search:
        where += f" AND ({contains('p.url')} OR {contains('p.title')})"
        values["part"] = pattern(search)
    query = (
        f"SELECT f.id, {', '.join(f'p.{name}' for name in ROW)} FROM fetches AS f"
        " JOIN pages AS p ON p.job = f.job AND p.url_key = f.url_key AND p.fetch_no = f.fetch_no"
        f" WHERE f.id >= :floor AND f.id < :top{where} ORDER BY f.id DESC LIMIT :limit"
    )
    rows = connection.execute(query, values).fetchall()
    end = rows[-1][0] if len(rows) == limit else floor
    return FoundRows([dict(zip(ROW, row[1:], strict=True)) for row in rows], end if end > first else 0)


def stored_row(source: Source, job: str, keys: list[bytes]) -> StoredRow | None:
    """All that is stored about a URL, by the first of its keys that has a row, of one job or, for the empty string, of
    the job that fetched it last. None without a row."""
    try:
        with open_for_reading(source) as connection:
            return next((row for key in keys if (row := _stored(connection, job, key.hex())) is not None), None)
    except NoTables:
        return None


def _stored(connection: ReadConnection, job: str, key: str) -> StoredRow | None:
    only = "job = :job" if job else OF_ANY_JOB
    names = COLUMNS[:-1]
    query = (
        f"{'' if job else JOBS} SELECT {', '.join(names)}, substr(text, 1, {TEXT_CHARS}), length(text) FROM pages"
        f" WHERE {only} AND url_key = :key ORDER BY fetched_at DESC LIMIT 1"
    )
    values_of_row = connection.execute(query, {"job": job, "key": key}).fetchone()
    if values_of_row is None:
        return None
    row = dict(zip((*names, "text"), values_of_row[:-1], strict=True))
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
        int(values_of_row[-1]),
        [tuple(link) for link in links],
        [tuple(item) for item in items],
        dict(zip(columns, previous, strict=True)) if previous is not None else None,
    )


class FoundLinks(NamedTuple):
    """Links that lead to a page."""

    links: list[tuple[str, str, str]]
    """(URL of the page with the link, text of the link, outcome of that page)."""
    complete: bool
    """All links were looked at, and no more than LINKS lead there."""


def links_to(source: Source, jobs: Collection[str] | None, keys: list[bytes]) -> FoundLinks:
    """Links to a URL, by its keys, among the first `LINKS_LOOKED_AT` links of all jobs. `jobs`: of these; None: of
    all."""
    only, named = only_jobs("l.job", jobs)
    names = {f"key{number}": key.hex() for number, key in enumerate(keys)}
    looked_at = f"(SELECT job, from_key, to_key, anchor FROM links LIMIT {LINKS_LOOKED_AT})"
    query = (
        f"SELECT p.url, l.anchor, p.outcome FROM {looked_at} AS l JOIN pages AS p ON p.job = l.job AND"
        f" p.url_key = l.from_key WHERE l.to_key IN ({', '.join(f':{name}' for name in names)}){only} LIMIT {LINKS}"
    )
    more = f"SELECT count(*) FROM (SELECT 1 FROM links LIMIT {LINKS_LOOKED_AT + 1}) AS l"
    try:
        with open_for_reading(source) as connection:
            rows = [tuple(row) for row in connection.execute(query, {**named, **names}).fetchall()]
            (links,) = connection.execute(more, {}).fetchone()
    except NoTables:
        return FoundLinks([], True)
    return FoundLinks(rows, links <= LINKS_LOOKED_AT and len(rows) < LINKS)
