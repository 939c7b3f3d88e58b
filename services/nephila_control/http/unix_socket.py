"""DIR/control.sock: how the socket of a directory is bound and reached, with a path of any length.

Invariants: only its owner may connect (mode 0600 from the moment of binding); a file that is no socket is not removed.
The caller of `bind` holds the directory's lock, so a socket that is already there belongs to a dead program.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from nephila.kernel.runtime.errors import UserError

NAME = "control.sock"
LONGEST_PATH = 100
"""Bytes of a path that every system takes as the address of a socket; a longer one goes through its directory's
descriptor."""


def bind(directory: Path, name: str = NAME) -> socket.socket:
    """Raises `UserError` if the socket cannot be bound."""
    path = directory / name
    try:
        return _bound(path)
    except OSError as error:
        raise UserError(f"cannot open {path}: {error.strerror or error}") from None


def connect(directory: Path, timeout_s: float, name: str = NAME) -> socket.socket | None:
    """Returns None if no program runs in the directory."""
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.settimeout(timeout_s)
    try:
        with _address(directory / name) as address:
            client.connect(address)
    except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
        client.close()
        return None
    except OSError as error:
        client.close()
        raise UserError(f"cannot connect to {directory / name}: {error.strerror or error}") from None
    return client


def _bound(path: Path) -> socket.socket:
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise UserError(f"{path} is no socket; move it away")
        path.unlink()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # The mask gives the mode to the inode that bind makes: between bind and a chmod any user could connect.
    before = os.umask(0o177)
    try:
        with _address(path) as address:
            listener.bind(address)
    except BaseException:
        listener.close()
        raise
    finally:
        os.umask(before)
    listener.setblocking(False)
    return listener


@contextlib.contextmanager
def _address(path: Path) -> Iterator[str]:
    """A path that is too long for an address is reached through the descriptor of its directory."""
    if len(os.fsencode(path)) <= LONGEST_PATH:
        yield str(path)
        return
    if sys.platform != "linux":
        raise UserError(f"{path} is too long for a socket (more than {LONGEST_PATH} bytes); choose a shorter --out")
    fd = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{fd}/{path.name}"
    finally:
        os.close(fd)
