"""The tables of a crawl in PostgreSQL, with the names and columns of nephila.db, and their migrations.

Each step of `STEPS` migrates from the previous version. Missing steps run in order, in one transaction, under a lock,
so two programs may start at once. A database of a newer version is refused and not changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nephila.kernel.runtime.errors import UserError
from nephila.native import KEY_VERSION
from nephila.storage.ledgers.schema import BLOBS, CHANGES, FINDS, INTEGERS, PREVIOUS, SCHEMA_VERSION, SECOND_PAGES
from nephila.storage.rows import STORED_COLUMNS
from nephila.storage.source import display_name

from nephila_stores.postgres.link import Connection

LOCKS = 0x6E657068
"""First number of all advisory locks of Nephila ("neph"). The second is a bucket of keys, -1 for the schema, -2 for
items that wait for a second page, -3 for the order of changes."""

_KEYS = ("job", "url_key", "to_key")


def _column(name: str) -> str:
    if name in INTEGERS:
        return f"{name} bigint NOT NULL"
    if name in BLOBS:
        return f"{name} bytea NOT NULL"
    # Byte order: keys compare with memcmp, and a new libc cannot break the index.
    return f'{name} text COLLATE "C" NOT NULL' if name in _KEYS else f"{name} text NOT NULL"


def _here(statement: str) -> str:
    """Converts SQLite's statement for a table of texts and numbers."""
    for key in _KEYS:
        statement = statement.replace(f"{key} TEXT", f'{key} text COLLATE "C"')
    return statement.replace("INTEGER", "bigint")


STEPS: Mapping[int, Sequence[str]] = {
    1: (
        f"CREATE TABLE pages ({', '.join(map(_column, STORED_COLUMNS))}, PRIMARY KEY (job, url_key))",
        # The key allows each fetch only once; `id` is the order of writing.
        'CREATE TABLE fetches (id bigint GENERATED ALWAYS AS IDENTITY, job text COLLATE "C" NOT NULL,'
        ' url_key text COLLATE "C" NOT NULL, fetch_no bigint NOT NULL, attempt bigint NOT NULL, outcome text NOT NULL,'
        " reason text NOT NULL, status bigint NOT NULL, fetched_at text NOT NULL, bytes bigint NOT NULL,"
        " sha256 text NOT NULL, change text NOT NULL, text_hash text NOT NULL, old_hash text NOT NULL,"
        " PRIMARY KEY (job, url_key, fetch_no))",
        'CREATE TABLE links (job text COLLATE "C" NOT NULL, from_key text COLLATE "C" NOT NULL, to_url text NOT NULL,'
        " to_key text NOT NULL, anchor text NOT NULL)",
        "CREATE INDEX links_from ON links (job, from_key)",
        'CREATE TABLE items (job text COLLATE "C" NOT NULL, url_key text COLLATE "C" NOT NULL, rule text NOT NULL,'
        " rule_version bigint NOT NULL, ordinal bigint NOT NULL, data text NOT NULL,"
        " PRIMARY KEY (job, url_key, rule, ordinal))",
        "CREATE TABLE sinks (writer text NOT NULL, name text NOT NULL, length bigint NOT NULL,"
        " last_fetch bigint NOT NULL DEFAULT 0, PRIMARY KEY (writer, name))",
        "CREATE TABLE meta (name text PRIMARY KEY, value text NOT NULL)",
        *map(_here, (*SECOND_PAGES, PREVIOUS, FINDS)),
        _here(CHANGES.replace("INTEGER PRIMARY KEY AUTOINCREMENT", "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY")),
        f"INSERT INTO meta VALUES ('key_version', '{KEY_VERSION}')",
    ),
}
"""Step 1 creates the tables; each later step changes those of the version before."""

_COMPRESS = "ALTER TABLE pages ALTER COLUMN text SET COMPRESSION lz4"
"""lz4 needs a fifth of the server time per row of the older compression (docs/notes/storage.md)."""
_HAS_LZ4 = "SELECT 1 FROM pg_settings WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals)"


def migrate(connection: Connection, url: str, created_by: str, steps: Mapping[int, Sequence[str]] = STEPS) -> None:
    """Create what is missing, or refuse. Raises `UserError`; `psycopg.Error` for the caller to translate."""
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s, -1)", (LOCKS,))
        present = version(connection, url, newest=max(steps))
        missing = [number for number in sorted(steps) if number > present]
        for number in missing:
            for statement in steps[number]:
                connection.execute(statement)
        if not present:
            if connection.execute(_HAS_LZ4).fetchone():
                connection.execute(_COMPRESS)
            connection.execute("INSERT INTO meta VALUES ('created_by', %s)", (created_by,))
        if missing:
            connection.execute(
                "INSERT INTO meta VALUES ('schema_version', %s)"
                " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                (str(missing[-1]),),
            )


def version(connection: Connection, url: str, newest: int = SCHEMA_VERSION) -> int:
    """The schema version of a usable database, 0 without tables; raises `UserError` for others."""
    query = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
    names = {name for (name,) in connection.execute(query)}
    if not names & {"pages", "fetches", "links", "items", "sinks", "meta"}:
        return 0  # tables of other programs are ignored
    if not {"pages", "fetches", "meta"} <= names:
        raise UserError(f"{display_name(url)} holds tables of another program by these names; choose another database")
    meta: dict[str, str] = dict(connection.execute("SELECT name, value FROM meta").fetchall())
    stored = meta.get("schema_version", "")
    if not stored.isdecimal() or int(stored) > newest:
        raise _refusal(url, meta, "schema_version", newest)
    if meta.get("key_version") != str(KEY_VERSION):
        raise _refusal(url, meta, "key_version", KEY_VERSION)
    return int(stored)


def _refusal(url: str, meta: Mapping[str, str], entry: str, needed: int) -> UserError:
    return UserError(
        f"{display_name(url)} has {entry} {meta.get(entry, 'none')} (written by {meta.get('created_by', 'unknown')}),"
        f" this program needs {needed}; use the program that wrote it, or choose another database"
    )
