"""Free space and size of the disk of a directory, and what makes its names durable."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NamedTuple


class DiskSpace(NamedTuple):
    free_bytes: int
    """Bytes that this user may still write."""
    size_bytes: int
    """Bytes of the disk, used and free."""


def disk_space(directory: Path) -> DiskSpace:
    """Reads the disk of a directory, or of the one in which it would be created."""
    usage = shutil.disk_usage(_existing(directory))
    return DiskSpace(usage.free, usage.total)


def sync_directory(directory: Path) -> None:
    """Make new names in a directory durable; the fsync of a file does not."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _existing(directory: Path) -> Path:
    existing = directory.absolute()
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    return existing
