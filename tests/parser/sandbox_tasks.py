"""What the sandbox's tests run in a child: the payload is the name of a misdeed."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

from nephila.parser.sandbox import child


def run(payload: bytes) -> bytes:
    """Do what the payload says."""
    word, _, rest = payload.partition(b" ")
    return ACTS[word](rest)


def _spin(rest: bytes) -> bytes:
    while True:
        pass


def _sleep(rest: bytes) -> bytes:
    time.sleep(float(rest))
    return b"slept"


def _eat(rest: bytes) -> bytes:
    held = []
    while True:
        held.append(bytearray(8 << 20))


def _raise(rest: bytes) -> bytes:
    raise ValueError("bad \x1b[31m payload")


def _abort(rest: bytes) -> bytes:
    os.abort()


def _segfault(rest: bytes) -> bytes:
    ctypes.string_at(0)
    return b""


def _leave(rest: bytes) -> bytes:
    os._exit(3)


def _echo(rest: bytes) -> bytes:
    return rest


def _big(rest: bytes) -> bytes:
    return bytes(int(rest))


def _forge(rest: bytes) -> bytes:
    os.write(child._CHANNEL, b"\x09\xff\xff\xff\x7f")
    time.sleep(60)
    return b""


def _chatter(rest: bytes) -> bytes:
    print("a library that talks")
    sys.stdout.flush()
    return b"said"


def _listen(rest: bytes) -> bytes:
    return f"{sys.stdin.read()!r} {os.read(0, 10)!r}".encode()


def prepare(*words: str) -> None:
    """Keep the arguments of the task."""
    _prepared.extend(words)


_prepared: list[str] = []


def _arguments(rest: bytes) -> bytes:
    return " ".join(_prepared).encode()


def _pid(rest: bytes) -> bytes:
    return str(os.getpid()).encode()


def _surroundings(rest: bytes) -> bytes:
    return "\n".join(os.environ).encode()


_INSIDE: dict[bytes, Any] = {
    b"read": lambda: Path("/etc/hostname").read_bytes(),
    b"write": lambda: Path("/dev/null").write_bytes(b"x"),
    b"connect": socket.socket,
    b"fork": os.fork,
    b"exec": lambda: os.execv("/bin/true", ["true"]),
    b"kill": lambda: os.kill(os.getppid(), signal.SIGCONT),
}


def _try(rest: bytes) -> bytes:
    try:
        _INSIDE[rest]()
    except OSError as error:
        return f"refused: {error.errno}".encode()
    return b"done"


ACTS = {
    b"spin": _spin,
    b"sleep": _sleep,
    b"eat": _eat,
    b"raise": _raise,
    b"abort": _abort,
    b"segfault": _segfault,
    b"leave": _leave,
    b"echo": _echo,
    b"big": _big,
    b"forge": _forge,
    b"chatter": _chatter,
    b"listen": _listen,
    b"arguments": _arguments,
    b"pid": _pid,
    b"surroundings": _surroundings,
    b"try": _try,
}
