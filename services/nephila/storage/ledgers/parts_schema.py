"""The tables of items that wait for a second page: `parts` has what second pages gave, `waits` who waits for which.

A wait stays when its part has come, for a newer one. What is done with them is said in completing.py. They are made
when a database is opened that has none, without a version of their own: the release before does not know them, leaves
them alone, and can be gone back to (docs/adr/0033).
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
"""The texts that pages had before their present ones (versions.py); made like the others."""
