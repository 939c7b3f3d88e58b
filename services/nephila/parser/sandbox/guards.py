"""Lock-down of a sandbox child: afterwards it can only compute. Runs in the child, once, before untrusted bytes.

Limits of memory, CPU time and files apply on every system. On Linux a seccomp filter permits only system calls that
read and write open descriptors, and calls for memory and time: no file, no socket, no process, no signal. Any other
call fails with EPERM, so that a library gets an error instead of a kill (abort() cannot signal either and ends as
SIGSEGV). Invariant: the process cannot undo the lock-down.

Source: seccomp(2), linux/filter.h; the numbers are those of the kernel's syscall tables.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import struct
import sys
from typing import Final

MAX_OPEN_FILES: Final = 16
CPU_S: Final = 900
"""CPU seconds of a child in its life; a limit for a child that computes without a request."""

_PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 4, 22, 38
_MODE_FILTER: Final = 2
_EPERM: Final = 1
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000

# name: (x86_64, aarch64)
_CALLS: Final = {
    "read": (0, 63),
    "write": (1, 64),
    "readv": (19, 65),
    "writev": (20, 66),
    "close": (3, 57),
    "fstat": (5, 80),
    "lseek": (8, 62),
    "ppoll": (271, 73),
    "mmap": (9, 222),
    "mprotect": (10, 226),
    "munmap": (11, 215),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "brk": (12, 214),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "sigaltstack": (131, 132),
    "setitimer": (38, 103),
    "sched_yield": (24, 124),
    "sched_getaffinity": (204, 123),
    "getcpu": (309, 168),
    "nanosleep": (35, 101),
    "clock_nanosleep": (230, 115),
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "gettimeofday": (96, 169),
    "restart_syscall": (219, 128),
    "futex": (202, 98),
    "membarrier": (324, 283),
    "rseq": (334, 293),
    "getpid": (39, 172),
    "gettid": (186, 178),
    "getrusage": (98, 165),
    "sysinfo": (99, 179),
    "times": (100, 153),
    "getrandom": (318, 278),
    "exit": (60, 93),
    "exit_group": (231, 94),
}
_MACHINES: Final = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}


def lock_down(memory_bytes: int) -> list[str]:
    """Lock this process down, with `memory_bytes` of address space beyond the present. Returns the active guards."""
    held = []
    if _limit(memory_bytes):
        held.append("limits")
    if _filter():
        held.append("seccomp")
    return held


def _limit(memory_bytes: int) -> bool:
    try:
        import resource
    except ImportError:
        return False
    limits = [
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, MAX_OPEN_FILES),
        (resource.RLIMIT_CPU, CPU_S),
    ]
    if mapped := _mapped_bytes():
        limits.append((resource.RLIMIT_AS, mapped + memory_bytes))
    for what, most in limits:
        # A lower limit may be in force already; it must not be raised.
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(what, (most, most))
    return bool(mapped)


def _mapped_bytes() -> int:
    """Address space in use; 0 if the system does not report it."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _filter() -> bool:
    """Install the seccomp filter; False if there is none for this machine."""
    machine = _MACHINES.get(platform.machine())
    if sys.platform != "linux" or machine is None:
        return False
    column, audit = machine
    code = program([numbers[column] for numbers in _CALLS.values()], audit)
    buffer = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("@HP", len(code) // 8, ctypes.addressof(buffer))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    if prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        return False
    return not prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.create_string_buffer(header, len(header)), 0, 0)


def program(numbers: list[int], audit: int) -> bytes:
    """The filter as BPF: calls of another architecture kill the process, `numbers` pass, all others fail with EPERM. At
    most 250 numbers."""
    lines = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, audit), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, 0)]
    lines += [(_EQUAL, len(numbers) - index, 0, number) for index, number in enumerate(numbers)]
    lines += [(_RETURN, 0, 0, _ERRNO | _EPERM), (_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("<HBBI", *line) for line in lines)
