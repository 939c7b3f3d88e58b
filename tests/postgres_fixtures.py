"""A PostgreSQL server for the tests that want one, started once per process, and a new database for each of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import psycopg
import pytest

from tests.required import required
from tools.postgres import NoServer, Server

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """The server, running. Where there is none: a failure on CI, a skip elsewhere."""
    with required(NoServer):
        server = Server()
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture
def mortal(postgres: Server) -> Iterator[Server]:
    """A running server of the test's own, to be killed."""
    server = Server()
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture
def store(postgres: Server) -> str:
    """The URL of an empty database."""
    name = f"t{next(_numbers)}"
    with psycopg.connect(postgres.dsn(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0")
    return postgres.dsn(name)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.whole)])
def database_url(request: pytest.FixtureRequest) -> str:
    """The URL of an empty database; empty for SQLite in the directory of the test."""
    return request.getfixturevalue("store") if request.param == "postgres" else ""
