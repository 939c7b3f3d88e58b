"""The seen set of one job: an MD5 trie. A view of the commit log; snapshots of that log name the files it writes."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path

from nephila.native import Trie

Seen = Trie


def new_seen(directory: str, number: int) -> Seen:
    """The seen set of the job of that number; in memory only without a directory."""
    return Trie(directory, f"{number:05d}")


def drop_others(directory: str, numbers: Container[int]) -> None:
    """Delete the files of deleted jobs: all but those of `numbers`. O(files in the directory)."""
    on_disk = {path.name.split("-")[1] for path in Path(directory).glob("seen-*.run")} if directory else set()
    for name in on_disk:
        if name.isdigit() and int(name) not in numbers:
            Trie(directory, name).cleanup()
