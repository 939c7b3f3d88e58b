"""Frames on the socket between parent and child: request and response heads, status. Pure."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final

REQUEST_HEAD: Final = struct.Struct("<Id")
"""Before a payload: its length in bytes, time limit in seconds."""
RESPONSE_HEAD: Final = struct.Struct("<BI")
"""Before a result: `CallStatus`, length in bytes."""
MAX_TEXT_CHARS: Final = 500
"""Characters of an error text."""


class CallStatus(IntEnum):
    READY = 1
    """The child is locked down; the text names the active guards."""
    IMPORT_FAILED = 2
    """The task's module cannot be imported; the text is the reason."""
    DONE = 3
    """The result."""
    ERROR = 4
    """The task raised an exception; the text names it."""
    MEMORY = 5
    """The task exceeded its memory limit."""


def response(status: CallStatus, data: bytes) -> bytes:
    return RESPONSE_HEAD.pack(status, len(data)) + data
