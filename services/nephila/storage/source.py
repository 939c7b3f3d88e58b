"""Where rows are read from: the directory of a crawl, or the URL of a PostgreSQL database.

Invariant: what is shown to people or kept in a file never holds a password.
"""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from nephila.kernel.runtime.errors import UserError

Source = Path | str
"""A directory, or a URL that `is_url` accepts."""

ENVIRONMENT = "NEPHILA_STORAGE__STORE"
"""Where a URL with a password belongs: a command line is seen by everybody on the machine."""
_SCHEMES = ("postgresql://", "postgres://")
_SECRET = ("password", "sslpassword")


def is_url(text: str) -> bool:
    """Whether this names a database on a server rather than a directory."""
    return text.startswith(_SCHEMES)


def require_driver() -> None:
    """Raise `UserError` where the library that speaks to PostgreSQL is missing."""
    try:
        import psycopg  # noqa: F401
    except ImportError:
        raise UserError("PostgreSQL needs psycopg: pip install 'nephila[postgres]'") from None


def without_password(url: str) -> str:
    """The URL as it may be written down; what is no URL at all becomes its scheme alone."""
    try:
        parts = urlsplit(url)
        user, at, place = parts.netloc.rpartition("@")
        query = urlencode([(name, value) for name, value in parse_qsl(parts.query) if name not in _SECRET])
    except ValueError:
        return url.partition("://")[0] + "://…"
    return urlunsplit((parts.scheme, user.partition(":")[0] + at + place, parts.path, query, ""))


def with_password(url: str) -> str:
    """A URL that was written down, with the password that the environment holds for the same database."""
    known = os.environ.get(ENVIRONMENT, "")
    return known if known and without_password(known) == without_password(url) else url


def display_name(source: Source) -> str:
    """The source in a line for people."""
    return without_password(source).partition("?")[0] if isinstance(source, str) else str(source)
