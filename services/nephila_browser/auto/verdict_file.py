"""The file of the verdicts of `render: auto`: a restart continues with them, `explain` reads them. One JSON document.

The file is replaced as a whole (write, rename). Without fsync: a file that a crash has damaged is reported and ignored,
and the verdicts are learnt again.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

import msgspec
from nephila.kernel.runtime.errors import UNREADABLE

from nephila_browser.auto.evidence import PROBE_EVERY

log = logging.getLogger(__name__)


class StoredVerdict(msgspec.Struct):
    """The comparisons of one URL pattern."""

    job: str
    pattern: str
    needed: list[bool]
    """Of the last comparisons, the newest last: whether the page needed a browser."""
    pages: int = 0
    """Pages since the last comparison began."""
    every: int = PROBE_EVERY
    """Pages between two comparisons."""


class VerdictFile:
    """Reads and writes one file; an empty path: nothing is stored."""

    def __init__(self, path: str) -> None:
        self._path = Path(path) if path else None

    def load(self) -> list[StoredVerdict]:
        """The stored verdicts."""
        if self._path is None:
            return []
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=list[StoredVerdict])
        except FileNotFoundError:
            return []
        except (OSError, *UNREADABLE) as error:
            log.warning("the verdicts %s are not read: %s", self._path, error)
            return []

    def save(self, verdicts: list[StoredVerdict]) -> None:
        """Replace the file; may run in a thread. A failure is logged: the verdicts are learnt again."""
        if self._path is None:
            return
        part = self._path.with_name(self._path.name + f".{os.getpid()}.part")
        try:
            part.write_bytes(msgspec.json.encode(verdicts))
            os.replace(part, self._path)
        except OSError as error:
            log.warning("the verdicts %s are not written: %s", self._path, error.strerror or error)
