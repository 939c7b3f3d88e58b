"""Setup of each process of the program: event loop, garbage collector, memory allocator, open files."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import os
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_KEEP_BYTES = 64 << 20
_OPEN_FILES = 65_536
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3


def run_loop(main: Coroutine[Any, Any, T]) -> T:
    """Run on uvloop where it is installed.

    Imported modules are never freed and messages have no cycles, so the collector runs rarely. That saves 3 % CPU per
    page.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    keep_memory()
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main)
    return uvloop.run(main)


def keep_memory() -> None:
    """Let the C library keep freed memory, up to `_KEEP_BYTES`, instead of a request to the kernel for each large page.
    Only with glibc (mallopt(3)); elsewhere this has no effect."""
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, 32 << 20)
        mallopt(_M_TRIM_THRESHOLD, _KEEP_BYTES)
        mallopt(_M_TOP_PAD, 4 << 20)


def free_unused_memory() -> None:
    """Return memory that the C library keeps to the system (malloc_trim(3)), which takes some milliseconds. Only with
    glibc; elsewhere this has no effect."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def raise_open_files() -> None:
    """Raise the soft limit of open files to `_OPEN_FILES`, or to a hard limit below: a hundred connections and their
    files need it."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        enough = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _OPEN_FILES)
        if soft != resource.RLIM_INFINITY and soft < enough:
            resource.setrlimit(resource.RLIMIT_NOFILE, (enough, hard))


def can_have_workers() -> bool:
    """Whether this system hands descriptors of sockets to child processes."""
    return os.name == "posix"


def usable_cores() -> int:
    """Cores that this process may run on."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        return os.cpu_count() or 1
