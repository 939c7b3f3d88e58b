"""The location of rows: the directory of a crawl, or the URL of one or several PostgreSQL databases.

Invariant: no password is shown to people or stored in a file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from nephila.kernel.runtime.config import secret_variable
from nephila.kernel.runtime.errors import UserError
from nephila.kernel.runtime.extras import install_line

Source = Path | str
"""A directory, or a URL that `is_url` accepts."""

ENVIRONMENT = "NEPHILA_STORAGE__STORE"
"""Environment variable for a URL with a password; NEPHILA_STORAGE__STORE_FILE names a file with it instead."""
HOST_DIGITS: Final = 8
"""Hexadecimal digits of a url_key that are of its host."""
_SCHEMES = ("postgresql://", "postgres://")
_SECRET = ("password", "sslpassword")


def is_url(text: str) -> bool:
    """Whether this is the URL of a database on a server, not a directory."""
    return text.startswith(_SCHEMES)


def require_driver() -> None:
    """Raise `UserError` if the library for PostgreSQL is missing."""
    try:
        import psycopg  # noqa: F401
    except ImportError:
        raise UserError(f"PostgreSQL needs psycopg: {install_line('postgres')}") from None


def addresses(store: str) -> list[str]:
    """The URLs of a setting `store`: one, or several with spaces between them."""
    return store.split()


def each(source: Source) -> list[Source]:
    """The places of the rows, in the order of their servers: one, or those of a `store` with several URLs."""
    return [*addresses(source)] if isinstance(source, str) else [source]


def shard_of(url_key: str, servers: int) -> int:
    """The number of the server that has the rows of a key in hexadecimal, or of the first key with this prefix."""
    return int(url_key[:HOST_DIGITS].ljust(HOST_DIGITS, "0"), 16) * servers >> 4 * HOST_DIGITS


def without_password(store: str) -> str:
    """The URL without its password; only the scheme if it cannot be parsed. Of several URLs, each."""
    return " ".join(map(_without_password, addresses(store)))


def _without_password(url: str) -> str:
    try:
        parts = urlsplit(url)
        user, at, host = parts.netloc.rpartition("@")
        query = urlencode([(name, value) for name, value in parse_qsl(parts.query) if name not in _SECRET])
    except ValueError:
        return url.partition("://")[0] + "://…"
    return urlunsplit((parts.scheme, user.partition(":")[0] + at + host, parts.path, query, ""))


def with_password(url: str) -> str:
    """A URL without password, completed from the environment if that has the same database."""
    complete = secret_variable(ENVIRONMENT)
    return complete if complete and without_password(complete) == without_password(url) else url


def display_name(source: Source) -> str:
    """The source as shown in messages."""
    if not isinstance(source, str):
        return str(source)
    return " ".join(_without_password(url).partition("?")[0] for url in addresses(source))
