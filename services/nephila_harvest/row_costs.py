"""What each job has spent and gained, by the rows: fetches, bytes, stored pages and items. Read-only."""

from typing import NamedTuple

from nephila.storage.ledgers.read_connection import open_for_reading
from nephila.storage.source import Source

_FETCHES = "SELECT job, count(*), CAST(sum(bytes) AS bigint) FROM fetches{} GROUP BY job"
_PAGES = (
    "SELECT job, count(*), CAST(sum(length(text)) AS bigint), sum(CASE WHEN near_copy_of = '' THEN 0 ELSE 1 END)"
    " FROM pages WHERE sha256 <> ''{} GROUP BY job"
)
_ITEMS = "SELECT job, count(*) FROM items{} GROUP BY job"


class JobCost(NamedTuple):
    """The cost of one job."""

    job: str
    fetches: int
    """Ended fetches that have a row of the history, with any outcome."""
    bytes: int
    """Decoded bytes of their bodies."""
    pages: int
    """Stored pages."""
    near_copies: int
    """Of them, near-copies of other pages."""
    text_chars: int
    """Characters of their texts."""
    items: int
    """Items of rules."""

    @property
    def useful(self) -> int:
        """Items, or pages that are no near-copies where the job has no items."""
        return self.items or self.pages - self.near_copies

    def per_useful(self, value: int) -> float | None:
        """The value per useful item; None without one."""
        return value / self.useful if self.useful else None


def costs(source: Source, job: str | None = None) -> list[JobCost]:
    """One entry per job, by name. Reads all rows of the job, texts included: O(bytes)."""
    values = {"job": job}
    where, also = (" WHERE job = :job", " AND job = :job") if job is not None else ("", "")
    with open_for_reading(source) as connection:
        fetches = {name: numbers for name, *numbers in connection.execute(_FETCHES.format(where), values)}
        pages = {name: numbers for name, *numbers in connection.execute(_PAGES.format(also), values)}
        items = dict(connection.execute(_ITEMS.format(where), values).fetchall())
    entries = []
    for name in sorted({*fetches, *pages, *items}):
        requests, size = fetches.get(name, (0, 0))
        stored, chars, near = pages.get(name, (0, 0, 0))
        entries.append(JobCost(name, requests, int(size), stored, int(near), int(chars), items.get(name, 0)))
    return entries
