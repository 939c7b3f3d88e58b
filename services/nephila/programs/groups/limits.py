"""A frontier belongs to one process or to groups; the other kind cannot continue it."""

from __future__ import annotations

from pathlib import Path

from nephila.kernel.runtime.errors import UsageError


def check_kind(directory: Path, *, has_parts: bool, groups: bool) -> None:
    """Raise `UsageError` where the frontier of a directory is of the other kind. `has_parts`: each of its partitions
    has a log of its own."""
    if has_parts and not groups:
        raise UsageError(f"the frontier in {directory} belongs to groups: add --groups and --workers N")
    if groups and not has_parts:
        raise UsageError(f"the frontier in {directory} belongs to one process: leave --groups out")
