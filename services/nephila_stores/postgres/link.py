"""Opens connections to PostgreSQL and translates their errors.

Invariant: no message contains a password; each message is one line with the database and the remedy. Errors that may be
temporary (crash, restart, fail-over, lost connection) are `StoreLost`; all others are not.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import psycopg
from nephila.kernel.runtime.config import secret_variable
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.kernel.runtime.secret_files import current
from nephila.storage.faults import StoreLost, StoreRefused, StoreSlow
from nephila.storage.source import display_name
from psycopg.conninfo import conninfo_to_dict

Connection = psycopg.Connection[tuple[Any, ...]]

VARIABLE: Final = "PGPASSWORD"
"""Name in libpq of the variable for a password that the URL does not have; PGPASSWORD_FILE names a file with it."""

_DEFAULTS: dict[str, Any] = {
    "connect_timeout": 10,
    # A dead server is detected after half a minute, not after the two hours of TCP's default.
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
    "fallback_application_name": "nephila",
}
_PASSING = ("08", "57P01", "57P02", "57P03", "53300", "40001", "40P01", "25006")
"""SQLSTATEs, or classes of them, of temporary errors: no connection, shutting down, starting up, too many clients,
serialisation failure, deadlock, read-only standby before promotion."""
_TIME_OUTS = ("57014", "55P03", "25P03", "25P04")
"""SQLSTATEs of a statement, a lock, an idle session or a transaction that took longer than the server allows."""
_DISK_FULL = "53100"
_SESSION = (
    "SET idle_in_transaction_session_timeout = '15s'",
    "SET work_mem = '64MB'",
    "SET client_min_messages = error",
    "SET TIME ZONE 'UTC'",
)


def connect(url: str, *, readonly: bool = False, fsync: bool = True) -> Connection:
    """An open connection in autocommit mode. Raises `UsageError` for an invalid URL, `StoreLost`, `UserError`.

    The server ends a session that is idle in a transaction for 15 s: a frozen writer must not hold its locks.
    """
    settings = parameters(url)
    try:
        connection = psycopg.connect("", autocommit=True, **{**_DEFAULTS, **settings})
    except psycopg.Error as error:
        raise _unreachable(error, url) from None
    try:
        with translate_errors(url):
            _prepare(connection, url, readonly=readonly, fsync=fsync)
    except BaseException:
        connection.close()
        raise
    return connection


def parameters(url: str) -> dict[str, Any]:
    """The parameters of libpq with the present password: that of the URL, or of the file that PGPASSWORD_FILE names.
    Reads the disk. Raises `UsageError` for an invalid URL, `StoreLost` for a file that cannot be read now."""
    try:
        settings: dict[str, Any] = conninfo_to_dict(current(url))
    except psycopg.ProgrammingError:
        raise UsageError(
            f"{display_name(url)} is no URL of a database; it is of the form postgresql://user@host:5432/database"
        ) from None
    try:
        password = secret_variable(VARIABLE)
    except UsageError as error:
        raise StoreLost(str(error)) from None
    return {"password": password, **settings} if password else settings


def _prepare(connection: Connection, url: str, *, readonly: bool, fsync: bool) -> None:
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise UserError(
            f"{display_name(url)} has encoding {encoding} and crawled text needs UTF8; make another database with"
            " ENCODING 'UTF8' TEMPLATE template0"
        )
    # A server may be configured to acknowledge a commit before it is durable; a receipt needs a durable commit.
    durable = "SET synchronous_commit = off"
    if fsync:
        durable = (
            "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
        )
    connection.execute("SET client_encoding = 'UTF8'")
    for statement in (*_SESSION, durable, *(("SET default_transaction_read_only = on",) if readonly else ())):
        connection.execute(statement)


@contextmanager
def translate_errors(url: str) -> Iterator[None]:
    """Translate errors of the block."""
    try:
        yield
    except psycopg.Error as error:
        raise fault(error, url) from error


def fault(error: psycopg.Error, url: str) -> UserError:
    """The translation of an error on an open connection."""
    server, state = display_name(url), error.sqlstate
    if state is None and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return StoreLost(f"the connection to {server} is lost ({_line(error)})")
    if state in _TIME_OUTS:
        return StoreSlow(f"{server} has ended a transaction that took too long ({_line(error)})")
    if state is not None and state.startswith(_PASSING):
        return StoreLost(f"{server} does not serve now ({_line(error)})")
    if state == _DISK_FULL:
        return UserError(f"disk full on the server of {server}; free space there and run again with --resume")
    if state == "42501":
        return UserError(f"{server}: {_line(error)}; grant this user the right to make and write tables there")
    return UserError(f"{server}: {_line(error)} (SQLSTATE {state})")


def _unreachable(error: psycopg.Error, url: str) -> UserError:
    server, text, kind = display_name(url), _line(error), StoreLost
    remedy = "is the server running, and the host and port right?"
    if "does not match host name" in text:
        remedy = "use the name in its certificate, or sslmode=verify-ca"
    elif "certificate verify failed" in text or "root certificate file" in text:
        remedy = "set sslrootcert in the URL, or PGSSLROOTCERT, to the CA of the server"
    elif "does not support SSL" in text:
        remedy = "turn TLS on at the server, or set sslmode=disable on a network without eavesdroppers"
    elif "no encryption" in text:
        remedy = "the server may require TLS: set sslmode=verify-full and sslrootcert in the URL"
    elif "password" in text or "authentication" in text:
        kind = StoreRefused
        remedy = (
            "give the password in the file of NEPHILA_STORAGE__STORE_FILE or PGPASSWORD_FILE, which is read again at "
            "each attempt, or in NEPHILA_STORAGE__STORE, PGPASSWORD or ~/.pgpass"
        )
    elif "database" in text and "does not exist" in text:
        remedy = "make it with createdb, or name another one"
    elif "role" in text and "does not exist" in text:
        remedy = "make the user with createuser, or name another one"
    elif "starting up" in text or "shutting down" in text or "recovery mode" in text or "too many" in text:
        remedy = "try again in a moment"
    return kind(f"cannot connect to {server}: {text}; {remedy}")


def _line(error: psycopg.Error) -> str:
    """The first line of the server's message, without statement and hints."""
    primary = error.diag.message_primary or str(error).strip().partition("\n")[0]
    return primary.replace("FATAL:  ", "").strip() or type(error).__name__
