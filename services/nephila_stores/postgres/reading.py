"""A connection that reads the rows of a database, as `nephila.storage.ledgers.read_connection` opens it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from nephila.storage.ledgers.read_connection import NoTables
from nephila.storage.source import display_name

from nephila_stores.postgres.link import Connection, connect, translate_errors
from nephila_stores.postgres.schema import version


@contextmanager
def reading(url: str) -> Iterator[Connection]:
    """Raises `UserError`, `NoTables` if no crawl has written to the database."""
    connection = connect(url, readonly=True)
    try:
        with translate_errors(url):
            if not version(connection, url):
                raise NoTables(f"{display_name(url)} has no tables of nephila: no crawl has written to it yet")
            yield connection
    finally:
        connection.close()
