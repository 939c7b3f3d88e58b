"""A job has no place for the options of a Firecrawl client, its webhook and the events that were delivered: this module
stores them beside the rows.

The rest of a crawl is its job. A crawl with a webhook belongs to the program that holds its lease; the lease of a
program that was killed expires, and another one continues. Each method is one transaction. The API key is not stored,
only its digest; headers of webhooks are, as the client sent them.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from nephila_harvest.webhooks.database import Database

TABLES: Final = (
    "CREATE TABLE IF NOT EXISTS firecrawl_crawls (crawl TEXT PRIMARY KEY, fields TEXT NOT NULL, hook TEXT NOT NULL,"
    " key TEXT NOT NULL, owner TEXT NOT NULL, until BIGINT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS firecrawl_delivered (crawl TEXT NOT NULL, event TEXT NOT NULL,"
    " PRIMARY KEY (crawl, event))",
)


class KeptCrawl(NamedTuple):
    crawl: str
    fields: str = ""
    """JSON Schema of the format json; empty without one."""
    hook: str = ""
    """The webhook as JSON; empty without one, and after the last delivery."""
    key: str = ""
    """Digest of the API key that started the crawl, in hexadecimal."""


class KeptCrawls:
    """Methods raise `UserError` in one line."""

    def __init__(self, database: Database) -> None:
        """`database` has `TABLES`."""
        self._database = database

    def add(self, crawl: KeptCrawl, owner: str, until: int) -> None:
        """Stores a new crawl with the lease of a program."""
        query = "INSERT INTO firecrawl_crawls VALUES (:crawl, :fields, :hook, :key, :owner, :until)"
        self._execute(query, {**crawl._asdict(), "owner": owner, "until": until})

    def fields(self, crawl: str) -> str:
        """Returns the schema of a crawl; empty without one."""
        with self._database.open() as execute:
            row = execute("SELECT fields FROM firecrawl_crawls WHERE crawl = :crawl", {"crawl": crawl}).fetchone()
        return str(row[0]) if row is not None else ""

    def take(self, owner: str, now: int, until: int, limit: int) -> list[KeptCrawl]:
        """Leases crawls with a webhook whose lease has expired, the oldest first, to `owner`."""
        names = ", ".join(KeptCrawl._fields)
        query = (
            f"SELECT {names} FROM firecrawl_crawls WHERE hook <> '' AND until < :now AND owner <> :owner"
            " ORDER BY crawl LIMIT :limit"
        )
        # Of two programs one changes the row.
        change = (
            "UPDATE firecrawl_crawls SET owner = :owner, until = :until"
            " WHERE crawl = :crawl AND until < :now AND owner <> :owner"
        )
        with self._database.open() as execute:
            rows = execute(query, {"owner": owner, "now": now, "limit": limit}).fetchall()
            crawls = [KeptCrawl(*row) for row in rows]
            values = {"owner": owner, "now": now, "until": until}
            return [crawl for crawl in crawls if execute(change, {**values, "crawl": crawl.crawl}).rowcount]

    def renew(self, owner: str, until: int) -> set[str]:
        """Prolongs the leases of a program, and returns its crawls."""
        values = {"owner": owner, "until": until}
        with self._database.open() as execute:
            execute("UPDATE firecrawl_crawls SET until = :until WHERE owner = :owner AND hook <> ''", values)
            query = "SELECT crawl FROM firecrawl_crawls WHERE owner = :owner AND hook <> ''"
            return {row[0] for row in execute(query, {"owner": owner}).fetchall()}

    def release(self, owner: str) -> None:
        """Ends the leases of a program."""
        self._execute("UPDATE firecrawl_crawls SET owner = '', until = 0 WHERE owner = :owner", {"owner": owner})

    def delivered(self, crawl: str) -> set[str]:
        """Returns the delivered events of a crawl: names, and keys of pages."""
        with self._database.open() as execute:
            query = "SELECT event FROM firecrawl_delivered WHERE crawl = :crawl"
            return {row[0] for row in execute(query, {"crawl": crawl}).fetchall()}

    def mark(self, crawl: str, event: str) -> None:
        """Stores that an event was delivered."""
        query = "INSERT INTO firecrawl_delivered VALUES (:crawl, :event) ON CONFLICT (crawl, event) DO NOTHING"
        self._execute(query, {"crawl": crawl, "event": event})

    def settle(self, crawl: str) -> None:
        """Stores that nothing more of a crawl is delivered."""
        with self._database.open() as execute:
            execute("UPDATE firecrawl_crawls SET hook = '' WHERE crawl = :crawl", {"crawl": crawl})
            execute("DELETE FROM firecrawl_delivered WHERE crawl = :crawl", {"crawl": crawl})

    def delete(self, crawl: str) -> None:
        with self._database.open() as execute:
            for table in ("firecrawl_crawls", "firecrawl_delivered"):
                execute(f"DELETE FROM {table} WHERE crawl = :crawl", {"crawl": crawl})

    def close(self) -> None:
        self._database.close()

    def _execute(self, query: str, values: dict[str, Any]) -> None:
        with self._database.open() as execute:
            execute(query, values)
