"""The header of a gzip member (RFC 1952), so that its data can be inflated raw. Pure.

The trailer (checksum and size) is not checked: servers leave it out or send a wrong one, and browsers ignore it. A body
whose deflate stream has ended is whole.
"""

from __future__ import annotations

from typing import Final

MAX_HEADER_BYTES: Final = 4096
TRAILER_BYTES: Final = 8
RAW_DEFLATE: Final = -15
"""`wbits` of the data behind the header."""
_START: Final = b"\x1f\x8b\x08"
_CHECKSUM, _EXTRA, _NAME, _COMMENT, _RESERVED = 2, 4, 8, 16, 0xE0


def data_start(data: bytes, at: int = 0) -> int:
    """Where the deflate stream of the member at `at` begins; -1: its header has not arrived as a whole.

    Raises `ValueError` if no member begins there, and above MAX_HEADER_BYTES.
    """
    head = data[at : at + MAX_HEADER_BYTES + 1]
    if not head.startswith(_START[: len(head)]):
        raise ValueError("incorrect header")
    end = _length(head)
    if end > MAX_HEADER_BYTES or (end < 0 and len(head) > MAX_HEADER_BYTES):
        raise ValueError("a header over 4 KiB")
    return at + end if end >= 0 else -1


def _length(head: bytes) -> int:
    if len(head) < 10:
        return -1
    flags, end = head[3], 10
    if flags & _RESERVED:
        raise ValueError("unknown header flags")
    if flags & _EXTRA:
        if len(head) < end + 2:
            return -1
        end += 2 + int.from_bytes(head[end : end + 2], "little")
    for text in (_NAME, _COMMENT):
        if flags & text:
            end = head.find(b"\0", end) + 1
            if not end:
                return -1
    end += 2 if flags & _CHECKSUM else 0
    return end if end <= len(head) else -1
