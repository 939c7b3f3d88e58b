"""A cgroup of one browser: the kernel holds its limit of memory. Made where this process may; None elsewhere.

At the limit the kernel kills one process: a renderer, since Chromium marks those as the first to go. cgroup v2: beside
the own cgroup, whose parent has memory under control (a user of systemd, a delegated service). cgroup v1: below it.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from pathlib import Path
from typing import Final, NamedTuple

PREFIX: Final = "nephila-browser-"
ROOT: Final = Path("/sys/fs/cgroup")
MEMBERSHIP: Final = Path("/proc/self/cgroup")
_NUMBERS: Final = itertools.count()


class _Files(NamedTuple):
    """Names of files in a cgroup."""

    limit: str
    swap: str
    """None of a browser is swapped, where the kernel counts swap: it would grow without an end."""
    events: str


_V2: Final = _Files("memory.max", "memory.swap.max", "memory.events")
_V1: Final = _Files("memory.limit_in_bytes", "memory.swappiness", "memory.oom_control")


class MemoryCgroup:
    """A directory of the cgroup file system."""

    def __init__(self, path: Path, files: _Files) -> None:
        self.path = path
        self._files = files
        self._procs = os.open(path / "cgroup.procs", os.O_WRONLY)

    @classmethod
    def make(cls, limit_bytes: int, root: Path = ROOT, membership: Path = MEMBERSHIP) -> MemoryCgroup | None:
        """A cgroup with this limit, or None."""
        with contextlib.suppress(OSError):
            parent, files = _place(root, membership.read_text())
            path = parent / f"{PREFIX}{os.getpid()}-{next(_NUMBERS)}"
            path.mkdir()
            try:
                (path / files.limit).write_text(str(limit_bytes))
                with contextlib.suppress(OSError):
                    (path / files.swap).write_text("0")
                return cls(path, files)
            except OSError:
                path.rmdir()
        return None

    def enter(self) -> None:
        """Move the calling process here. For a child between fork and exec: it fails without an error."""
        with contextlib.suppress(OSError):
            os.write(self._procs, b"0")

    def kills(self) -> int:
        """Processes that were killed at the limit."""
        with contextlib.suppress(OSError):
            for line in (self.path / self._files.events).read_text().splitlines():
                name, _, count = line.partition(" ")
                if name == "oom_kill":
                    return int(count)
        return 0

    def delete(self) -> bool:
        """Delete it after the end of its processes; False: the kernel still counts one, call again."""
        if self._procs >= 0:
            os.close(self._procs)
            self._procs = -1
        try:
            self.path.rmdir()
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True


def delete_abandoned_cgroups(root: Path = ROOT, membership: Path = MEMBERSHIP) -> list[str]:
    """Delete the cgroups of programs that were killed; returns their names."""
    names = []
    with contextlib.suppress(OSError):
        for path in _place(root, membership.read_text())[0].glob(PREFIX + "*"):
            owner = path.name.removeprefix(PREFIX).partition("-")[0]
            if not Path("/proc", owner).exists():
                with contextlib.suppress(OSError):  # processes of it still end
                    path.rmdir()
                    names.append(path.name)
    return names


def _place(root: Path, membership: str) -> tuple[Path, _Files]:
    """Where a cgroup is made, from the lines of /proc/self/cgroup. Raises `OSError` where there is no place."""
    for line in membership.splitlines():
        _, controllers, path = line.split(":", 2)
        own = root / path.lstrip("/")
        if not controllers and (own / _V2.limit).exists() and (own.parent / "cgroup.procs").exists():
            return own.parent, _V2
        if "memory" in controllers.split(","):
            return root / "memory" / path.lstrip("/"), _V1
    raise FileNotFoundError
