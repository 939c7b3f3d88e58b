"""The logs of all partitions at one instant, while programs append to them.

A page has ended in the log of its partition after the logs of other partitions had its links. If these were copied
before and the first one after, the copy would have the page and not its links. So the lengths of all logs are read
twice: where the two readings are equal, they are those of the instant between them. A reading takes microseconds, and
the program is not asked. The file of seeds between partitions belongs to the same instant; it is small, and its content
is read.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
from nephila.kernel.runtime.errors import UserError
from nephila.scheduler.durability.commit_log import CommitLog
from nephila.scheduler.group.partition_logs import RELAY

READINGS: Final = 20_000
"""Readings before giving up. A crawl at full speed writes its logs some thousand times a second."""


class LogCut(msgspec.Struct, frozen=True):
    """What the logs held at one instant."""

    lengths: dict[Path, int]
    """Bytes of each segment."""
    relay: bytes
    """Seeds between partitions."""


def cut_of(frontier: Path, logs: Sequence[CommitLog]) -> LogCut:
    """The logs of a frontier at one instant. Raises `FileNotFoundError` when a segment is gone, and `UserError`."""
    before: LogCut | None = None
    for _ in range(READINGS):
        cut = LogCut({path: path.stat().st_size for path in segments(logs)}, _relay(frontier))
        if cut == before and list(cut.lengths) == segments(logs):
            return cut
        before = cut
    raise UserError(f"the logs in {frontier} are written all the time; repeat the command")


def segments(logs: Sequence[CommitLog]) -> list[Path]:
    """The files of all segments."""
    return [log.segment(number) for log in logs for number in log.segments()]


def _relay(frontier: Path) -> bytes:
    with contextlib.suppress(FileNotFoundError):
        return (frontier / RELAY).read_bytes()
    return b""
