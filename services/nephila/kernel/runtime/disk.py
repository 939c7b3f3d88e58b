"""Free space and size of the disk of a directory."""

from __future__ import annotations

import shutil
from pathlib import Path


def free_bytes(directory: Path) -> int:
    """Bytes that this user may still write there, or where the directory would be created."""
    return shutil.disk_usage(_existing(directory)).free


def size_bytes(directory: Path) -> int:
    """Bytes of that disk, used and free."""
    return shutil.disk_usage(_existing(directory)).total


def _existing(directory: Path) -> Path:
    existing = directory.absolute()
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    return existing
