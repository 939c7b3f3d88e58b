"""Memory and CPU of the container: what is used and what is allowed, from cgroup files of version 1 or 2.

A limit may be set on the own cgroup or on one above it, so every level up to the root is read, and the machine as the
last level. Memory in use is what the kernel cannot drop: anonymous and shared pages, not the page cache. Without a CPU
limit, the CPU time of this process counts against the cores it may use: other programs are no reason to slow down.

A reading opens some ten small files, about 0.2 ms.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from nephila.kernel.process.process_setup import usable_cores

USED = ("anon", "shmem", "slab_unreclaimable", "sock", "kernel_stack", "pagetables")
"""What the kernel cannot drop, in memory.stat of version 2. `sock`: bytes received that the program has not read."""
UNLIMITED = 1 << 60
"""Version 1 writes "no limit" as a number near 2^63."""
_CGROUPS = Path("sys/fs/cgroup")


class Usage(msgspec.Struct, frozen=True):
    """One reading. `memory_pressure`: share of the last ten seconds in which a task waited for memory (PSI); 0 where
    the kernel does not report it. `cpu_s` rises; only differences between readings of one object have a meaning."""

    memory_bytes: int
    memory_limit_bytes: int
    cpu_s: float
    cores: float
    memory_pressure: float = 0.0


class _Memory(msgspec.Struct, frozen=True):
    used: int
    limit: int

    @property
    def left(self) -> int:
        return self.limit - self.used


class Container:
    """Reads the container of this process. `root` is the root of the file system; tests set another one."""

    def __init__(self, root: Path = Path("/"), cores: int | None = None) -> None:
        self._root = root
        self._cores = cores or usable_cores()
        groups = _groups(root / "proc/self/cgroup")
        base = root / _CGROUPS
        self._unified = _levels(base, groups.get("", "/")) if (base / "cgroup.controllers").exists() else ()
        self._memory = _levels(base / "memory", groups.get("memory", "/"))
        self._cpu = _levels(base / "cpu", groups.get("cpu", "/")) or _levels(
            base / "cpu,cpuacct", groups.get("cpu", "/")
        )
        self._cpuacct = _levels(base / "cpuacct", groups.get("cpuacct", "/")) or self._cpu

    def read(self) -> Usage:
        """Usage and limits at this moment. Where nothing can be read, the limits are so high that they never bind."""
        memory = min(self._memories(), key=lambda limit: limit.left, default=_Memory(0, UNLIMITED))
        cpu_s, cores = self._cpu_time()
        return Usage(memory.used, memory.limit, cpu_s, cores, self._pressure())

    # ---- memory

    def _memories(self) -> Iterator[_Memory]:
        for level in self._unified:
            limit = _number(level / "memory.max")
            if limit is not None and limit > 0:
                fields = _fields(level / "memory.stat")
                yield _Memory(sum(fields.get(name, 0) for name in USED), limit)
        for level in self._memory:
            limit = _number(level / "memory.limit_in_bytes")
            if limit is not None and 0 < limit < UNLIMITED:
                fields = _fields(level / "memory.stat")
                yield _Memory(fields.get("total_rss", 0) + fields.get("total_shmem", 0), limit)
        machine = _fields(self._root / "proc/meminfo", 1024)
        total, available = machine.get("MemTotal:"), machine.get("MemAvailable:")
        if total and available is not None:
            yield _Memory(total - available, total)

    def _pressure(self) -> float:
        """From the own cgroup: "some avg10=1.25 …" in percent."""
        for level in self._unified[:1]:
            try:
                words = (level / "memory.pressure").read_text().split()
                return float(words[1].removeprefix("avg10=")) / 100
            except (OSError, ValueError, IndexError):
                return 0.0
        return 0.0

    # ---- CPU

    def _cpu_time(self) -> tuple[float, float]:
        """CPU seconds used so far and the cores allowed, of the level with the lowest limit."""
        limits = [(cores, used) for cores, used in self._cpu_limits() if cores < self._cores]
        if not limits:
            return time.process_time(), self._cores
        cores, used = min(limits)
        return used, cores

    def _cpu_limits(self) -> Iterator[tuple[float, float]]:
        for level in self._unified:
            quota, _, period = _text(level / "cpu.max").partition(" ")
            if quota.isdigit() and period.strip().isdigit():
                yield int(quota) / int(period), _fields(level / "cpu.stat").get("usage_usec", 0) / 1e6
        for level, account in zip(self._cpu, self._cpuacct, strict=False):
            allowed, every = _number(level / "cpu.cfs_quota_us"), _number(level / "cpu.cfs_period_us")
            if allowed and every and min(allowed, every) > 0:
                yield allowed / every, (_number(account / "cpuacct.usage") or 0) / 1e9


def _groups(path: Path) -> dict[str, str]:
    """Controller → path of the own cgroup; the controller of version 2 is empty."""
    paths = {}
    for line in _text(path).splitlines():
        _, _, rest = line.partition(":")
        names, _, group = rest.partition(":")
        for name in names.split(","):
            paths[name] = group
    return paths


def _levels(mount: Path, group: str) -> tuple[Path, ...]:
    """The directory of a cgroup and those above it. In a container the path may be that of the host, while the mount
    shows the own cgroup as its root."""
    if not mount.is_dir():
        return ()
    own = mount / group.strip("/")
    if ".." in own.parts or not own.is_dir():
        return (mount,)
    return (own, *(above for above in own.parents if above == mount or mount in above.parents))


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, ValueError):
        return ""


def _number(path: Path) -> int | None:
    """The number in a file; None for "max" and for a file that is missing."""
    text = _text(path).strip()
    return int(text) if text.lstrip("-").isdigit() else None


def _fields(path: Path, unit: int = 1) -> dict[str, int]:
    """Name → number, of lines "name number"."""
    fields = {}
    for line in _text(path).splitlines():
        words = line.split()
        if len(words) >= 2 and words[1].isdigit():
            fields[words[0]] = int(words[1]) * unit
    return fields
