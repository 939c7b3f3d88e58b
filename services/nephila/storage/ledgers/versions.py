"""The table `previous`: the text of a page before its present one, for comparisons.

One row per changed page, replaced at the next change. The database itself writes it in the transaction that brings the
new text (docs/adr/0006).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from nephila.storage.ledgers.read_connection import open_for_reading
from nephila.storage.source import Source

_COLUMNS: Final = ("fetch_no", "changed_at", "fetched_at", "title", "text")
_NAMES: Final = ", ".join(_COLUMNS)
INTO: Final = f"INSERT INTO previous (job, url_key, {_NAMES}) SELECT job, url_key, {_NAMES} FROM pages"
ON_CONFLICT: Final = "ON CONFLICT (job, url_key) DO UPDATE SET " + ", ".join(
    f"{name} = excluded.{name}" for name in _COLUMNS
)


class Version(NamedTuple):
    """One text of a page."""

    fetch_no: int
    changed_at: str
    """First fetch of this text, ISO 8601."""
    fetched_at: str
    """Last fetch or confirmation of this text."""
    title: str
    text: str


class PageVersions(NamedTuple):
    """The stored versions of a page."""

    url: str
    job: str
    now: Version
    before: Version | None


def versions(source: Source, job: str | None, url_key: bytes) -> PageVersions | None:
    """The stored versions of a URL, of one job or of the job that fetched it last; None without a stored page."""
    only = " AND job = :job" if job is not None else ""
    values = {"key": url_key.hex(), "job": job}
    query = (
        f"SELECT url, job, {_NAMES} FROM pages WHERE url_key = :key AND sha256 != ''{only}"
        " ORDER BY fetched_at DESC LIMIT 1"
    )
    with open_for_reading(source) as connection:
        row = connection.execute(query, values).fetchone()
        if row is None:
            return None
        query = f"SELECT {_NAMES} FROM previous WHERE job = :job AND url_key = :key"
        before = connection.execute(query, {"key": url_key.hex(), "job": row[1]}).fetchone()
        return PageVersions(row[0], row[1], Version(*row[2:]), Version(*before) if before else None)
