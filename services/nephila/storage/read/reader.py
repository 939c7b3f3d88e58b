"""Queries on the database of a finished or running crawl; read-only.

Each function opens the database, in a directory or on a server. It raises `UserError` in one line if there is no
database to read.
"""

from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from nephila.kernel.pages.shells import SHELL
from nephila.kernel.reasons.table import Reason
from nephila.storage.ledgers.read_connection import NoTables, open_for_reading
from nephila.storage.ledgers.schema import HISTORY
from nephila.storage.read.steps import JOBS, OF_ANY_JOB
from nephila.storage.rows import COLUMNS, STORED_COLUMNS, Row
from nephila.storage.sinks.jsonl import json_object
from nephila.storage.source import Source

REQUISITE: Final = str(Reason.REQUISITE)
"""Stands for an outcome in counts: a requisite in the archive ends as dropped, and nothing of it was dropped."""
LINKS_LEFT_OUT: Final = "links_left_out"
"""Entry of the metadata of a page with more links than the limit."""


class HostCount(msgspec.Struct):
    """Rows of one host."""

    host: str
    outcomes: dict[str, int] = msgspec.field(default_factory=dict)

    @property
    def total(self) -> int:
        """Number of rows of all outcomes."""
        return sum(self.outcomes.values())

    @property
    def others(self) -> int:
        """Rows that are neither stored pages nor their requisites."""
        return self.total - self.outcomes.get("stored", 0) - self.outcomes.get(REQUISITE, 0)


class Summary(msgspec.Struct):
    """The results of a crawl."""

    outcomes: dict[str, int]
    """Rows by outcome, and `REQUISITE`."""
    reasons: dict[str, dict[str, int]]
    """Outcome → reason → rows; the reason of an ordinary stored page is empty."""
    hosts: list[HostCount]
    """The hosts with the most rows, largest first."""
    hosts_total: int
    """Number of all hosts."""
    bytes: int
    """Decoded bytes of the stored pages."""
    items: dict[str, int] = msgspec.field(default_factory=dict)
    """Rule → number of its items."""
    links_left_out: tuple[int, int] = (0, 0)
    """Pages with more links than the limit, and the number of links left out."""
    shells: int = 0
    """Stored pages that look as if a browser had to render them (meta.shell)."""
    near_copies: int = 0
    """Rows whose text is nearly that of another page, stored or not."""


def summary(source: Source, job: str | None = None, top: int = 20) -> Summary:
    """Counts of a crawl, or of one of its jobs. Reads all rows once, without their overflow pages: about 0.3 s per
    100,000 rows."""
    where = "WHERE job = :job" if job is not None else ""
    # Hosts are distinguished by the first four bytes of url_key, MD5 of the host key; two hosts in a million collide.
    query = f"""
        SELECT substr(url_key, 1, 8), outcome, reason, count(*), CAST(sum(bytes) AS bigint), min(url),
            sum(CASE WHEN near_copy_of = '' THEN 0 ELSE 1 END), {_stored_with(SHELL)}, {_stored_with(LINKS_LEFT_OUT)}
        FROM pages {where} GROUP BY 1, 2, 3
    """
    result = Summary({}, {}, [], 0, 0)
    hosts: dict[str, HostCount] = {}
    limited = 0
    with open_for_reading(source) as connection:
        for prefix, outcome, reason, rows, size, url, near, shells, left_out in connection.execute(query, {"job": job}):
            if reason == REQUISITE:
                outcome, reason = REQUISITE, ""
            result.outcomes[outcome] = result.outcomes.get(outcome, 0) + rows
            reasons = result.reasons.setdefault(outcome, {})
            reasons[reason] = reasons.get(reason, 0) + rows
            result.near_copies += int(near)
            result.shells += int(shells)
            limited += int(left_out)
            result.bytes += size if outcome == "stored" else 0
            host = hosts.get(prefix)
            if host is None:
                host = hosts[prefix] = HostCount(_host(url))
            host.outcomes[outcome] = host.outcomes.get(outcome, 0) + rows
        items = f"SELECT rule, count(*) FROM items {where} GROUP BY rule ORDER BY rule"
        result.items = dict(connection.execute(items, {"job": job}).fetchall())
        if limited:
            result.links_left_out = _links_left_out(connection, job)
    result.hosts = sorted(hosts.values(), key=lambda count: (-count.total, count.host))[:top]
    result.hosts_total = len(hosts)
    return result


