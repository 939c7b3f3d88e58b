"""The bytes of answers: status lines and heads, content codings, the gzip bomb. Pure functions."""

import gzip
import math
import time
import zlib
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import Any

Action = dict[str, Any]
BOMB_BYTES = 1 << 30
_MEGABYTE = 1 << 20


def reason(status: int) -> str:
    """The phrase of a status; made-up statuses get one too."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Odd"


def head(action: Action, status: int, length: int | None) -> bytes:
    """The head of an answer as *action* wants it; *length* None = not said."""
    lines = [f"{action.get('version', 'HTTP/1.1')} {status} {reason(status)}", "Server: bench"]
    content_type = action.get("type", "text/html; charset=utf-8")
    if content_type:
        lines.append(f"Content-Type: {content_type}")
    lines += [f"{name}: {action[key]}" for key, name in _FIELDS.items() if key in action]
    if action.get("chunked"):
        lines.append("Transfer-Encoding: chunked")
    elif length is not None:
        lines.append(f"Content-Length: {length}")
    if action.get("close"):
        lines.append("Connection: close")
    interim = f"HTTP/1.1 {action['interim']}\r\nLink: </style.css>; rel=preload\r\n\r\n" if "interim" in action else ""
    return (interim + "\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


_FIELDS = {
    "location": "Location",
    "etag": "ETag",
    "last_modified": "Last-Modified",
    "coding": "Content-Encoding",
    "retry_after": "Retry-After",
}


def retry_after(said: str | None) -> tuple[str | None, float]:
    """The header's value and its seconds; `date+N` is written as a date."""
    if said is None:
        return None, 0.0
    if not said.startswith("date+"):
        return said, float(said)
    now = time.time()
    at = math.floor(now) + int(said[5:])
    return formatdate(at, usegmt=True), at - now


def encoded(action: Action, body: bytes | memoryview) -> bytes | memoryview:
    """The body in the coding and framing of *action*."""
    coding = action.get("coding")
    if coding == "gzip":
        body = gzip.compress(body, 6, mtime=0)
    elif coding == "deflate":
        body = zlib.compress(body, 6)
    if "extra" in action:
        body = bytes(body) + b"x" * action["extra"]
    return in_chunks(bytes(body)) if action.get("chunked") else body


def in_chunks(body: bytes, size: int = 4096) -> bytes:
    """A whole body in chunked framing."""
    parts = [chunk(body[i : i + size]) for i in range(0, len(body), size)]
    return b"".join(parts) + b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    """One chunk."""
    return b"%x\r\n%s\r\n" % (len(data), data)


@lru_cache(maxsize=1)
def bomb() -> bytes:
    """A gibibyte of zeros as valid gzip of about a megabyte: one fully flushed block, repeated."""
    deflater = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = deflater.compress(bytes(_MEGABYTE)) + deflater.flush(zlib.Z_FULL_FLUSH)
    zeros, crc = bytes(_MEGABYTE), 0
    for _ in range(BOMB_BYTES // _MEGABYTE):
        crc = zlib.crc32(zeros, crc)
    trailer = crc.to_bytes(4, "little") + (BOMB_BYTES & 0xFFFFFFFF).to_bytes(4, "little")
    start = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff"
    return start + block * (BOMB_BYTES // _MEGABYTE) + b"\x03\x00" + trailer
