"""Content pages of keyword schemes in the tables `pages` and `items`, for their evaluation after a change of the
schemes. Both databases share these statements.

The report of an evaluation is a row of the table `meta`, written in the transaction of the items that it counts.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from nephila.kernel import messages as m
from nephila.kernel.stages import CONTENT
from nephila.storage.ledgers.item_parts import key_of
from nephila.storage.ledgers.read_connection import ReadConnection
from nephila.storage.rows import RowBatch

CHUNK: Final = 1000
"""Rows that one query returns."""
_REPORT: Final = "evaluation:"
"""Begin of the names of reports in `meta`; job and writer follow."""


class ScannedPage(NamedTuple):
    """A stored page; the text is not read."""

    url_key: str
    rule_version: int
    meta: str


class SchemePage(NamedTuple):
    url_key: str
    url: str
    title: str
    text: str
    meta: str
    rule: str
    rule_version: int
    fetched_at: str
    fetch_no: int
    fetch_id: str
    items: tuple[str, ...]


def scan(database: ReadConnection, job: str, after: str) -> list[ScannedPage]:
    """The next pages of a job that have a copy, in the order of their keys."""
    query = (
        "SELECT url_key, rule_version, meta FROM pages WHERE job = :job AND url_key > :after AND sha256 <> ''"
        f" ORDER BY url_key LIMIT {CHUNK}"
    )
    rows = database.execute(query, {"job": job, "after": after}).fetchall()
    return [ScannedPage(*row) for row in rows]


def read(database: ReadConnection, job: str, keys: Sequence[str]) -> list[SchemePage]:
    """These pages, at most `CHUNK`; those without a copy are left out."""
    if not keys:
        return []
    names = {f"key{number}": key for number, key in enumerate(keys)}
    listed, values = _listed(names), {"job": job, **names}
    columns = "url_key, url, title, text, meta, rule, rule_version, fetched_at, fetch_no, fetch_id"
    query = f"SELECT {columns} FROM pages WHERE job = :job AND url_key IN ({listed}) AND sha256 <> ''"
    pages = database.execute(query, values).fetchall()
    items: dict[str, list[str]] = {}
    query = f"SELECT url_key, data FROM items WHERE job = :job AND url_key IN ({listed}) ORDER BY url_key, ordinal"
    for key, data in database.execute(query, values).fetchall():
        items.setdefault(key, []).append(data)
    return [SchemePage._make((*row, tuple(items.get(row[0], ())))) for row in pages]


def finds(database: ReadConnection, job: str, keys: Sequence[str]) -> dict[str, set[str]]:
    """url_key → platforms that lead to it, of these keys."""
    platforms: dict[str, set[str]] = {}
    for start in range(0, len(keys), CHUNK):
        names = {f"key{number}": key for number, key in enumerate(keys[start : start + CHUNK])}
        query = f"SELECT url_key, platform FROM finds WHERE job = :job AND url_key IN ({_listed(names)})"
        for key, platform in database.execute(query, {"job": job, **names}).fetchall():
            platforms.setdefault(key, set()).add(platform)
    return platforms


def redirects(database: ReadConnection, job: str, keys: Sequence[str]) -> list[tuple[str, str]]:
    """(url_key, target) of those of these pages that redirect."""
    targets: list[tuple[str, str]] = []
    for start in range(0, len(keys), CHUNK):
        names = {f"key{number}": key for number, key in enumerate(keys[start : start + CHUNK])}
        query = (
            f"SELECT url_key, final_url FROM pages WHERE job = :job AND url_key IN ({_listed(names)})"
            " AND outcome = 'dropped' AND final_url <> ''"
        )
        targets += map(tuple, database.execute(query, {"job": job, **names}).fetchall())
    return targets


def write(database: ReadConnection, batch: RowBatch) -> None:
    """Write the finds, evaluated rows and reports of a batch. Its items are written like those of other pages."""
    query = (
        "UPDATE pages SET rule = :rule, rule_version = :rule_version, meta = :meta"
        " WHERE job = :job AND url_key = :url_key"
    )
    for row in batch.evaluated:
        database.execute(query, {name: value for name, value in row._asdict().items() if name != "url"})
    find = "INSERT INTO finds VALUES (:job, :key, :platform) ON CONFLICT (job, url_key, platform) DO NOTHING"
    for job, key, platform in batch.finds:
        database.execute(find, {"job": job, "key": key, "platform": platform})
    query = "INSERT INTO meta VALUES (:name, :value) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
    for (job, writer), report in batch.reports.items():
        database.execute(query, {"name": _name(job, writer), "value": report})


def report(database: ReadConnection, job: str, writer: str) -> str:
    """The report of a writer on a job, as it was written; empty without one."""
    row = database.execute("SELECT value FROM meta WHERE name = :name", {"name": _name(job, writer)}).fetchone()
    return str(row[0]) if row is not None else ""


def reports(database: ReadConnection, job: str) -> Iterable[str]:
    """The reports of all writers on a job."""
    prefix = _name(job, "")
    query = "SELECT value FROM meta WHERE substr(name, 1, :length) = :prefix ORDER BY name"
    return [row[0] for row in database.execute(query, {"prefix": prefix, "length": len(prefix)}).fetchall()]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f":{name}" for name in names)


def _name(job: str, writer: str) -> str:
    return f"{_REPORT}{job}:{writer}"


def leads_of(record: m.Record) -> list[str]:
    """url_keys of the content pages that a page of results leads to; of a redirect to a content page its target."""
    leads = bytes(record.leads)
    keys = [leads[at : at + 16].hex() for at in range(0, len(leads), 16)]
    if record.final_url and record.context is not None and record.context.stage == CONTENT:
        keys.append(key_of(record.final_url))
    return keys
