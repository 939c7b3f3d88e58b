"""The table `search` beside the rows: the search index of a PostgreSQL database by tsvector and GIN.

Words are cut by Nephila, not by a configuration of the server, so both databases find the same pages. A token of a
field has that field's letter before it: `tword` is in the title. A GIN index has no order, so a search goes through
blocks of pages, the newest first, each with a token of its own.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

import psycopg
from nephila.storage.ledgers.contract import RECENT_CHANGES
from nephila.storage.source import Source

from nephila_stores.postgres.link import Connection, connect, translate_errors
from nephila_stores.postgres.schema import LOCKS
from nephila_stores.search.blocks import Key, OutOfTimeError, newest_first
from nephila_stores.search.contract import BATCH, LONGEST_S, Matches
from nephila_stores.search.facets import days, facets, host_of, host_token, job_token
from nephila_stores.search.query import Query, Term
from nephila_stores.search.words import tokens

BLOCK: Final = 32_768
"""Pages of a block: the most that a search of a common word puts in order at once."""
MAX_POSITION: Final = 16_383
"""Of a tsvector. Words of a text behind it are found, but not their order."""
MAX_BYTES: Final = 900_000
"""Of the words of one page; a tsvector has at most a mebibyte. Further words are not found."""
MAX_TOKEN: Final = 200
"""Characters of a word; longer ones are not found."""
_TABLES: Final = (
    'CREATE TABLE IF NOT EXISTS search (id bigint PRIMARY KEY, job text COLLATE "C" NOT NULL,'
    ' url_key text COLLATE "C" NOT NULL, text_hash text NOT NULL, words tsvector NOT NULL, UNIQUE (job, url_key))',
    "CREATE INDEX IF NOT EXISTS search_words ON search USING gin (words) WITH (fastupdate = off)",
    "CREATE TABLE IF NOT EXISTS search_position (last_fetch bigint NOT NULL)",
    "INSERT INTO search_position SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM search_position)",
)
_LOCK: Final = f"SELECT pg_try_advisory_xact_lock({LOCKS}, -4)"
_ROWS: Final = """
    SELECT p.job, p.url_key, p.url, p.title, p.text_hash || p.sha256,
        CASE p.changed_at WHEN '' THEN p.fetched_at ELSE p.changed_at END, p.text
    FROM fetches AS f JOIN pages AS p ON p.job = f.job AND p.url_key = f.url_key AND p.fetch_no = f.fetch_no
    LEFT JOIN search AS s ON s.job = p.job AND s.url_key = p.url_key
    WHERE f.id > %s AND f.id <= %s AND p.sha256 <> '' AND s.text_hash IS DISTINCT FROM p.text_hash || p.sha256
