"""Free space on the disk of a directory."""

from __future__ import annotations

import shutil
from pathlib import Path


def free_bytes(directory: Path) -> int:
    """Bytes that this user may still write there, or where the directory would be created."""
    existing = directory.absolute()
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    return shutil.disk_usage(existing).free
