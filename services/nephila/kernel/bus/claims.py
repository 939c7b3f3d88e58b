"""Where messages lie that are too large for a record: the claim check of the Kafka bus, over a directory.

The object is written, and fsynced, before the record that names it; it is removed by age, when the log that names it
has been deleted as well. Names are hashes of the content: the same message again is the same object. The directory is
one that all members see; an object store has the same two verbs.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Protocol

from nephila.kernel.errors import PermanentError, TemporaryError


class Claims(Protocol):
    """A store of objects by name; called on a thread of its own."""

    def put(self, data: bytes) -> str:
        """Keep it durably; returns its name. Raises `TemporaryError`."""

    def get(self, name: str) -> bytes:
        """What `put` was given. Raises `PermanentError` when it is gone, `TemporaryError` when it cannot be read."""


class DirectoryClaims:
    """See the module."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, data: bytes) -> str:
        """See `Claims.put`."""
        name = hashlib.sha256(data).hexdigest()
        path = self.folder / name[:2] / name
        part = path.with_name(f".{name}.{os.getpid()}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with part.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        except OSError as error:
            raise TemporaryError(f"{self.folder}: {error.strerror}") from None
        return name

    def get(self, name: str) -> bytes:
        """See `Claims.get`."""
        if len(name) != 64 or not name.isalnum():
            raise PermanentError(f"no name of an object: {name[:80]!r}")
        try:
            return (self.folder / name[:2] / name).read_bytes()
        except FileNotFoundError:
            raise PermanentError(f"object {name} is gone from {self.folder}") from None
        except OSError as error:
            raise TemporaryError(f"{self.folder}: {error.strerror}") from None

    def expire(self, before: float) -> int:
        """Remove what was written before an instant, in seconds since 1970 UTC; returns how many. O(objects)."""
        removed = 0
        for path in self.folder.glob("??/*"):
            try:
                if path.stat().st_mtime < before:
                    path.unlink()
                    removed += 1
            except FileNotFoundError:
                continue
        return removed
