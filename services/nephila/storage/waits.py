"""The tables of items that wait for a second page: `parts` has what second pages gave, `waits` who waits for which.

A wait stays when its part has come, for a newer one. What is done with them is said in completing.py.
"""

from __future__ import annotations

from typing import Final

TABLES: Final = (
    "CREATE TABLE parts (job TEXT NOT NULL, url_key TEXT NOT NULL, rule TEXT NOT NULL, rule_version INTEGER NOT NULL,"
    " data TEXT NOT NULL, PRIMARY KEY (job, url_key))",
    "CREATE TABLE waits (job TEXT NOT NULL, url_key TEXT NOT NULL, ordinal INTEGER NOT NULL, name TEXT NOT NULL,"
    " url TEXT NOT NULL, to_key TEXT NOT NULL, PRIMARY KEY (job, url_key, ordinal, name))",
    "CREATE INDEX waits_to ON waits (job, to_key)",
)
