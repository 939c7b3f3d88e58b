"""Completes items from second pages, in the tables `waits` (missing parts with their URLs) and `parts` (parts that
arrived).

All changes are in the transaction of the flush that brings a page, whichever page comes first; a refetch replaces its
earlier part. Invariant: after each flush every item contains all its parts that are stored, and the reason for each
missing part; there is no other state. A redirect moves the wait to its target. Cost: nothing for a job without waits,
else one look-up a page and two for each waiting item.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from nephila.kernel.fragment_routes import parse_routed
from nephila.kernel.pages.item_parts import NOT_YET, complete_item, is_part, part_rule, waits_of
from nephila.kernel.reasons.table import Reason
from nephila.native import UrlError
from nephila.storage.ledgers.read_connection import ReadConnection
from nephila.storage.rows import Items, RowBatch

MAX_HOPS: Final = 10
"""Maximum number of redirects from a link to the page with the part; the scheduler follows fewer."""
_ROWS: Final = 500


class _Waiting(NamedTuple):
    """An item and one of its parts, missing or present."""

    url_key: str
    ordinal: int
    name: str
    url: str
    to_key: str
    rule: str
    data: str


def has_parts(database: ReadConnection, batch: RowBatch) -> bool:
    """Whether a batch contains waiting items or parts, or belongs to jobs that have some."""
    if any(is_part(page_items.rule) or any(map(waits_of, page_items.data)) for page_items in batch.items.values()):
        return True
    jobs = {job for job, _ in _pages_of(batch)}
    query = "SELECT 1 FROM waits WHERE job = :job UNION ALL SELECT 1 FROM parts WHERE job = :job LIMIT 1"
    return any(database.execute(query, {"job": job}).fetchone() is not None for job in jobs)


def complete(database: ReadConnection, batch: RowBatch) -> None:
    """Combine the parts and items of a batch with those stored before. The rows of the batch are already written."""
    for (job, key), items in batch.items.items():
        put(database, job, key, items)
        _settle_all(database, job, "url_key", key)
    for job, key in _pages_of(batch):
        _settle_all(database, job, "to_key", key)


def put(database: ReadConnection, job: str, key: str, items: Items) -> None:
    """Replace the waits or the part of a page. Its items are already written."""
    page = {"job": job, "key": key}
    database.execute("DELETE FROM parts WHERE job = :job AND url_key = :key", page)
    database.execute("DELETE FROM waits WHERE job = :job AND url_key = :key", page)
    if is_part(items.rule):
        for data in items.data[:1]:
            values = {**page, "rule": items.rule, "version": items.version, "data": data}
            database.execute("INSERT INTO parts VALUES (:job, :key, :rule, :version, :data)", values)
        return
    for ordinal, data in enumerate(items.data):
        for name, url in waits_of(data):
            values = {**page, "ordinal": ordinal, "name": name, "url": url, "to": key_of(url)}
            database.execute("INSERT INTO waits VALUES (:job, :key, :ordinal, :name, :url, :to)", values)


def settle(database: ReadConnection, job: str, key: str) -> None:
    """Update the items of a page and the items that wait for it."""
    _settle_all(database, job, "url_key", key)
    _settle_all(database, job, "to_key", key)


def _settle_all(database: ReadConnection, job: str, column: str, key: str) -> None:
    for waiting in _waiting(database, job, column, key):
        _settle(database, job, waiting)


def _waiting(database: ReadConnection, job: str, column: str, key: str) -> Iterator[_Waiting]:
    """Waiting items of a page, or those that wait for a page, some rows at a time. A wait that moves to another page
    during the iteration does not disturb it."""
    last = ("", -1, "")
    query = (
        "SELECT waits.url_key, waits.ordinal, waits.name, waits.url, waits.to_key, items.rule, items.data FROM waits"
        " JOIN items ON items.job = waits.job AND items.url_key = waits.url_key AND items.ordinal = waits.ordinal"
        f" WHERE waits.job = :job AND waits.{column} = :key"
        " AND (waits.url_key, waits.ordinal, waits.name) > (:from, :ordinal, :name)"
        f" ORDER BY waits.url_key, waits.ordinal, waits.name LIMIT {_ROWS}"
    )
    while True:
        values = {"job": job, "key": key, **dict(zip(("from", "ordinal", "name"), last, strict=True))}
        waiting = [_Waiting(*row) for row in database.execute(query, values).fetchall()]
        yield from waiting
        if len(waiting) < _ROWS:
            return
        last = waiting[-1][:3]


def _settle(database: ReadConnection, job: str, waiting: _Waiting) -> None:
    to_key, part, why = _follow(database, job, waiting)
    item = {"job": job, "key": waiting.url_key, "ordinal": waiting.ordinal}
    if to_key != waiting.to_key:
        query = "UPDATE waits SET to_key = :to WHERE job = :job AND url_key = :key AND ordinal = :ordinal"
        database.execute(f"{query} AND name = :name", {**item, "to": to_key, "name": waiting.name})
    # Each part of an item changes the item for the next part.
    query = "SELECT data FROM items WHERE job = :job AND url_key = :key AND ordinal = :ordinal"
    ((data,),) = database.execute(query, item).fetchall()
    now = complete_item(data, waiting.name, part, waiting.url, why)
    if now != data:
        query = "UPDATE items SET data = :data WHERE job = :job AND url_key = :key AND ordinal = :ordinal"
        database.execute(query, {**item, "data": now})


def _follow(database: ReadConnection, job: str, waiting: _Waiting) -> tuple[str, str | None, str]:
    """The page with the part, after redirects, and the part; or the reason why there is none."""
    expected, key = part_rule(waiting.rule, waiting.name), waiting.to_key
    for _ in range(MAX_HOPS):
        page = {"job": job, "key": key}
        query = "SELECT data FROM parts WHERE job = :job AND url_key = :key AND rule = :rule"
        part = database.execute(query, {**page, "rule": expected}).fetchone()
        if part is not None:
            return key, part[0], ""
        query = "SELECT outcome, reason, final_url, rule FROM pages WHERE job = :job AND url_key = :key"
        row = database.execute(query, page).fetchone()
        if row is None:
            return key, None, NOT_YET
        outcome, reason, final_url, rule = row
        target = key_of(final_url) if outcome == "dropped" and reason == Reason.REDIRECT else ""
        if not target:
            return key, None, _why(outcome, reason, rule, expected)
        key = target
    return key, None, "too many redirects"


def _why(outcome: str, reason: str, rule: str, expected: str) -> str:
    if outcome != "stored":
        return f"{outcome}({reason})" if reason else outcome
    return (
        "its page gave nothing" if rule == expected else f"its page was read by {f'rule {rule}' if rule else 'no rule'}"
    )


def _pages_of(batch: RowBatch) -> Iterable[tuple[str, str]]:
    return dict.fromkeys([*((row[2], row[1]) for row in batch.fetches()), *batch.items])


def key_of(url: str) -> str:
    """The key of a page with this URL; "" for an invalid URL."""
    try:
        # The key contains a fragment route only if the job keeps routes.
        return parse_routed(url).fingerprint.hex()
    except UrlError:
        return ""
