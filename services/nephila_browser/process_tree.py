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
    pids = []
    for entry in _PROC.iterdir() if _PROC.is_dir() else ():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError, IndexError, ValueError):
            # The command in parentheses may contain any character.
            fields = (entry / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
            if int(fields[2]) == group and fields[0] != "Z":
                pids.append(int(entry.name))
    return pids


class GroupMemory:
    """Memory of the processes of a group. A reading costs a list of /proc, and one file per process that is new on the
    machine or a member: it may be taken several times a second."""

    def __init__(self, group: int) -> None:
        self._group = group
        self._others: set[int] = set()
        """Processes of the machine that are not members."""
        self._members: set[int] = set()

    def read(self) -> dict[int, int]:
        """Process id → bytes: resident pages without those that the process shares with files. Zombies have none."""
        pids = {int(name) for name in os.listdir(_PROC) if name.isdigit()} if _PROC.is_dir() else set()
        self._others &= pids
        self._members &= pids
        for pid in pids - self._others - self._members:
            with contextlib.suppress(OSError, IndexError, ValueError):
                (self._members if _group_of(pid) == self._group else self._others).add(pid)
        sizes = {}
        for pid in self._members:
            with contextlib.suppress(OSError, IndexError, ValueError):
                _, resident, shared, *_ = (_PROC / str(pid) / "statm").read_text().split()
                sizes[pid] = (int(resident) - int(shared)) * _PAGE_BYTES
        return sizes


def _group_of(pid: int) -> int:
    """The group of a process. Raises `OSError`, or `ValueError` for a line of another form."""
    return int((_PROC / str(pid) / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()[2])


def is_renderer(pid: int) -> bool:
    """Whether a process of Chromium runs the scripts of pages."""
    with contextlib.suppress(OSError):
        return b"--type=renderer" in (_PROC / str(pid) / "cmdline").read_bytes()
    return False


def kill(pid: int) -> None:
    """Kill one process."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


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
