"""What goes over the socket between parent and child: lengths, the time a call has, how it ended. Pure."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final

REQUEST_HEAD: Final = struct.Struct("<Id")
"""Before a payload: its length in bytes, seconds that the call may take."""
RESPONSE_HEAD: Final = struct.Struct("<BI")
"""Before an answer: a `Status`, its length in bytes."""
MAX_TEXT_CHARS: Final = 500
"""Of an error's words."""


class Status(IntEnum):
    """What an answer is."""

    READY = 1
    """The child is locked down; its text names the guards that hold."""
    IMPORT_FAILED = 2
    """The task's module cannot be imported here; the text says why."""
    DONE = 3
    """The result."""
    ERROR = 4
    """The task raised an exception; the text names it."""
    MEMORY = 5
    """The task asked for more memory than it may have."""


def response(status: Status, data: bytes) -> bytes:
    """An answer as it travels."""
    return RESPONSE_HEAD.pack(status, len(data)) + data
