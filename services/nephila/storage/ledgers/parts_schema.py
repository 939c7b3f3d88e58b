"""The tables for items that wait for a second page: `parts` holds the items of second pages, `waits` the missing parts.

A wait stays after its part has arrived, because a newer part may come. How the tables are used: item_parts.py. They are
created when a database without them is opened. They have no version of their own: an older release ignores them, so it
can still be used (docs/adr/0033).
"""

from __future__ import annotations

from typing import Final

TABLES: Final = (
    "CREATE TABLE IF NOT EXISTS parts (job TEXT NOT NULL, url_key TEXT NOT NULL, rule TEXT NOT NULL,"
    " rule_version INTEGER NOT NULL, data TEXT NOT NULL, PRIMARY KEY (job, url_key))",
    "CREATE TABLE IF NOT EXISTS waits (job TEXT NOT NULL, url_key TEXT NOT NULL, ordinal INTEGER NOT NULL,"
    " name TEXT NOT NULL, url TEXT NOT NULL, to_key TEXT NOT NULL, PRIMARY KEY (job, url_key, ordinal, name))",
    "CREATE INDEX IF NOT EXISTS waits_to ON waits (job, to_key)",
)
VERSIONS: Final = (
    "CREATE TABLE IF NOT EXISTS previous (job TEXT NOT NULL, url_key TEXT NOT NULL, fetch_no INTEGER NOT NULL,"
    " changed_at TEXT NOT NULL, fetched_at TEXT NOT NULL, title TEXT NOT NULL, text TEXT NOT NULL,"
    " PRIMARY KEY (job, url_key))",
)
"""The previous text of each changed page (versions.py); created in the same way."""
