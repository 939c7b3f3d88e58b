"""The changes of one run: new, changed, moved and gone pages, from the history of fetches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from nephila.storage.changes import AWAY, CHANGED, GONE, MOVED, NEW
from nephila.storage.ledgers.read_connection import NoTables, ReadConnection, open_for_reading

if TYPE_CHECKING:
    from nephila.programs.crawl.plan import Plan


FOUND = (NEW, CHANGED, MOVED, GONE)


class Changed(msgspec.Struct):
    """The new, changed, moved and gone pages of one run, each as (URL, title)."""

    new: list[tuple[str, str]] = msgspec.field(default_factory=list)
    changed: list[tuple[str, str]] = msgspec.field(default_factory=list)
    moved: list[tuple[str, str]] = msgspec.field(default_factory=list)
    gone: list[tuple[str, str]] = msgspec.field(default_factory=list)
    ended: int = 0
    """Fetches of the run that ended, with any outcome."""
    fetched: int = 0
    """Those of them that stored or confirmed a page."""


class ChangeTracker:
    """Remembers the end of the history before a run; `changed` reads what was added after it. O(fetches of the run)."""

    def __init__(self, plan: Plan) -> None:
        self._source, self._job = plan.rows, plan.job.uid
        self._last = 0
        try:
            with open_for_reading(self._source) as connection:
                row = connection.execute("SELECT max(id) FROM fetches WHERE job = :job", {"job": self._job}).fetchone()
                self._last = row[0] or 0
        except NoTables:
            pass

    def changed(self) -> Changed:
        """The changes since, in the order of the fetches; of several fetches of one URL, the last one."""
        query = (
            "SELECT fetches.change, fetches.outcome, fetches.url_key, pages.url, pages.title FROM fetches"
            " JOIN pages ON pages.job = fetches.job AND pages.url_key = fetches.url_key"
            " WHERE fetches.job = :job AND fetches.id > :last ORDER BY fetches.id"
        )
        result = Changed()
        changes: dict[str, tuple[str, str, str]] = {}
        values = {"job": self._job, "last": self._last}
        with open_for_reading(self._source) as connection:
            for change, outcome, key, url, title in connection.execute(query, values):
                result.ended += 1
                result.fetched += outcome == "stored"
                if change in FOUND:
                    changes[key] = (change, url, title)
            are_away = any(change in AWAY for change, _, _ in changes.values())
            away_before = self._away_before(connection) if are_away else set()
        for key, (change, url, title) in changes.items():
            if change not in AWAY or key not in away_before:
                getattr(result, change).append((url, title))
        return result

    def _away_before(self, connection: ReadConnection) -> set[str]:
        """Pages that had moved or were gone already. O(fetches)."""
        query = "SELECT url_key, change FROM fetches WHERE job = :job AND id <= :last AND change != '' ORDER BY id"
        last = dict(connection.execute(query, {"job": self._job, "last": self._last}))
        return {key for key, change in last.items() if change in AWAY}
