"""A frontier that groups have divided cannot be continued by one process."""

from __future__ import annotations

from pathlib import Path

from nephila.kernel.runtime.errors import UsageError


def check_kind(directory: Path, *, has_parts: bool, groups: bool) -> None:
    """Raise `UsageError` where the frontier of a directory belongs to groups and the run has none. `has_parts`: each of
    its partitions has a log of its own."""
    if has_parts and not groups:
        raise UsageError(f"the frontier in {directory} belongs to groups: add --groups")
