"""The dumps of PostgreSQL databases, by pg_dump and pg_restore of PostgreSQL itself.

pg_dump reads one snapshot of a database: all tables, the change feed with its position, and the lengths of files are
of one instant. The password goes to the child in its environment, never on a command line.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from nephila.kernel.runtime.errors import UserError
from nephila.storage.source import addresses, display_name, require_driver

DUMP: Final = "rows.dump"
"""Name of the dump in a backup, in the format "custom"; of several servers see `names`."""


def names(servers: int) -> list[str]:
    """Names of the dumps of a `store` with so many servers."""
    return [DUMP] if servers == 1 else [f"rows-{number:02}.dump" for number in range(servers)]


def is_dump(name: str) -> bool:
    """Whether a file of a backup has this meaning."""
    return re.fullmatch(r"rows(-[0-9]{2,})?[.]dump", name) is not None


def dump(store: str, target: Callable[[str], Path], snapshot: str = "") -> list[str]:
    """Write the dump of each server; their names. Each is of an instant of its own: the next one is later. `target` is
    the path for a name. `snapshot`: of an open transaction (pg_export_snapshot) of one server. Raises `UserError`."""
    servers = addresses(store)
    files = names(len(servers))
    for url, name in zip(servers, files, strict=True):
        words = ["--format=custom", "--no-owner", "--no-privileges", f"--file={target(name)}"]
        _run("pg_dump", url, [*words, *([f"--snapshot={snapshot}"] if snapshot else [])])
    return files


def require_as_many(store: str, dumps: Sequence[Path]) -> None:
    """Raise `UserError` when a store has another number of servers: the rows of a host would be on a wrong one."""
    if len(addresses(store)) != len(dumps):
        raise UserError(
            f"the backup has the rows of {len(dumps)} databases, and storage.store names {len(addresses(store))}; name "
            f"as many, or use --without-rows"
        )


def restore(store: str, dumps: Sequence[Path]) -> None:
    """Fill empty databases from their dumps, each as a whole or not at all. Raises `UserError` when one has tables of
    Nephila."""
    require_as_many(store, dumps)
    require_empty(store)
    for url, source in zip(addresses(store), dumps, strict=True):
        words = ["--no-owner", "--no-privileges", "--exit-on-error", "--single-transaction"]
        _run("pg_restore", url, [*words, _dbname(url), str(source)])


def require_empty(store: str) -> None:
    """Raise `UserError` when a crawl has written to one of the databases, or when one cannot be reached."""
    require_driver()
    from nephila_stores.postgres.link import connect, translate_errors
    from nephila_stores.postgres.schema import version

    for url in addresses(store):
        with connect(url, readonly=True) as connection, translate_errors(url):
            if version(connection, url):
                raise UserError(
                    f"{display_name(url)} has tables of nephila already; restore into an empty database (createdb), or "
                    "leave the rows out with --without-rows"
                )


def _dbname(url: str) -> str:
    from psycopg.conninfo import conninfo_to_dict

    return f"--dbname={conninfo_to_dict(url).get('dbname', 'postgres')}"


def _run(program: str, url: str, words: list[str]) -> None:
    require_driver()
    from nephila_stores.postgres.link import parameters

    path = shutil.which(program)
    if path is None:
        raise UserError(
            f"no {program} in PATH: install the client of PostgreSQL (apt-get install postgresql-client), at least as "
            "new as the server; or save the rows by other means and use --without-rows"
        )
    values = {name: str(value) for name, value in parameters(url).items() if value is not None}
    environment = {**os.environ, **{_VARIABLES[name]: values[name] for name in _VARIABLES if name in values}}
    try:
        done = subprocess.run([path, *words], env=environment, capture_output=True, text=True, check=False)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise UserError(f"{program} of {display_name(url)}: {last}")


_VARIABLES: Final = {
    "host": "PGHOST",
    "hostaddr": "PGHOSTADDR",
    "port": "PGPORT",
    "dbname": "PGDATABASE",
    "user": "PGUSER",
    "password": "PGPASSWORD",
    "passfile": "PGPASSFILE",
    "sslmode": "PGSSLMODE",
    "sslcert": "PGSSLCERT",
    "sslkey": "PGSSLKEY",
    "sslrootcert": "PGSSLROOTCERT",
    "connect_timeout": "PGCONNECT_TIMEOUT",
    "options": "PGOPTIONS",
}
"""Part of a URL → the variable by which libpq reads it."""
