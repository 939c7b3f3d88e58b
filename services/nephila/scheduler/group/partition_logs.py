"""Where the partitions of groups have their logs, below the frontier of a directory."""

from __future__ import annotations

import shutil
from pathlib import Path

PARTITIONS = 16
"""Partitions of a directory: a power of two, and the largest number of groups."""
RELAY = "seeds.relay"
"""The file of seeds between partitions."""


def ranges(groups: int, partitions: int = PARTITIONS) -> list[range]:
    """The partitions of each group."""
    return [range(partitions * i // groups, partitions * (i + 1) // groups) for i in range(groups)]


def directory_of(frontier: Path, partition: int) -> Path:
    """The directory of a partition."""
    return frontier / f"{partition:02}"


def has_parts(frontier: Path) -> bool:
    """Whether each partition has a log of its own. While a frontier is divided both are there: it is divided when the
    last partition is in its place."""
    last = any(directory_of(frontier, PARTITIONS - 1).glob("*.log"))
    return last or (any(frontier.glob("*/*.log")) and not any(frontier.glob("*.log")))


def remove_parts(frontier: Path) -> None:
    """Remove what an interrupted division has left. Raises `OSError`."""
    for number in range(PARTITIONS):
        if directory_of(frontier, number).exists():
            shutil.rmtree(directory_of(frontier, number))


def remove_one_log(frontier: Path) -> None:
    """Remove what the one log of a divided frontier has left, its segments last: while there is one, the next start
    goes on with this. Raises `OSError`."""
    for path in sorted(frontier.iterdir(), key=lambda path: path.suffix == ".log"):
        if path.is_file() and path.name != RELAY:
            path.unlink()
