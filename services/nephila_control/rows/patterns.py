"""A part of a text as a term of SQL, with the same meaning in nephila.db and in PostgreSQL. Pure."""

from __future__ import annotations


def contains(column: str) -> str:
    """A term with the value `part`, made by `pattern`."""
    return f"lower({column}) LIKE :part ESCAPE '\\'"


def pattern(search: str) -> str:
    """The pattern for LIKE: the letters of ASCII in lower case, no character with another meaning."""
    return "%" + "".join(f"\\{c}" if c in "\\%_" else c.lower() if c.isascii() else c for c in search) + "%"