def _stored_with(entry: str) -> str:
    """The number of stored rows of a group whose metadata has an entry, as SQL."""
    return f"sum(CASE WHEN outcome = 'stored' AND meta LIKE '%\"{entry}\"%' THEN 1 ELSE 0 END)"


def links_left_out(source: Source, job: str | None = None) -> tuple[int, int]:
    """Pages of a job, or of all jobs, with more links than the limit, and the number of links left out. Reads all rows;
    (0, 0) also if no crawl has written yet."""
    try:
        with open_for_reading(source) as connection:
            return _links_left_out(connection, job)
    except NoTables:
        return 0, 0


def _links_left_out(connection: Any, job: str | None) -> tuple[int, int]:
    where = "AND job = :job" if job is not None else ""
    query = f"SELECT meta FROM pages WHERE outcome = 'stored' AND meta LIKE '%\"{LINKS_LEFT_OUT}\"%' {where}"
    metas = [json_object(meta) for (meta,) in connection.execute(query, {"job": job})]
    values = [str(meta.get(LINKS_LEFT_OUT, "")) for meta in metas if isinstance(meta, dict)]
    counts = [int(text) for text in values if text.isdecimal()]
    return len(counts), sum(counts)


def count(source: Source, outcome: str | None = None, job: str | None = None) -> int:
    """Number of rows of an outcome and a job, or of all rows."""
    terms = {name: value for name, value in (("outcome", outcome), ("job", job)) if value is not None}
    where = " AND ".join(f"{name} = :{name}" for name in terms)
    query = "SELECT count(*) FROM pages" + (f" WHERE {where}" if where else "")
    with open_for_reading(source) as connection:
        (rows,) = connection.execute(query, terms).fetchone()
        return int(rows)


def holds(source: Source, job: str) -> bool:
    """Whether the job has rows; False also if no crawl has written yet."""
    try:
        with open_for_reading(source) as connection:
            query = "SELECT 1 FROM pages WHERE job = :job LIMIT 1"
            return connection.execute(query, {"job": job}).fetchone() is not None
    except NoTables:
        return False


def row(source: Source, job: str | None, url_key: bytes) -> dict[str, Any] | None:
    """The row of a URL with all columns, of one job or of the job that fetched it last; None if there is none."""
    before, of_job = ("", "job = :job") if job is not None else (JOBS, OF_ANY_JOB)
    values = {"key": url_key.hex(), **({"job": job} if job is not None else {})}
    columns = ", ".join(COLUMNS)
    query = f"{before} SELECT {columns} FROM pages WHERE {of_job} AND url_key = :key ORDER BY fetched_at DESC LIMIT 1"
    with open_for_reading(source) as connection:
        columns_of_row = connection.execute(query, values).fetchone()
        return dict(zip(COLUMNS, columns_of_row, strict=True)) if columns_of_row else None


def stored_row(source: Source, url_key: bytes) -> Row | None:
    """The row of a URL, of the job that fetched it last, in the order of `STORED_COLUMNS`."""
    columns = ", ".join(STORED_COLUMNS)
    query = f"{JOBS} SELECT {columns} FROM pages WHERE {OF_ANY_JOB} AND url_key = :key ORDER BY fetched_at DESC LIMIT 1"
    with open_for_reading(source) as connection:
        first: Row | None = connection.execute(query, {"key": url_key.hex()}).fetchone()
        return first


def history(source: Source, job: str, url_key: bytes) -> list[dict[str, Any]]:
    """All ended fetches of a URL, in order. O(its fetches); in a nephila.db that was last written by a program without
    the index O(fetches), 0.1 s per million."""
    # With `url_key = :key` SQLite would put the key into the expression of the index, and read all fetches.
    of_key = f"{HISTORY} = :part AND url_key BETWEEN :key AND :key"
    query = f"SELECT * FROM fetches WHERE {of_key} AND job = :job ORDER BY id"
    with open_for_reading(source) as connection:
        cursor = connection.execute(query, {"job": job, "key": url_key.hex(), "part": url_key.hex()[8:16]})
        names = [column[0] for column in cursor.description or ()]
        return [dict(zip(names, entry, strict=True)) for entry in cursor]


def _host(url: str) -> str:
    try:
        return urlsplit(url).netloc.rpartition("@")[2].lower() or url
    except ValueError:
        return url
