"""Names of files that an archive, a manifest or a database states: each leads to a file inside its folder, or nowhere.

Whoever made the archive chose its names. Every reader of an archive that a file system sees calls this module before it
opens, writes or deletes a file: backups, snapshots of the frontier, committed lengths of outputs, office files. Readers
of backups open files through `open_member`, which also refuses links, devices and FIFOs.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import BinaryIO, Final

_DRIVE: Final = re.compile(r"[A-Za-z]:")
_NOT_IN_A_NAME: Final = re.compile(r"[\x00-\x1f\x7f\\]")
_MAX_CHARS: Final = 1024
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)
# Opening a FIFO without O_NONBLOCK waits until a writer comes.
_AS_FILE: Final = os.O_RDONLY | _NO_LINK | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_AS_FOLDER: Final = os.O_RDONLY | _NO_LINK | getattr(os, "O_DIRECTORY", 0)


def is_member_name(name: str) -> bool:
    """Whether a name is a relative path with `/` whose parts are all names of files: no `..`, no root, no drive."""
    return (
        0 < len(name) <= _MAX_CHARS
        and not _NOT_IN_A_NAME.search(name)
        and not _DRIVE.match(name)
        and all(part not in ("", ".", "..") for part in name.split("/"))
    )


def is_file_name(name: str) -> bool:
    """Whether a name is that of a file in a folder itself, not below."""
    return "/" not in name and is_member_name(name)


def open_member(folder: Path, name: str) -> BinaryIO:
    """Open a regular file below a folder. Raises `OSError`, also for a link in any part of the name and for what is no
    regular file, and `ValueError` for a name that leads outside."""
    if not is_member_name(name):
        raise ValueError(f"{name[:80]!r} is no name of a file in an archive")
    *folders, last = name.split("/")
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        for part in folders:
            inner = os.open(part, _AS_FOLDER, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        file = os.fdopen(os.open(last, _AS_FILE, dir_fd=descriptor), "rb")
    finally:
        os.close(descriptor)
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(0, "it is no regular file")
    return file
