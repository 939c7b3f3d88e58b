"""The program of a sandbox child: `python -m nephila.parser.sandbox.child MODULE PARENT MEMORY_BYTES`.

It imports MODULE, locks itself down, says that it is ready, and from then on answers each payload with what
`MODULE.run(payload)` returns: bytes in, bytes out, on the socket that is its standard input. Nothing can be opened or
imported after that: what a task needs is imported with its module. It ends with its parent, whose signals it ignores.
"""

from __future__ import annotations

import codecs
import gc
import importlib
import os
import signal
import sys
from collections.abc import Callable

from nephila.kernel.runtime.parent_death import die_with
from nephila.parser.sandbox.frames import MAX_TEXT_CHARS, REQUEST_HEAD, Status, response
from nephila.parser.sandbox.guards import lock_down

_CHANNEL = 0
_CHUNK_BYTES = 1 << 20
_CODECS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "ascii", "latin-1", "cp1252")
"""Python loads a codec when it is first used, and then it is too late."""
GRACE_S = 1.0
"""After its time a call ends the process by itself, should the parent stand still."""


def main(arguments: list[str]) -> None:
    """See the module."""
    module, parent, memory_bytes = arguments[0], int(arguments[1]), int(arguments[2])
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    die_with(parent)
    # What a library prints must not reach the channel.
    os.dup2(2, 1)
    for name in _CODECS:
        codecs.lookup(name)
    try:
        run: Callable[[bytes], bytes] = importlib.import_module(module).run
    except Exception as error:
        _write(response(Status.IMPORT_FAILED, _error_text(error)))
        return
    gc.collect()
    gc.freeze()
    _write(response(Status.READY, " ".join(lock_down(memory_bytes)).encode()))
    while head := _read(REQUEST_HEAD.size):
        length, wall_s = REQUEST_HEAD.unpack(head)
        _write(_respond(run, _read(length), wall_s))


def _respond(run: Callable[[bytes], bytes], payload: bytes, wall_s: float) -> bytes:
    signal.setitimer(signal.ITIMER_REAL, wall_s + GRACE_S)
    try:
        return response(Status.DONE, run(payload))
    except MemoryError:
        return response(Status.MEMORY, b"")
    except Exception as error:
        return response(Status.ERROR, _error_text(error))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _error_text(error: Exception) -> bytes:
    return ascii(f"{type(error).__name__}: {error}")[1:-1][:MAX_TEXT_CHARS].encode()


def _read(length: int) -> bytes:
    """Exactly so many bytes; none when the parent is gone."""
    data = bytearray()
    while len(data) < length:
        chunk = os.read(_CHANNEL, min(length - len(data), _CHUNK_BYTES))
        if not chunk:
            os._exit(0)
        data += chunk
    return bytes(data)


def _write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(_CHANNEL, view) :]


if __name__ == "__main__":
    main(sys.argv[1:])
