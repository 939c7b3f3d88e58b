"""Memory, CPU and end of a browser's processes, from /proc. A browser is the leader of a process group of its own."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

_PROC = Path("/proc")
_TICK_S = 1 / os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 0.01
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def members_of(group: int) -> list[int]:
    """Processes of a group that run; zombies are left out. O(processes of the machine)."""
    found = []
    for entry in _PROC.iterdir() if _PROC.is_dir() else ():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError, IndexError, ValueError):
            # The command in parentheses may contain any character.
            fields = (entry / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
            if int(fields[2]) == group and fields[0] != "Z":
                found.append(int(entry.name))
    return found


def memory_of(group: int) -> int:
    """Memory of a group in bytes: resident pages of each process without those it shares with files."""
    total = 0
    for pid in members_of(group):
        with contextlib.suppress(OSError, IndexError, ValueError):
            _, resident, shared, *_ = (_PROC / str(pid) / "statm").read_text().split()
            total += (int(resident) - int(shared)) * _PAGE_BYTES
    return total


def cpu_of(group: int) -> float:
    """CPU of a group in seconds, of children that have ended as well: those that a member has waited for."""
    ticks = 0
    for pid in members_of(group):
        with contextlib.suppress(OSError, IndexError, ValueError):
            fields = (_PROC / str(pid) / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return ticks * _TICK_S


def kill_group(group: int) -> None:
    """Kill all processes of a group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
