"""Output whose reader is gone is dropped, and the program continues: a closed pipe, a terminal that was closed.

The result of a crawl is in its directory, and its exit code tells how it ended; both are the same without a reader of
its lines. A command that only prints, as export, ends with its reader instead.
"""

from __future__ import annotations

import errno
import io
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

READER_GONE: Final = frozenset((errno.EPIPE, errno.EIO))
"""A pipe without a reader, a terminal that was closed."""


class _DroppingFile(io.FileIO):
    """A descriptor whose writes never fail because no process reads them."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if error.errno not in READER_GONE:
                raise
            return memoryview(data).nbytes


def drop_lost_output(name: str) -> None:
    """From now on `sys.stdout` or `sys.stderr` drops output that no process reads. A stream that is not the
    interpreter's own, as in a test, stays."""
    stream = getattr(sys, name)
    if stream is None or stream is not getattr(sys, f"__{name}__"):
        return
    stream.flush()
    file = _DroppingFile(stream.fileno(), "w", closefd=False)
    # Whole lines: one that is written in two parts could be torn by those of worker processes.
    dropping = io.TextIOWrapper(
        io.BufferedWriter(file), encoding=stream.encoding, errors="backslashreplace", line_buffering=True
    )
    setattr(sys, name, dropping)
