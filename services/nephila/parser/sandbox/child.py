"""The program of a sandbox child: `python -m nephila.parser.sandbox.child MODULE PARENT MEMORY_BYTES ARGUMENT…`.

It imports MODULE, calls its `prepare` with the arguments if there are any, locks itself down, reports READY, and then
answers each payload with the result of `MODULE.run(payload)`. Payloads and results are bytes on the socket that was its
standard input. After the lock-down no file can be opened and no module imported, so MODULE imports all that its task
needs. The process ignores SIGINT and SIGTERM and ends with its parent.
"""

from __future__ import annotations

import codecs
import contextlib
import gc
import importlib
import os
import signal
import sys
from collections.abc import Callable

from nephila.kernel.process.parent_death import die_with
from nephila.kernel.process.stop_signals import STOP_SIGNALS
from nephila.parser.sandbox.frames import MAX_TEXT_CHARS, REQUEST_HEAD, CallStatus, response
from nephila.parser.sandbox.guards import lock_down

_CHANNEL = 9
"""Number of the socket: libraries read and write 0, 1 and 2."""
_CHUNK_BYTES = 1 << 20
_CODECS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "ascii", "latin-1", "cp1252")
"""Loaded before the lock-down: Python loads a codec when it is first used."""
GRACE_S = 1.0
"""Seconds after its time limit at which a call ends the process by itself, if the parent does not."""


def main(arguments: list[str]) -> None:
    """Run the child until its parent closes the socket."""
    module, parent, memory_bytes = arguments[0], int(arguments[1]), int(arguments[2])
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    die_with(parent)
    _be_killed_first()
    _open_channel()
    for name in _CODECS:
        codecs.lookup(name)
    try:
        task = importlib.import_module(module)
        run: Callable[[bytes], bytes] = task.run
        if len(arguments) > 3:
            task.prepare(*arguments[3:])
    except Exception as error:
        _write(response(CallStatus.IMPORT_FAILED, _error_text(error)))
        return
    gc.collect()
    gc.freeze()
    _write(response(CallStatus.READY, " ".join(lock_down(memory_bytes)).encode()))
    while head := _read(REQUEST_HEAD.size):
        length, wall_s = REQUEST_HEAD.unpack(head)
        _write(_respond(run, _read(length), wall_s))


def _open_channel() -> None:
    """Move the socket from standard input, which is empty then. Processes that this one starts do not inherit it."""
    os.dup2(0, _CHANNEL, inheritable=False)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    os.close(nothing)


def _be_killed_first() -> None:
    """Where the container has no memory left, the kernel kills this process and not its parent: the parent repeats or
    gives up one call. Only on Linux."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")


def _respond(run: Callable[[bytes], bytes], payload: bytes, wall_s: float) -> bytes:
    signal.setitimer(signal.ITIMER_REAL, wall_s + GRACE_S)
    try:
        return response(CallStatus.DONE, run(payload))
    except MemoryError:
        return response(CallStatus.MEMORY, b"")
    except Exception as error:
        return response(CallStatus.ERROR, _error_text(error))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _error_text(error: Exception) -> bytes:
    return ascii(f"{type(error).__name__}: {error}")[1:-1][:MAX_TEXT_CHARS].encode()


def _read(length: int) -> bytes:
    """Exactly `length` bytes. The process exits when the parent has closed the socket."""
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
