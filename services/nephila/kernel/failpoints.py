"""Places where a test or a bench can make the program kill itself as kill -9 would.

`NEPHILA_FAILPOINT=name` kills at the first passage of that point, `name:n` at the n-th. Unset, a passage costs one
comparison.
"""

from __future__ import annotations

import os
import signal

POINTS = (
    "sink_flush_before",
    "sink_flush_after",
    "frontier_commit_before",
    "frontier_commit_after",
    "snapshot",
    "restore",
)
_name, _, _nth = os.environ.get("NEPHILA_FAILPOINT", "").partition(":")
_left = int(_nth or 1)


def reach(name: str) -> None:
    """Die here when this is the point asked for."""
    global _left
    if name == _name:
        _left -= 1
        if _left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
