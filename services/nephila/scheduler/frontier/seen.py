"""Seen: the URL-seen test of one job is an MD5 trie. A view of the commit log; what it writes is part of that log's
snapshots, as runs beside them."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path

from nephila.native import Trie

Seen = Trie


def new_seen(directory: str, number: int) -> Seen:
    """The seen URLs of the job of that number; without a directory in memory only."""
    return Trie(directory, f"{number:05d}")


def drop_others(directory: str, numbers: Container[int]) -> None:
    """Delete the files of all jobs but those: of deleted ones. O(files of the directory)."""
    found = {path.name.split("-")[1] for path in Path(directory).glob("seen-*.run")} if directory else set()
    for name in found:
        if name.isdigit() and int(name) not in numbers:
            Trie(directory, name).cleanup()
