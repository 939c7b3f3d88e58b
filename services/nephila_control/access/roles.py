"""Roles keep a caller who only reads from changing a crawl. Each operation names the least role that may use it
(api.py)."""

from __future__ import annotations

from enum import IntEnum


class Role(IntEnum):
    """What a caller may do. A role may use the operations of the roles before it."""

    NONE = 0
    """No operation: the caller has not logged in."""
    VIEWER = 1
    """Read."""
    EDITOR = 2
    """Change jobs, sites, rules and queues, and fetch pages."""
    ADMIN = 3
    """Change the system, and read who changed what."""
