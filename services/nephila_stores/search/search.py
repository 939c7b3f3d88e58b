"""A search over what was crawled: pages with the words, the best first, each with its passage. The one implementation
for the command line, the API, the console and Python.

Cost: the index answers by blocks of pages, the newest first; at most `RANKED` rows are read to be put in order, and the
shown ones for their passages. A search writes nothing: `make_index` reads on.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from nephila.storage.ledgers.read_connection import ReadConnection, open_for_reading
from nephila.storage.read.search_answer import Found, Hit
from nephila.storage.source import Source

from nephila_stores.search.contract import Index, Matches
from nephila_stores.search.passages import passage, pattern, score
from nephila_stores.search.query import Query, parse
from nephila_stores.search.sqlite_index import open_sqlite_index

_SCORED_CHARS = 20_000
_PASSAGE_CHARS = 100_000
"""Of a longer text the beginning is shown where its words come later."""
_TITLE_CHARS = 1_000
_RANK_S = 0.05
"""CPU that putting in order may use; further pages, which are older, come behind."""


def search(source: Source, text: str, *, jobs: Collection[str] | None = None, skip: int = 0, limit: int = 20) -> Found:
    """The pages of a search in these jobs, in all for None, behind the first `skip`, as far as the index has read the
    rows (`make_index` reads on). Raises `UsageError` for a search that cannot be read, `UserError`."""
    query = parse(text)
    with open_index(source) as index:
        behind = index.behind(source)
        matches = index.find(query, jobs) if jobs is None or jobs else Matches([], 0, 0)
    words = pattern(query.terms)
    with open_for_reading(source) as rows:
        ranked = _ranked(rows, query, matches.keys)
        hits = [hit for key in ranked[skip : skip + limit] if (hit := _hit(rows, key, words)) is not None]
    return Found(hits, matches.total, matches.looked_at, behind)


def _ranked(rows: ReadConnection, query: Query, keys: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The best first. Without those whose row is gone, as far as their rows were read."""
    until = time.thread_time() + _RANK_S
    order: list[tuple[float, int]] = []
    for at, key in enumerate(keys):
        if time.thread_time() > until:
            return [*(keys[index] for _, index in sorted(order)), *keys[at:]]
        if (row := _short(rows, key)) is not None:
            order.append((-score(query.terms, *row), at))
    return [keys[index] for _, index in sorted(order)]


def make_index(source: Source, *, fresh: bool = False) -> Iterator[int]:
    """Read all fetches into the index. Yields the number of those that are left. Raises `UserError`."""
    with open_index(source, fresh=fresh) as index:
        yield from index.read_on(source, float("inf"))


def open_index(source: Source, *, fresh: bool = False) -> AbstractContextManager[Index]:
    """The index of a database, made where it is missing. Raises `UserError`."""
    with open_for_reading(source):  # raises where there are no rows to search in, before a file is made
        pass
    if isinstance(source, Path):
        return open_sqlite_index(source, fresh=fresh)
    from nephila_stores.search.postgres_index import open_postgres_index

    return open_postgres_index(source, fresh=fresh)


def _short(rows: ReadConnection, key: tuple[str, str]) -> tuple[str, str, str] | None:
    query = (
        f"SELECT substr(title, 1, {_TITLE_CHARS}), url, substr(text, 1, {_SCORED_CHARS}) FROM pages"
        " WHERE job = :job AND url_key = :key"
    )
    row = rows.execute(query, {"job": key[0], "key": key[1]}).fetchone()
    return (row[0], row[1], row[2]) if row is not None else None


def _hit(rows: ReadConnection, key: tuple[str, str], words: re.Pattern[str]) -> Hit | None:
    query = (
        f"SELECT url, substr(title, 1, {_TITLE_CHARS}), lang, fetched_at, substr(text, 1, {_PASSAGE_CHARS}) FROM pages"
        " WHERE job = :job AND url_key = :key"
    )
    row = rows.execute(query, {"job": key[0], "key": key[1]}).fetchone()
    if row is None:
        return None
    url, title, lang, fetched_at, text = row
    return Hit(url, key[1], key[0], passage(title, words), lang, fetched_at, passage(text, words))


def find(source: Source, text: str, *, jobs: Collection[str] | None, skip: int, limit: int, fresh: bool) -> Found:
    """`search`, after the index has read on. `fresh`: the index is made again."""
    for _ in make_index(source, fresh=fresh):
        pass
    return search(source, text, jobs=jobs, skip=skip, limit=limit)
