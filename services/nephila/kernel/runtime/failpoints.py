"""Failpoints: places where a test or a bench makes the process kill itself, as kill -9 would.

`NEPHILA_FAILPOINT=name` kills at the first pass of that point, `name:n` at the n-th, `parse:text` at each page whose
URL contains the text. When it is not set, a pass costs one comparison.
"""

from __future__ import annotations

import os
import signal

POINTS = (
    "sink_flush_before",
    "sink_flush_after",
    "dataset_uploaded",
    "frontier_commit_before",
    "frontier_commit_after",
    "snapshot",
    "restore",
)
_name, _, _what = os.environ.get("NEPHILA_FAILPOINT", "").partition(":")
_left = int(_what) if _what.isdecimal() else 1


def reach(name: str) -> None:
    """Kill the process when this failpoint is set."""
    global _left
    if name == _name:
        _left -= 1
        if _left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)


def reach_with(name: str, text: str) -> None:
    """Kill the process when this failpoint is set and the text contains its argument."""
    if name == _name and _what in text:
        os.kill(os.getpid(), signal.SIGKILL)
