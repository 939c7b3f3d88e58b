"""The dump of a PostgreSQL database, by pg_dump and pg_restore of PostgreSQL itself.

pg_dump reads one snapshot of the database: all tables, the change feed with its position, and the lengths of files are
of one instant. The password goes to the child in its environment, never on a command line.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from nephila.kernel.runtime.errors import UserError
from nephila.storage.source import display_name, require_driver

DUMP: Final = "rows.dump"
"""Name of the dump in a backup, in the format "custom"."""


def dump(url: str, target: Path, snapshot: str = "") -> None:
    """Write the dump of a database. `snapshot`: of an open transaction (pg_export_snapshot). Raises `UserError`."""
    words = ["--format=custom", "--no-owner", "--no-privileges", f"--file={target}"]
    _run("pg_dump", url, [*words, *([f"--snapshot={snapshot}"] if snapshot else [])])


def restore(url: str, source: Path) -> None:
    """Fill an empty database from a dump, all of it or nothing. Raises `UserError` when it has tables of Nephila."""
    require_empty(url)
    _run(
        "pg_restore",
        url,
        ["--no-owner", "--no-privileges", "--exit-on-error", "--single-transaction", _dbname(url), str(source)],
    )


def require_empty(url: str) -> None:
    """Raise `UserError` when a crawl has written to the database, or when it cannot be reached."""
    require_driver()
    from nephila.storage.ledgers.postgres_link import connect, translate_errors
    from nephila.storage.ledgers.postgres_schema import version

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
    from psycopg.conninfo import conninfo_to_dict

    path = shutil.which(program)
    if path is None:
        raise UserError(
            f"no {program} in PATH: install the client of PostgreSQL (apt-get install postgresql-client), at least as "
            "new as the server; or save the rows by other means and use --without-rows"
        )
    known = {name: str(value) for name, value in conninfo_to_dict(url).items() if value is not None}
    environment = {**os.environ, **{_VARIABLES[name]: known[name] for name in _VARIABLES if name in known}}
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
