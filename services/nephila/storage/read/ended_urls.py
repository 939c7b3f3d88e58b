"""Rows of ended URLs as `UrlState` messages, for fetching them again; and links without a row.

Rows are read without their texts: about 1 s per 100,000. Each chunk is read in a transaction of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

from nephila.kernel.messages import Outcome, Render, UrlState
from nephila.kernel.pages.requisites import context_of
from nephila.kernel.reasons.table import Reason
from nephila.storage.ledgers.read_connection import ReadConnection, open_for_reading
from nephila.storage.rows import OUTCOMES
from nephila.storage.source import Source


def _ended(reason: Reason) -> str:
    outcome = reason.ended.partition("(")[0]
    return f"outcome = '{outcome}' AND reason = '{reason}'"


ROW_KINDS: Final = {
    "failed": "outcome = 'failed'",
    Reason.ADDRESS.ended: _ended(Reason.ADDRESS),
    # Attempt 0: the page was not requested, since its robots.txt was unavailable.
    Reason.ROBOTS.ended: f"({_ended(Reason.ROBOTS)} OR outcome = 'failed' AND fetch_id LIKE '%-0')",
    Reason.EXCLUDED.ended: _ended(Reason.EXCLUDED),
    Reason.CONTENT_TYPE.ended: _ended(Reason.CONTENT_TYPE),
    Reason.TOO_LARGE.ended: _ended(Reason.TOO_LARGE),
    Reason.TRAP.ended: _ended(Reason.TRAP),
    Reason.TLS.ended: _ended(Reason.TLS),
    "copies": "sha256 != '' AND status NOT IN (404, 410)",
    "all": f"NOT (outcome = 'dropped' AND reason IN ('{Reason.EXCLUDED}', '{Reason.TRAP}'))",
}
"""Name of a kind of rows → its condition."""
_COLUMNS: Final = (
    *("url_key", "url", "depth", "outcome", "status", "fetch_no", "fetched_at", "first_at", "changed_at"),
    *("text_hash", "etag", "last_modified", "sha256"),
)
_NOTE: Final = "CASE WHEN outcome = 'stored' THEN '' ELSE meta END AS note"
"""Metadata of a row without a page."""
_NAMES: Final = (*_COLUMNS, "note")
_BATCH_ROWS: Final = 1000
_NUMBERS: Final = {name: Outcome(number) for number, name in enumerate(OUTCOMES)}
_GONE: Final = (404, 410)


def ended(source: Source, job: str, kinds: Iterable[str]) -> Iterator[UrlState]:
    """The rows of these kinds, each once; `kinds` are names in `ROW_KINDS`."""
    where = " OR ".join(f"({ROW_KINDS[kind]})" for kind in kinds)
    with open_for_reading(source) as connection:
        for row in _walk(connection, job, where):
            yield _state(job, dict(zip(_NAMES, row, strict=True)))


def outcomes(source: Source, job: str) -> Iterator[tuple[bytes, str, Outcome]]:
    """(url_key, URL, how it has ended) of each row of a job."""
    with open_for_reading(source) as connection:
        for row in _walk(connection, job, "1 = 1"):
            values = dict(zip(_NAMES, row, strict=True))
            yield bytes.fromhex(values["url_key"]), values["url"], _NUMBERS[values["outcome"]]


def _walk(connection: ReadConnection, job: str, where: str) -> Iterator[tuple[Any, ...]]:
    key, last = connection.walk
    behind = ", ".join(f":last_{name}" for name in key)
    query = (
        f"SELECT {', '.join((*key, *_COLUMNS, _NOTE))} FROM pages WHERE ({', '.join(key)}) > ({behind}) AND job = :job"
        f" AND ({where}) ORDER BY {', '.join(key)} LIMIT {_BATCH_ROWS}"
    )
    while True:
        position = {f"last_{name}": value for name, value in zip(key, last, strict=True)}
        rows = connection.execute(query, {"job": job, **position}).fetchall()
        for row in rows:
            yield row[len(key) :]
        if len(rows) < _BATCH_ROWS:
            return
        last = rows[-1][: len(key)]


def _state(job: str, row: dict[str, Any]) -> UrlState:
    at = _seconds(row["fetched_at"])
    context = context_of(row["note"])
    outcome = _NUMBERS[row["outcome"]]
    return UrlState(
        job=job,
        url_key=bytes.fromhex(row["url_key"]),
        url=row["url"],
        depth=row["depth"],
        fetch_no=row["fetch_no"],
        fetched_at=at if row["status"] or outcome is not Outcome.DROPPED else 0.0,
        first_at=_seconds(row["first_at"]) or at,
        changed_at=_seconds(row["changed_at"]),
        text_hash=bytes.fromhex(row["text_hash"]) or bytes.fromhex(row["sha256"])[:8],
        etag=row["etag"],
        last_modified=row["last_modified"],
        missing=int(row["status"] in _GONE),
        outcome=outcome,
        context=context,
        render=Render.NEVER if context is not None else Render.UNSPECIFIED,
    )


def _seconds(text: str) -> float:
    try:
        return datetime.fromisoformat(text).timestamp() if text else 0.0
    except ValueError:
        return 0.0


def unfollowed(source: Source, job: str, *, all_pages: bool = False) -> Iterator[tuple[str, bytes, int]]:
    """(URL, url_key, depth) of links in the table `links` without a row, each once, at its least depth. O(links).

    Links of a page with nofollow or none in its own meta are left out unless `all_pages`.
    """
    obeyed = "" if all_pages else " AND pages.meta NOT LIKE '%nofollow%' AND pages.meta NOT LIKE '%\"none%'"
    query = (
        "SELECT min(links.to_url), links.to_key, min(pages.depth) + 1 FROM links"
        " JOIN pages ON pages.job = links.job AND pages.url_key = links.from_key"
        f" WHERE links.job = :job{obeyed} AND NOT EXISTS"
        " (SELECT 1 FROM pages AS known WHERE known.job = links.job AND known.url_key = links.to_key)"
        " GROUP BY links.to_key"
    )
    with open_for_reading(source) as connection:
        for url, key, depth in connection.execute(query, {"job": job}).fetchall():
            yield url, bytes.fromhex(key), depth


def has_copies(source: Source, job: str | None) -> bool:
    """Whether a page was ever stored, of one job or of any job."""
    only = " AND job = :job" if job is not None else ""
    query = f"SELECT 1 FROM pages WHERE (outcome = 'stored' OR sha256 != ''){only} LIMIT 1"
    with open_for_reading(source) as connection:
        return connection.execute(query, {"job": job}).fetchone() is not None


def count(source: Source, job: str, kind: str) -> int:
    """Number of rows of a kind. O(rows of the job)."""
    with open_for_reading(source) as connection:
        query = f"SELECT count(*) FROM pages WHERE job = :job AND ({ROW_KINDS[kind]})"
        (number,) = connection.execute(query, {"job": job}).fetchone()
        return int(number)


def keeps_links(source: Source, job: str) -> bool:
    """Whether links of the job's pages are stored."""
    with open_for_reading(source) as connection:
        query = "SELECT 1 FROM links WHERE job = :job LIMIT 1"
        return connection.execute(query, {"job": job}).fetchone() is not None
