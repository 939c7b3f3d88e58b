"""Run a program pinned to a core and say what it cost: CPU of the whole child tree, wall time, peak memory.

CPU time is what is compared: wall time on a shared machine is noise. Peak memory is that of the largest single
process of the tree.
"""

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Cost:
    """What a run cost; seconds and megabytes."""

    code: int
    wall_s: float
    cpu_user_s: float
    cpu_sys_s: float
    peak_rss_mb: float

    @property
    def cpu_s(self) -> float:
        """User and system time of the tree."""
        return self.cpu_user_s + self.cpu_sys_s

    def per_page(self, pages: int) -> float:
        """CPU-ms per page; infinite where nothing came of it."""
        return self.cpu_s / pages * 1000 if pages else float("inf")

    def as_json(self) -> dict[str, Any]:
        """For the raw results."""
        return {name: round(value, 4) for name, value in asdict(self).items()}


class Clock:
    """Adds up CPU and wall time of the calls it is given."""

    def __init__(self) -> None:
        self.cpu_s = self.wall_s = self.longest_s = self.longest_cpu_s = 0.0
        self.calls = 0

    def __call__(self, call: Callable[..., Any]) -> Any:
        cpu, wall = time.process_time(), time.perf_counter()
        result = call()
        took = time.perf_counter() - wall
        spent = time.process_time() - cpu
        self.cpu_s += spent
        self.longest_cpu_s = max(self.longest_cpu_s, spent)
        self.wall_s += took
        self.longest_s = max(self.longest_s, took)
        self.calls += 1
        return result


def cores() -> tuple[int, int]:
    """(the server's core, the measured program's core): the first and the last this process may use."""
    usable = sorted(os.sched_getaffinity(0))
    return usable[0], usable[-1]


def start(
    command: Sequence[str], core: int, *, log: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start a program on one core; what it prints goes to *log*."""
    output = log.open("ab") if log else None
    try:
        process = subprocess.Popen(
            command,
            preexec_fn=lambda: os.sched_setaffinity(0, {core}),  # before the program can start a thread elsewhere
            stdin=subprocess.DEVNULL,
            stdout=output or subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            env=dict(env) if env else None,
        )
    finally:
        if output:
            output.close()
    return process


def wait(process: subprocess.Popen[bytes], started: float) -> Cost:
    """Wait for the program and read what its tree cost."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.monotonic() - started
    return Cost(process.returncode, wall, usage.ru_utime, usage.ru_stime, usage.ru_maxrss / 1024)


def run(command: Sequence[str], core: int, *, log: Path | None = None, env: Mapping[str, str] | None = None) -> Cost:
    """Start, wait, measure."""
    started = time.monotonic()
    return wait(start(command, core, log=log, env=env), started)


def children(pid: int) -> list[int]:
    """Processes that a process has started and that live."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def named(name: str) -> list[int]:
    """Processes of that name."""
    found = []
    for path in Path("/proc").glob("[0-9]*/comm"):
        try:
            if path.read_text().strip() == name:
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def rss_mb(pid: int) -> float:
    """The resident memory of a living process; 0 when it is gone."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    line = next((line for line in text.splitlines() if line.startswith("VmRSS")), "VmRSS: 0 kB")
    return int(line.split()[1]) / 1024


def ticks_of(pid: int) -> int:
    """CPU time of a process, in the kernel's ticks."""
    return sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]))


def resident_bytes() -> int:
    """Resident memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