"""
_FOUND: Final = "SELECT job, url_key FROM search WHERE words @@ %s::tsquery ORDER BY id DESC LIMIT %s"
_ADD: Final = (
    "INSERT INTO search (id, job, url_key, text_hash, words)"
    " VALUES (%s, %s, %s, %s, %s::tsvector) ON CONFLICT (job, url_key) DO UPDATE"
    " SET id = excluded.id, text_hash = excluded.text_hash, words = excluded.words"
)


@contextlib.contextmanager
def open_postgres_index(source: Source, *, fresh: bool) -> Iterator[PostgresIndex]:
    url = str(source)
    connection = connect(url)
    try:
        with translate_errors(url):
            _prepare(connection, fresh=fresh)
            yield PostgresIndex(connection)
    finally:
        connection.close()


def _prepare(connection: Connection, *, fresh: bool) -> None:
    with connection.transaction():
        there = connection.execute("SELECT to_regclass('search_position') IS NOT NULL").fetchone() == (True,)
        if there and not fresh:
            return
        connection.execute(f"SELECT pg_advisory_xact_lock({LOCKS}, -4)")
        if fresh:
            connection.execute("DROP TABLE IF EXISTS search, search_position")
        for statement in _TABLES:
            connection.execute(statement)


class PostgresIndex:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def read_on(self, source: Source, seconds: float) -> Iterator[int]:
        """While another program reads on, this one leaves it to that."""
        until = time.monotonic() + seconds
        first = True
        while True:
            left = self._batch(again=first)
            yield left
            first = False
            if not left or time.monotonic() >= until:
                return

    def behind(self, source: Source) -> int:
        query = "SELECT (SELECT coalesce(max(id), 0) FROM fetches) - last_fetch FROM search_position"
        row = self._connection.execute(query).fetchone()
        return int(row[0]) if row is not None else 0

    def _batch(self, *, again: bool) -> int:
        """`again`: also the fetches of writers that had a lower number and were not committed at the last time."""
        with self._connection.transaction():
            if self._connection.execute(_LOCK).fetchone() != (True,):
                return 0
            row = self._connection.execute(
                "SELECT last_fetch, (SELECT max(id) FROM fetches), (SELECT max(id) FROM search) FROM search_position"
            ).fetchone()
            after, newest, number = row if row is not None else (0, 0, 0)
            end = min(newest or 0, after + BATCH)
            start = max(0, after - RECENT_CHANGES) if again else after
            fetches = {(fetch[0], fetch[1]): fetch for fetch in self._connection.execute(_ROWS, (start, end))}
            values = [
                (1 + (number or 0) + at, *fetch[:2], fetch[4], _vector(1 + (number or 0) + at, fetch))
                for at, fetch in enumerate(fetches.values())
            ]
            with self._connection.cursor() as cursor:
                cursor.executemany(_ADD, values)
            self._connection.execute("UPDATE search_position SET last_fetch = %s", (end,))
            return int((newest or 0) - end)

    def find(self, query: Query, jobs: Collection[str] | None) -> Matches:
        (last,) = self._connection.execute("SELECT coalesce(max(id), 0) FROM search").fetchone() or (0,)
        matches = {field: _match(query, jobs, field) for field in ("", "title")}
        until = time.monotonic() + LONGEST_S

        def in_block(block: int, field: str, limit: int) -> list[Key]:
            left_s = until - time.monotonic()
            if left_s <= 0:
                raise OutOfTimeError
            try:
                with self._connection.transaction():
                    self._connection.execute(f"SET LOCAL statement_timeout = {max(1, int(left_s * 1000))}")
                    self._connection.execute("SET LOCAL enable_seqscan = off")
                    values = (f"({matches[field]}) & 'b{block}'", limit)
                    return [(of_job, key) for of_job, key in self._connection.execute(_FOUND, values)]
            except psycopg.errors.QueryCanceled:
                raise OutOfTimeError from None

        return newest_first(int(last), BLOCK, in_block)


def _vector(number: int, row: Sequence[Any]) -> str:
    """The text of a tsvector: words of title, URL and text with their positions."""
    job, _, url, title, _, at, text = row
    places: dict[str, list[int]] = {}
    position = 0
    for letter, value in (("t", title), ("u", url), ("", text)):
        position += 1  # a gap: no phrase goes from one to the next
        for token in tokens(value):
            position += 1
            if len(token) <= MAX_TOKEN:
                places.setdefault("w" + token, []).append(position)
                if letter:
                    places.setdefault(letter + token, []).append(position)
    parts = [f"b{number // BLOCK}", *facets(job, host_of(url), at).split()]
    size = 0
    for token, positions in places.items():
        size += len(token.encode()) + 2 * min(len(positions), 256) + 4
        if size > MAX_BYTES:
            break
        usable = [at_word for at_word in positions[:256] if at_word <= MAX_POSITION]
        parts.append(f"{token}:{','.join(map(str, usable))}" if usable else token)
    return " ".join(parts)


def _match(query: Query, jobs: Collection[str] | None, field: str) -> str:
    """The search in the language of tsquery; `field`: with all words in this one."""
    parts = [_phrase(term, field) for term in query.terms]
    choices = [[job_token(job) for job in jobs or ()], [host_token(host) for host in query.hosts], days(query)]
    parts += ["(" + " | ".join(f"'{token}'" for token in choice) + ")" for choice in choices if choice]
    return " & ".join([*parts, *(f"!{_phrase(term, '')}" for term in query.without)])


def _phrase(term: Term, field: str) -> str:
    letter = {"title": "t", "url": "u", "": "w"}[term.field or field]
    words = [f"'{letter}{token}'" for token in term.tokens]
    if term.prefix:
        words[-1] += ":*"
    return "(" + " <-> ".join(words) + ")"
