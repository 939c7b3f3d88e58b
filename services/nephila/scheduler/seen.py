"""Seen: the URL-seen test of one job is an MD5 trie. A view of the commit log; what it writes is part of that log's
snapshots, as runs beside them."""

from __future__ import annotations

from nephila.native import Trie

Seen = Trie


def new_seen(directory: str, number: int) -> Seen:
    """The seen URLs of the job of that number; without a directory in memory only."""
    return Trie(directory, f"{number:05d}")
