"""Directories of browser profiles. Each has a file that its program holds locked: one without a lock is abandoned.

A program that is killed leaves its profiles, some 10 MB each. The kernel ends the browser in them.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

PREFIX: Final = "nephila-browser-"
LOCK: Final = "owner"


class Profile:
    """A new directory that belongs to this process."""

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix=PREFIX)
        self._lock = os.open(os.path.join(self.path, LOCK), os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def delete(self) -> None:
        """Delete it with all files. Called once."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def delete_abandoned() -> list[str]:
    """Delete the profiles of programs that were killed; returns their paths. O(files in them)."""
    paths = []
    for path in Path(tempfile.gettempdir()).glob(PREFIX + "*"):
        with contextlib.suppress(OSError):  # no lock yet, locked, or of another user
            lock = os.open(path / LOCK, os.O_RDWR)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
                paths.append(str(path))
            finally:
                os.close(lock)
    return paths
