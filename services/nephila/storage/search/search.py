"""A search over what was crawled: pages with the words, the best first, each with its passage. The one implementation
for the command line, the API, the console and Python.

Cost: the index answers; at most `RANKED` rows are read to be put in order, and the shown ones for their passages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from nephila.storage.ledgers.read_connection import ReadConnection, open_for_reading
from nephila.storage.search.contract import RANKED, STEP_S, Index
from nephila.storage.search.passages import Fragment, passage, pattern, score
from nephila.storage.search.query import parse
from nephila.storage.search.sqlite_index import open_sqlite_index
from nephila.storage.source import Source

_SCORED_CHARS = 20_000
_PASSAGE_CHARS = 1_000_000
_TITLE_CHARS = 1_000


class Hit(NamedTuple):
    """A page of a search."""

    url: str
    url_key: str
    job: str
    title: list[Fragment]
    lang: str
    fetched_at: str
    passage: list[Fragment]


class Found(NamedTuple):
    """The answer to a search."""

    hits: list[Hit]
    total: int
    """Pages that were found, `COUNTED` at most."""
    complete: bool
    """False: the search took too long, and there may be more."""
    behind: int
    """Fetches that the index has not read yet."""


def search(source: Source, text: str, *, job: str = "", skip: int = 0, limit: int = 20) -> Found:
    """The pages of a search, behind the first `skip`. An index that is missing or behind reads on for a second first.
    Raises `UsageError` for a search that cannot be read, `UserError`."""
    query = parse(text)
    behind = 0
    with open_index(source) as index:
        for left in index.read_on(source, STEP_S):
            behind = left
        matches = index.find(query, job)
    found = pattern(query.terms)
    with open_for_reading(source) as rows:
        order = matches.keys[:RANKED]
        ranked = sorted(
            ((-score(query.terms, *row), at) for at, key in enumerate(order) if (row := _short(rows, key)) is not None)
        )
        hits = [_hit(rows, order[at], found) for _, at in ranked[skip : skip + limit]]
    return Found(hits, matches.total, matches.complete, behind)


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
    from nephila.storage.search.postgres_index import open_postgres_index

    return open_postgres_index(source, fresh=fresh)


def _short(rows: ReadConnection, key: tuple[str, str]) -> tuple[str, str, str] | None:
    query = (
        f"SELECT substr(title, 1, {_TITLE_CHARS}), url, substr(text, 1, {_SCORED_CHARS}) FROM pages"
        " WHERE job = :job AND url_key = :key"
    )
    row = rows.execute(query, {"job": key[0], "key": key[1]}).fetchone()
    return (row[0], row[1], row[2]) if row is not None else None


def _hit(rows: ReadConnection, key: tuple[str, str], found: re.Pattern[str]) -> Hit:
    query = (
        f"SELECT url, substr(title, 1, {_TITLE_CHARS}), lang, fetched_at, substr(text, 1, {_PASSAGE_CHARS}) FROM pages"
        " WHERE job = :job AND url_key = :key"
    )
    url, title, lang, fetched_at, text = rows.execute(query, {"job": key[0], "key": key[1]}).fetchone()
    return Hit(url, key[1], key[0], passage(title, found), lang, fetched_at, passage(text, found))
